import { ApiError } from '../../api/errors.js';

export const limits = {
	maxHeaderBytes: 16 * 1024,
	maxUrlBytes: 8 * 1024,
	maxBytesInFlight: 64 * 1024 * 1024,
	/** Limits bodies in memory; beyond this, the answer is 503. An IPv6 /64 counts as one address, here and below. */
	maxBytesPerAddress: 32 * 1024 * 1024,
	/** Beyond this, the answer is 503. Excludes requests that wait for their body or their turn. */
	maxRequests: 1_000,
	/** More requests of an address wait. */
	maxRequestsPerAddress: 250,
	/** The server stops reading from a connection with this many requests. */
	maxPipelined: 32,
	/** Beyond this, closes a connection of the same client that does not wait for an answer, else the new one. */
	maxConnections: 10_000,
	/** Not applied behind a trusted proxy. */
	maxConnectionsPerAddress: 500,
	headersTimeoutMs: 15_000,
	requestTimeoutMs: 120_000,
	formTimeoutMs: 10_000,
	keepAliveTimeoutMs: 30_000,
	checkIntervalMs: 5_000,
	/** A client that reads nothing for this long is disconnected. */
	writeTimeoutMs: 60_000,
	lingerMs: 1_000,
};
export type Limits = { [K in keyof typeof limits]: number };

export interface Share {
	slots: number;
	readonly waiting: (() => void)[];
	bytes: number;
	/** Files of an address are read one at a time: two at once might exceed its limit, and neither would be complete. */
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

	/** Waits while the address uses its full share. Throws `unavailable` if all slots are taken. */
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
