/** How each recipient of a mailing stands: one byte a seat, so that a million of them take a megabyte. */

/** `intent`: a call is under way, or was when the process died. */
export type SeatState = 'waiting' | 'intent' | 'accepted' | 'suppressed' | 'failed' | 'unknown';

const states: readonly SeatState[] = ['waiting', 'intent', 'accepted', 'suppressed', 'failed', 'unknown'];

/** Seats by state. */
export type SeatCounts = Record<SeatState, number>;

const firstCapacity = 1_024;

/** Seats are added at the end, `waiting`; all can be cleared at once. */
export class Seats {
	#bytes = new Uint8Array(firstCapacity);
	#size = 0;
	#counts = noSeats();

	get size(): number {
		return this.#size;
	}

	get counts(): Readonly<SeatCounts> {
		return this.#counts;
	}

	add(count: number): void {
		const size = this.#size + count;
		if (size > this.#bytes.length) {
			const wider = new Uint8Array(Math.max(size, 2 * this.#bytes.length));
			wider.set(this.#bytes);
			this.#bytes = wider;
		}
		this.#size = size;
		this.#counts.waiting += count;
	}

	/** Throws `RangeError` for a seat there is not. */
	get(seat: number): SeatState {
		const state = states[this.#bytes[this.#checked(seat)] ?? 0];
		if (state === undefined) throw new RangeError(`seat ${seat} has no state`);
		return state;
	}

	/** Throws `RangeError` for a seat there is not. */
	set(seat: number, state: SeatState): void {
		this.#counts[this.get(seat)] -= 1;
		this.#counts[state] += 1;
		this.#bytes[seat] = states.indexOf(state);
	}

	/** Every seat of the one state gets the other. */
	turn(from: SeatState, to: SeatState): void {
		if (this.#counts[from] === 0) return;
		for (let seat = 0; seat < this.#size; seat += 1) if (this.get(seat) === from) this.set(seat, to);
	}

	clear(): void {
		this.#bytes = new Uint8Array(firstCapacity);
		this.#size = 0;
		this.#counts = noSeats();
	}

	#checked(seat: number): number {
		if (!Number.isInteger(seat) || seat < 0 || seat >= this.#size)
			throw new RangeError(`there is no seat ${seat}`);
		return seat;
	}
}

function noSeats(): SeatCounts {
	return { waiting: 0, intent: 0, accepted: 0, suppressed: 0, failed: 0, unknown: 0 };
}
