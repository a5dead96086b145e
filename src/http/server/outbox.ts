/**
 * Answers that are ready within one turn of the event loop, written one right after the other. Each write wakes whoever
 * reads at the far end: written between the work for others, each one wakes a reader that has gone to sleep meanwhile,
 * which on a loopback costs more than the whole answer.
 */

/** Writes soon; what is handed over first is written first. */
export type Outbox = (write: () => void) => void;

/** So many do not wait for the rest of the turn: the first of them has waited long enough. */
const maxWaiting = 32;

export function createOutbox(): Outbox {
	let waiting: (() => void)[] = [];
	const flush = () => {
		const writes = waiting;
		waiting = [];
		for (const write of writes) write();
	};
	return (write) => {
		if (waiting.length === 0) setImmediate(flush);
		waiting.push(write);
		if (waiting.length >= maxWaiting) flush();
	};
}
