/** The limits of a server, and its current use: slots of requests and memory of bodies, in all and by address. */
import { ApiError } from '../../api/errors.js';

/** Times in milliseconds. */
export interface Limits {
	/** Request line and headers together: more is 431. */
	maxHeaderBytes: number;
	/** The target of a request: more is 414. */
	maxUrlBytes: number;
	/** Bodies of all requests together: more is 503. */
	maxBytesInFlight: number;
	/** Bodies of one address together: more is 503. An IPv6 /64 is one address, here and below. */
	maxBytesPerAddress: number;
	/** Requests being answered, of all clients together: more is 503. One that waits for its body, or its turn, does not count. */
	maxRequests: number;
	/** Of these, requests of one address: further ones wait until one is answered. */
	maxRequestsPerAddress: number;
	/** Requests under way on one connection, waiting ones too: nothing more is read from it meanwhile. */
	maxPipelined: number;
	/** One more ends an idle connection, or one that waits for its client; where all are being answered, the new one. */
	maxConnections: number;
	/** Of these, connections of one address, except many new ones at once. Not applied behind a trusted proxy. */
	maxConnectionsPerAddress: number;
	/** From the first octet, or the connection, to the end of the headers: later is 408. */
	headersTimeoutMs: number;
	requestTimeoutMs: number;
	formTimeoutMs: number;
	keepAliveTimeoutMs: number;
	checkIntervalMs: number;
	/** A client that reads nothing of its response for this time has left. */
	writeTimeoutMs: number;
	/** How long the unread rest of a body is dropped, so that the response is read. */
	lingerMs: number;
}

export const limits: Limits = {
	maxHeaderBytes: 16 * 1024,
	maxUrlBytes: 8 * 1024,
	maxBytesInFlight: 64 * 1024 * 1024,
	maxBytesPerAddress: 32 * 1024 * 1024,
	maxRequests: 1_000,
	maxRequestsPerAddress: 250,
	maxPipelined: 32,
	maxConnections: 10_000,
	maxConnectionsPerAddress: 500,
	headersTimeoutMs: 15_000,
	requestTimeoutMs: 120_000,
	formTimeoutMs: 10_000,
	keepAliveTimeoutMs: 30_000,
	checkIntervalMs: 5_000,
	writeTimeoutMs: 60_000,
	lingerMs: 1_000,
};

export interface Share {
	slots: number;
	/** Called one by one as slots of the address become free. */
	readonly waiting: (() => void)[];
	bytes: number;
	/** Resolves when its files so far are done with: two of them may have no room, and neither would become whole. */
	files: Promise<void>;
}

/** The address of a request and its connection, which has one slot at most: its requests are answered in turn. */
interface SlotOwner {
	readonly peer: Share;
	readonly connection: { hasSlot: boolean };
}

/** How many requests are answered at once, of all clients and of each address: none while it waits for its client. */
export class Slots {
	readonly #limits: Pick<Limits, 'maxRequests' | 'maxRequestsPerAddress'>;
	#taken = 0;

	constructor(limits: Pick<Limits, 'maxRequests' | 'maxRequestsPerAddress'>) {
		this.#limits = limits;
	}

	/**
	 * Resolves with a slot. Where its address has used its share, it waits until another request of that address releases
	 * one. Throws `unavailable` when all are taken.
	 */
	async acquire({ peer, connection }: SlotOwner): Promise<void> {
		if (connection.hasSlot) return;
		while (peer.slots >= this.#limits.maxRequestsPerAddress)
			await new Promise<void>((resolve) => peer.waiting.push(resolve));
		if (this.#taken >= this.#limits.maxRequests)
			throw new ApiError('unavailable', 'Too many requests at once. Try again.');
		this.#taken += 1;
		peer.slots += 1;
		connection.hasSlot = true;
	}

	release({ peer, connection }: SlotOwner): void {
		if (!connection.hasSlot) return;
		this.#taken -= 1;
		peer.slots -= 1;
		connection.hasSlot = false;
		peer.waiting.shift()?.();
	}
}

/** Octets of bodies that may be held at a time; requests do not wait here for memory. */
export class Budget {
	readonly #limits: Pick<Limits, 'maxBytesInFlight' | 'maxBytesPerAddress'>;
	#held = 0;

	constructor(limits: Pick<Limits, 'maxBytesInFlight' | 'maxBytesPerAddress'>) {
		this.#limits = limits;
	}

	/** False: the memory is used up, or the share of this address is. */
	reserve(peer: Share, bytes: number): boolean {
		const { maxBytesInFlight, maxBytesPerAddress } = this.#limits;
		if (this.#held + bytes > maxBytesInFlight || peer.bytes + bytes > maxBytesPerAddress) return false;
		this.#held += bytes;
		peer.bytes += bytes;
		return true;
	}

	release(peer: Share, bytes: number): void {
		this.#held -= bytes;
		peer.bytes -= bytes;
	}
}
