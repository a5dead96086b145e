import { EventEmitter, on } from 'node:events';
import { codeOf } from '../../api/errors.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { clean } from '../render/clean.js';
import type { Columns } from '../render/columns.js';
import { fitSentences } from '../render/wrapping.js';

export const portOption = { kind: 'integer', min: 0, max: 65_535 } as const;

interface InboxOptions<T> {
	most: number | undefined;
	wait: number | undefined;
	counts?: (item: T) => boolean;
}

/** A queue that ends on the command's signal, after `most` counted items, or when `wait` has passed. */
export class Inbox<T> implements AsyncIterable<T> {
	count = 0;
	readonly #options: InboxOptions<T>;
	readonly #events = new EventEmitter();
	readonly #items = on(this.#events, 'item', { close: ['end'] });
	#isOver = false;
	#failure: { error: unknown } | null = null;

	constructor({ signal }: CommandContext, options: InboxOptions<T>) {
		this.#options = options;
		if (signal.aborted) this.#end();
		signal.addEventListener('abort', () => this.#end(), { once: true });
		if (options.wait !== undefined) setTimeout(() => this.#end(), options.wait).unref();
	}

	add(item: T): boolean {
		if (this.#isOver) return false;
		this.#events.emit('item', item);
		if (this.#options.counts?.(item) !== false) this.count += 1;
		if (this.count === this.#options.most) this.#end();
		return true;
	}

	/** The reader gets all items added before the failure, and then the error. */
	fail(error: unknown): void {
		this.#failure ??= { error };
		this.#end();
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<T> {
		for await (const [item] of this.#items) yield item;
		if (this.#failure !== null) throw this.#failure.error;
	}

	#end(): void {
		this.#isOver = true;
		this.#events.emit('end');
	}
}

/** For JSON, CSV and Markdown, one call of `rows` prints all items as one document. */
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

export function cannotListen(cause: unknown, { host, port }: { host: string; port: number }): unknown {
	const code = codeOf(cause);
	if (code === 'EADDRINUSE') {
		const taken = cause instanceof Error && 'port' in cause ? Number(cause.port) : port;
		const hint = `give another ${taken === port ? '--port' : '--bounce-smtp'}`;
		return new UsageError(`port ${taken} of ${host} is in use`, { hint, cause });
	}
	if (code === 'EACCES')
		return new UsageError(`port ${port} needs more rights than this process has`, {
			hint: 'give one above 1023',
			cause,
		});
	if (!['EADDRNOTAVAIL', 'EINVAL', 'ENOTFOUND', 'EAI_AGAIN'].includes(code)) return cause;
	return new UsageError(`--host ${clean(host)} is not an address of this machine`, { cause });
}
