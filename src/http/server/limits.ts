/** What a client may take of this server. */

/** Times in milliseconds. */
export interface Limits {
	/** Request line and headers together: more is 431. */
	maxHeaderBytes: number;
	/** The target of a request: more is 414. */
	maxUrlBytes: number;
	/** Bodies of all requests together: more is 503. */
	maxBytesInFlight: number;
	/** Requests of all connections together: more is 503. */
	maxRequests: number;
	/** More are closed as they come. */
	maxConnections: number;
	/** From the first octet, or the connection, to the end of the headers: later is 408. */
	headersTimeoutMs: number;
	/** To the end of the body. */
	requestTimeoutMs: number;
	/** An idle connection stays so long. */
	keepAliveTimeoutMs: number;
	/** How often the two timeouts of requests are looked at. */
	checkIntervalMs: number;
	/** A client that takes nothing of its answer for so long has left. */
	writeTimeoutMs: number;
	/** What is left of a body that nobody wanted is dropped for so long, so that the answer is read. */
	lingerMs: number;
}

export const limits: Limits = {
	maxHeaderBytes: 16 * 1024,
	maxUrlBytes: 8 * 1024,
	maxBytesInFlight: 64 * 1024 * 1024,
	maxRequests: 1_000,
	maxConnections: 10_000,
	headersTimeoutMs: 15_000,
	requestTimeoutMs: 120_000,
	keepAliveTimeoutMs: 30_000,
	checkIntervalMs: 5_000,
	writeTimeoutMs: 60_000,
	lingerMs: 1_000,
};
