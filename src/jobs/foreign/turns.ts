/** Spaces recipients: so many a second, and no burst after a pause. */

export interface Turns {
	/** Takes the next turn, for so many recipients, and says how many milliseconds to wait for it. */
	take(recipients: number): number;
}

/** A timer comes late now and then: so much may be made good for, and no more. */
const savedMs = 100;

/** `nowMs`: any clock that does not go back. */
export function createTurns(perSecond: number, nowMs: () => number = () => performance.now()): Turns {
	const spacingMs = 1_000 / perSecond;
	let next = nowMs();
	return {
		take: (recipients) => {
			const now = nowMs();
			const turn = Math.max(next, now - savedMs);
			next = turn + recipients * spacingMs;
			return Math.max(0, turn - now);
		},
	};
}
