import { ApiError } from '../../api/errors.js';

export const limits = {
	maxHeaderBytes: 16 * 1024,
	maxUrlBytes: 8 * 1024,
	maxBytesInFlight: 64 * 1024 * 1024,
	/** More is 503. An IPv6 /64 is one address, here and below. */
	maxBytesPerAddress: 32 * 1024 * 1024,
	/** More is 503. A request that waits for its body, or its turn, does not count. */
	maxRequests: 1_000,
	/** Further requests of an address wait. */
	maxRequestsPerAddress: 250,
	/** Nothing more is read from a connection with so many. */
	maxPipelined: 32,
	/** One more ends an idle connection, or itself. */
	maxConnections: 10_000,
	/** Not applied behind a trusted proxy. */
	maxConnectionsPerAddress: 500,
	headersTimeoutMs: 15_000,
	requestTimeoutMs: 120_000,
	formTimeoutMs: 10_000,
	keepAliveTimeoutMs: 30_000,
	checkIntervalMs: 5_000,
	/** A client that reads nothing for this time has left. */
	writeTimeoutMs: 60_000,
	lingerMs: 1_000,
};
export type Limits = { [K in keyof typeof limits]: number };

export interface Share {
	slots: number;
	readonly waiting: (() => void)[];
	bytes: number;
	/** Two files of an address at once might have no room, and neither would become whole. */
	files: Promise<void>;
}

/** A connection has one slot at most: its requests are answered in turn. */
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

	/** Waits while the address has used its share. Throws `unavailable` when all slots are taken. */
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
