/** One deadline that is moved all the time, on a timer that is not. */

export interface Deadline {
	/** So many milliseconds from now; instead of the last one. */
	set(ms: number): void;
	clear(): void;
}

/**
 * `onMissed` gets the milliseconds that were given. A conversation sets four deadlines a mail, of minutes: the timer
 * stays where it is as long as it rings early enough, and then looks what has become of the deadline.
 */
export function createDeadline(onMissed: (ms: number) => void): Deadline {
	let given: number | null = null;
	let dueAt = 0;
	let ringsAt = 0;
	let timer: NodeJS.Timeout | null = null;
	const wind = (now: number) => {
		if (timer !== null) clearTimeout(timer);
		ringsAt = dueAt;
		timer = setTimeout(ring, dueAt - now);
	};
	const ring = () => {
		timer = null;
		if (given === null) return;
		const now = performance.now();
		if (now < dueAt) return wind(now);
		const missed = given;
		given = null;
		onMissed(missed);
	};
	return {
		set(ms) {
			const now = performance.now();
			given = ms;
			dueAt = now + ms;
			if (timer === null || ringsAt > dueAt) wind(now);
		},
		clear() {
			given = null;
			// A timer of minutes would keep the process alive; of an idle connection there is no hurry to remove it.
			if (timer !== null) clearTimeout(timer);
			timer = null;
		},
	};
}
