/** A compact set of addresses: 64 bits of a hash each, so that a million of them take 16 MiB and not 200. */
import { hash } from 'node:crypto';
import type { EmailKey } from './address.js';

/** Slots of a new set; always a power of two. */
const firstSlots = 1_024;
const maxLoad = 0.75;

/**
 * A set that only grows. Two words a slot, open addressing, 11 to 21 bytes an address (half as much again while it
 * grows). Two addresses of a million have the same hash once in 18 million sets; then the later one counts as a
 * duplicate: it is reported as such, and no address gets a mail twice.
 */
export class AddressSet {
	#slots = new Uint32Array(2 * firstSlots);
	#size = 0;
	/** An address that is looked up is mostly added next. */
	#last: { key: EmailKey; pair: readonly [high: number, low: number] } = { key: '', pair: hashOf('') };

	get size(): number {
		return this.#size;
	}

	get bytes(): number {
		return this.#slots.byteLength;
	}

	/** False: it was in the set already. */
	add(key: EmailKey): boolean {
		const [high, low] = this.#pairOf(key);
		if (!insert(this.#slots, high, low)) return false;
		this.#size += 1;
		if (this.#size > (this.#slots.length / 2) * maxLoad) this.#grow();
		return true;
	}

	has(key: EmailKey): boolean {
		const [high, low] = this.#pairOf(key);
		return this.#slots[slotOf(this.#slots, high, low)] !== 0;
	}

	#pairOf(key: EmailKey): readonly [high: number, low: number] {
		if (this.#last.key !== key) this.#last = { key, pair: hashOf(key) };
		return this.#last.pair;
	}

	#grow(): void {
		const wider = new Uint32Array(this.#slots.length * 2);
		for (let at = 0; at < this.#slots.length; at += 2) {
			const high = this.#slots[at] ?? 0;
			const low = this.#slots[at + 1] ?? 0;
			if (high !== 0 || low !== 0) insert(wider, high, low);
		}
		this.#slots = wider;
	}
}

function insert(slots: Uint32Array, high: number, low: number): boolean {
	const at = slotOf(slots, high, low);
	if (slots[at] !== 0) return false;
	slots[at] = high;
	slots[at + 1] = low;
	return true;
}

/** The slot of the pair, or the empty slot for it. A table is never full, so the search ends. */
function slotOf(slots: Uint32Array, high: number, low: number): number {
	const mask = slots.length / 2 - 1;
	for (let slot = low & mask; ; slot = (slot + 1) & mask) {
		const at = 2 * slot;
		if (slots[at] === 0 || (slots[at] === high && slots[at + 1] === low)) return at;
	}
}

/** The first is never zero, which marks an empty slot. */
function hashOf(key: EmailKey): [high: number, low: number] {
	const digest = hash('sha256', key, 'buffer');
	return [(digest.readUInt32LE(0) | 1) >>> 0, digest.readUInt32LE(4)];
}
