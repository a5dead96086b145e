/**
 * The people of a list in little memory, for a plan that writes nothing: hashes of what an import would compare, some
 * 40 bytes a person instead of 500. A hash that meets another by chance costs one wrong count of a plan (53 bits of an
 * address: once in 20,000 lists of a million people; 32 bits of a cell).
 */
import { type EmailKey, emailKey } from '../../../../api/address.js';
import type { MetaValue, Subscriber } from '../../../../api/records.js';

/** Who is there, as far as it decides what a row changes. */
export interface Standing {
	isActive: boolean;
	/**
	 * A hard bounce or a complaint, which `--reactivate` does not lift. Assumption: the reason stands for a suppression of
	 * the address. It does where the engine gave it; one that came with an import is lifted all the same.
	 */
	isBound: boolean;
	/** Whether the cell of this column (`name`, `disable_reason`, `meta.x`) would change nothing. */
	holds(target: string, cell: MetaValue): boolean;
}

export type Person = Pick<Subscriber, 'email' | 'name' | 'is_active' | 'disable_reason' | 'meta'>;

export function standingOf(person: Person): Standing {
	return {
		isActive: person.is_active,
		isBound: isBound(person),
		holds: (target, cell) => textOf(person, target) === JSON.stringify(cell),
	};
}

/** A table of fixed size; `targets` are the columns of the import. */
export class People {
	readonly #targets: readonly string[];
	readonly #capacity: number;
	/** Two words a slot; two zeros are an empty one. */
	readonly #keys: Uint32Array;
	readonly #cells: Uint32Array;
	readonly #flags: Uint8Array;
	#size = 0;

	constructor(count: number, targets: readonly string[]) {
		this.#targets = targets;
		this.#capacity = capacityFor(count);
		this.#keys = new Uint32Array(this.#capacity * 2);
		this.#cells = new Uint32Array(this.#capacity * targets.length);
		this.#flags = new Uint8Array(this.#capacity);
	}

	/** What a table for so many people takes. */
	static bytesFor(count: number, columns: number): number {
		return capacityFor(count) * (9 + columns * 4);
	}

	/** A list that has doubled while it was read: who came last is not taken in. */
	add(person: Person): void {
		const { slot, pair, isTaken } = this.#slotOf(emailKey(person.email));
		if (!isTaken && this.#size * 8 >= this.#capacity * 7) return;
		if (!isTaken) this.#size += 1;
		[this.#keys[slot * 2], this.#keys[slot * 2 + 1]] = pair;
		this.#flags[slot] = (person.is_active ? 1 : 0) | (isBound(person) ? 2 : 0);
		this.#targets.forEach((target, index) => {
			const value = textOf(person, target);
			this.#cells[slot * this.#targets.length + index] = value === null ? 0 : hashOf(value);
		});
	}

	find(key: EmailKey): Standing | null {
		const { slot, isTaken } = this.#slotOf(key);
		if (!isTaken) return null;
		const flags = this.#flags[slot] ?? 0;
		return {
			isActive: (flags & 1) === 1,
			isBound: (flags & 2) === 2,
			holds: (target, cell) => {
				const index = this.#targets.indexOf(target);
				// A variable that is no column is not kept: a change, then.
				if (index === -1) return false;
				return this.#cells[slot * this.#targets.length + index] === hashOf(JSON.stringify(cell));
			},
		};
	}

	/** Where the address is, or would be. The table is never full, so the search ends. */
	#slotOf(key: EmailKey): { slot: number; isTaken: boolean; pair: [number, number] } {
		const pair: [number, number] = [hashOf(key), hashOf(key, otherSeed) >>> 11];
		const mask = this.#capacity - 1;
		for (let slot = pair[0] & mask; ; slot = (slot + 1) & mask) {
			const high = this.#keys[slot * 2];
			const low = this.#keys[slot * 2 + 1];
			if (high === 0 && low === 0) return { slot, isTaken: false, pair };
			if (high === pair[0] && low === pair[1]) return { slot, isTaken: true, pair };
		}
	}
}

const spare = 1_024;

/** A list may grow while it is read: half as many again, and some. */
function capacityFor(count: number): number {
	return 2 ** Math.ceil(Math.log2(count * 1.5 + spare));
}

function isBound({ disable_reason }: Person): boolean {
	return disable_reason === 'HARDBOUNCED' || disable_reason === 'COMPLAINED';
}

/** The JSON of a value, so that 7 and "7" differ; null where there is none. */
function textOf(person: Person, target: string): string | null {
	if (target === 'name') return JSON.stringify(person.name);
	if (target === 'disable_reason') return JSON.stringify(person.disable_reason);
	const variable = target.slice('meta.'.length);
	if (!target.startsWith('meta.') || !Object.hasOwn(person.meta, variable)) return null;
	return JSON.stringify(person.meta[variable]);
}

const seed = 0x811c9dc5;
const otherSeed = 0x9e3779b9;

/** FNV-1a over UTF-16 units, stirred at the end; never 0, which stands for nothing. */
function hashOf(text: string, start = seed): number {
	let hash = start;
	for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
	hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
	hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
	return (hash ^ (hash >>> 16)) >>> 0 || 1;
}
