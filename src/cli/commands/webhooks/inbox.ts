/** What came in and is not shown yet, until there is no more to come. */
import type { CommandContext } from '../../context.js';
import type { Received } from './receiver.js';

/** Notifications in the order they came; to be gone through once. */
export interface Inbox extends AsyncIterable<Received> {
	add(received: Received): void;
	/** Those that were not refused. */
	readonly count: number;
}

/** Ends with the command's signal, after the first of `once`, or when the time is over. */
export function createInbox(
	cx: CommandContext,
	{ once, wait }: { once: boolean; wait: number | undefined },
): Inbox {
	const waiting: Received[] = [];
	let count = 0;
	let isOver = false;
	let wake = () => {};
	const end = () => {
		isOver = true;
		wake();
	};
	if (cx.signal.aborted) end();
	cx.signal.addEventListener('abort', end, { once: true });
	const timer = wait === undefined ? null : setTimeout(end, wait).unref();
	return {
		get count() {
			return count;
		},
		add: (received) => {
			if (isOver) return;
			waiting.push(received);
			if (received.refused === null) count += 1;
			if (once && count > 0) end();
			wake();
		},
		async *[Symbol.asyncIterator]() {
			try {
				for (;;) {
					const next = waiting.shift();
					if (next !== undefined) yield next;
					else if (isOver) return;
					else
						await new Promise<void>((resolve) => {
							wake = resolve;
						});
				}
			} finally {
				if (timer !== null) clearTimeout(timer);
			}
		},
	};
}
