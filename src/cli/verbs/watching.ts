/** `--watch` repeats a command. On a terminal, new output replaces the last one. Elsewhere, new output is appended. */
import { PassThrough } from 'node:stream';
import { sleep } from '../../api/backoff.js';
import { localTime } from '../../api/datetime.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { classify, type ExitCode, exits } from '../frame/exit.js';
import type { OutStream } from '../frame/io.js';

export const watchOption = {
	kind: 'duration',
	summary: 'repeat at this interval (10s) until Ctrl-C',
} as const;

export type Look = (cx: CommandContext) => Promise<ExitCode | undefined>;

const leastMs = 1_000;

/**
 * Runs `look` once or, with `everyMs`, repeatedly until it returns an exit code. Warns about an error of the network or
 * the server and continues. Any other error, a signal or `--deadline` ends the repetition.
 */
export async function watched(
	cx: CommandContext,
	everyMs: number | undefined,
	look: Look,
): Promise<ExitCode> {
	if (everyMs === undefined) return (await look(cx)) ?? exits.done;
	checkWatch(cx, everyMs);
	const show = await shower(cx);
	const every = `every ${everyMs / 1_000} s; press Ctrl-C to end`;
	if (!cx.io.stderr.isTTY) await cx.note(`looking ${every}`);
	const said = createSaid(cx);
	try {
		for (;;) {
			const view = createView(cx.io.stdout);
			const out = cx.outTo(view.stream, cx.out.format === 'ndjson' ? 'json' : cx.out.format);
			const seen = await look({ ...cx, ...said.diagnostics, out }).then(
				(code) => ({ code, failure: null }),
				(error: unknown) => failureOf(cx, error),
			);
			cx.signal.throwIfAborted();
			const at = localTime(cx.clock.now(), cx.times.zone()).slice('YYYY-MM-DDT'.length);
			said.failed(seen.failure);
			cx.stand(null);
			await show(seen.failure === null ? view.text() : null, said.take());
			if (seen.code !== undefined) return seen.code;
			cx.stand(`${seen.failure === null ? 'refreshed' : 'failed'} at ${at}, again ${every}`);
			await sleep(everyMs, cx.signal);
		}
	} finally {
		cx.stand(null);
	}
}

function checkWatch({ out, globals }: CommandContext, everyMs: number): void {
	if (everyMs < leastMs) throw new UsageError('--watch must be 1s or more');
	if (globals.query !== undefined) throw new UsageError('use either --query or --watch, not both');
	if (out.format === 'json')
		throw new UsageError('--watch cannot be used with -o json, which is one document', {
			hint: 'use -o ndjson',
		});
}

function createView({ isTTY, columns }: OutStream) {
	let text = '';
	const stream: OutStream = {
		...{ isTTY, columns, raw: new PassThrough() },
		write: async (piece) => {
			text += typeof piece === 'string' ? piece : Buffer.from(piece).toString('utf8');
		},
	};
	return { stream, text: () => text };
}

/** Returns a function that prints new notes and warnings, then the output. After a failure, the last output stays. */
async function shower({ io, out }: CommandContext) {
	const { stdout } = io;
	const isScreen = stdout.isTTY && io.env['TERM'] !== 'dumb' && out.format !== 'ndjson';
	const screen = isScreen ? (await import('../render/redraw.js')).createRedraw(stdout) : null;
	let last = '';
	return async (view: string | null, said: readonly (() => Promise<void>)[]): Promise<void> => {
		const gap = last === '' ? '' : '\n';
		last = view ?? last;
		if (said.length > 0) await screen?.clear();
		for (const say of said) await say();
		if (screen !== null) await screen.draw(last);
		else if (view && out.format === 'ndjson') await stdout.write(`${JSON.stringify(JSON.parse(view))}\n`);
		else if (view) await stdout.write(gap + view);
	};
}

function createSaid(cx: CommandContext) {
	const known = new Set<string>();
	let waiting: (() => Promise<void>)[] = [];
	let failure: string | null = null;
	const once = (what: unknown, say: () => Promise<void>) => {
		const key = JSON.stringify(what);
		if (!known.has(key)) waiting.push(say);
		known.add(key);
	};
	return {
		diagnostics: {
			note: async (text) => once(text, () => cx.note(text)),
			hint: async (hint) => once(hint, () => cx.hint(hint)),
			warn: async (text, ...hints) => once(text, () => cx.warn(text, ...hints)),
		} satisfies Pick<CommandContext, 'note' | 'hint' | 'warn'>,
		/** On a terminal, warns only once about a repeated failure, because the status line also shows the failure. */
		failed: (message: string | null) => {
			if (message !== null && (message !== failure || !cx.io.stderr.isTTY))
				waiting.push(() => cx.warn(`this refresh failed: ${message}`));
			failure = message;
		},
		take: () => {
			const taken = waiting;
			waiting = [];
			return taken;
		},
	};
}

function failureOf({ signal }: CommandContext, error: unknown) {
	signal.throwIfAborted();
	const { exit, message } = classify(error);
	if (exit !== exits.network && exit !== exits.server) throw error;
	return { code: undefined, failure: message };
}
