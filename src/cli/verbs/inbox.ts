import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { clean } from '../render/clean.js';
import type { Columns } from '../render/columns.js';
import { fitSentences } from '../render/sentences.js';

export interface Inbox<T> extends AsyncIterable<T> {
	add(item: T): boolean;
	readonly count: number;
	/** Ends the inbox with an error, which its reader gets behind the items that are in it. */
	fail(error: unknown): void;
}

export interface InboxOptions<T> {
	most: number | undefined;
	wait: number | undefined;
	counts?: (item: T) => boolean;
}

export function createInbox<T>(
	cx: CommandContext,
	{ most, wait, counts = () => true }: InboxOptions<T>,
): Inbox<T> {
	const waiting: T[] = [];
	let count = 0;
	let isOver = false;
	let failure: { error: unknown } | null = null;
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
		add: (item) => {
			if (isOver) return false;
			waiting.push(item);
			if (counts(item)) count += 1;
			if (count === most) end();
			wake();
			return true;
		},
		fail: (error) => {
			failure ??= { error };
			end();
		},
		async *[Symbol.asyncIterator]() {
			try {
				for (;;) {
					const next = waiting.shift();
					if (next !== undefined) yield next;
					else if (failure !== null) throw failure.error;
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

/** Shows each item on arrival, a line of text on a terminal; one document of JSON, CSV or Markdown at the end. */
export async function showArrivals<T>(
	cx: CommandContext,
	inbox: Inbox<T>,
	{ columns, lineOf }: { columns: Columns<T>; lineOf: (item: T) => string },
): Promise<void> {
	const { format } = cx.out;
	if (format === 'json' || format === 'csv' || format === 'markdown') {
		await cx.out.rows(inbox, columns, { all: true });
		return;
	}
	for await (const item of inbox) {
		if (format === 'table' || format === 'wide')
			await cx.out.raw(`${await fitSentences(lineOf(item), cx.io.stdout)}\n`);
		else await cx.out.rows([item], columns, { all: true });
	}
}

/** The error of a port that cannot be listened on, in terms of its options; any other error unchanged. */
export function cannotListen(cause: unknown, { host, port }: { host: string; port: number }): unknown {
	const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
	switch (code) {
		case 'EADDRINUSE': {
			const taken = cause instanceof Error && 'port' in cause ? Number(cause.port) : port;
			const hint = `give another ${taken === port ? '--port' : '--bounce-smtp'}`;
			return new UsageError(`port ${taken} of ${host} is in use`, { hint, cause });
		}
		case 'EACCES':
			return new UsageError(`port ${port} needs more rights than this process has`, {
				hint: 'give one above 1023',
				cause,
			});
		case 'EADDRNOTAVAIL':
		case 'EINVAL':
		case 'ENOTFOUND':
		case 'EAI_AGAIN':
			return new UsageError(`--host ${clean(host)} is not an address of this machine`, { cause });
		default:
			return cause;
	}
}
