import { hash } from 'node:crypto';
import type { EmailKey } from './address.js';

const firstSlots = 1_024;
const maxLoad = 0.75;

/** Treats the later of two addresses with the same hash as a duplicate. */
export class AddressSet {
	#slots = new Uint32Array(2 * firstSlots);
	#size = 0;
	#last: { key: EmailKey; pair: readonly [high: number, low: number] } = { key: '', pair: hashOf('') };

	get size(): number {
		return this.#size;
	}

	get bytes(): number {
		return this.#slots.byteLength;
	}

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

function slotOf(slots: Uint32Array, high: number, low: number): number {
	const mask = slots.length / 2 - 1;
	for (let slot = low & mask; ; slot = (slot + 1) & mask) {
		const at = 2 * slot;
		if (slots[at] === 0 || (slots[at] === high && slots[at + 1] === low)) return at;
	}
}

function hashOf(key: EmailKey): [high: number, low: number] {
	const digest = hash('sha256', key, 'buffer');
	return [(digest.readUInt32LE(0) | 1) >>> 0, digest.readUInt32LE(4)];
}
