/** Spaces sends: at most `perSecond` a second, without saving up for a burst after a pause. */
import { type Clock, type Micros, microsPerMs, microsPerSecond } from '../api/datetime.js';

export interface Rate {
	/** Takes the next turn and says how many milliseconds to wait for it. */
	take(): number;
}

/** A token bucket that holds a tenth of a second's turns, so that a coarse timer does not lower the rate. */
export function createRate(perSecond: number, clock: Clock): Rate {
	const spacing = microsPerSecond / perSecond;
	const saved = microsPerSecond / 10;
	let next: Micros = clock.now();
	return {
		take() {
			const now = clock.now();
			const turn = Math.max(next, now - saved);
			next = turn + spacing;
			return Math.max(0, (turn - now) / microsPerMs);
		},
	};
}
