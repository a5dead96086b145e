import { ApiError } from '../../api/errors.js';

export const limits = {
	maxHeaderBytes: 16 * 1024,
	maxUrlBytes: 8 * 1024,
	maxBytesInFlight: 64 * 1024 * 1024,
	/** Memory for the request bodies of one IPv4 address or IPv6 /64. Above this limit, the server answers 503. */
	maxBytesPerAddress: 32 * 1024 * 1024,
	/** At this limit, the server answers 503. A request that waits for its body or its turn does not count. */
	maxRequests: 1_000,
	/** Further requests of the address wait. */
	maxRequestsPerAddress: 250,
	/** The server stops reading from a connection with this many unanswered requests. */
	maxPipelined: 32,
	/** At this limit, the server closes another connection of the same client, or else the new one. */
	maxConnections: 10_000,
	/** Does not apply behind a trusted proxy, because all connections come from the proxy. */
	maxConnectionsPerAddress: 500,
	headersTimeoutMs: 15_000,
	requestTimeoutMs: 120_000,
	formTimeoutMs: 10_000,
	keepAliveTimeoutMs: 30_000,
	checkIntervalMs: 5_000,
	/** The server disconnects a client that reads nothing for this long. */
	writeTimeoutMs: 60_000,
	lingerMs: 1_000,
};
export type Limits = { [K in keyof typeof limits]: number };

export interface Share {
	slots: number;
	readonly waiting: (() => void)[];
	bytes: number;
	/** The server reads one file per address at a time. Two together could exceed the limit and both fail. */
	files: Promise<void>;
}

/** A connection has at most one slot, because its requests are answered in turn. */
interface SlotOwner {
	readonly peer: Share;
	readonly connection: { hasSlot: boolean };
}

export class Slots {
	readonly #limits: Pick<Limits, 'maxRequests' | 'maxRequestsPerAddress'>;
	#taken = 0;

	constructor(limits: Pick<Limits, 'maxRequests' | 'maxRequestsPerAddress'>) {
		this.#limits = limits;
	}

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

export class Budget {
	readonly #limits: Pick<Limits, 'maxBytesInFlight' | 'maxBytesPerAddress'>;
	#held = 0;

	constructor(limits: Pick<Limits, 'maxBytesInFlight' | 'maxBytesPerAddress'>) {
		this.#limits = limits;
	}

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
