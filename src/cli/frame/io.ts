import type { Readable, Writable } from 'node:stream';
import { type Micros, microsPerMs, monotonicMicros } from '../../api/datetime.js';
import { codeOf, systemReason } from '../../api/errors.js';
import { CliError, OutputClosed } from './errors.js';

export type Env = Readonly<Record<string, string | undefined>>;

export interface OutStream {
	readonly isTTY: boolean;
	readonly columns: number;
	/**
	 * Resolves when the stream has taken the text. On stdout, throws `OutputClosed` if the reader is gone, and an error
	 * with exit code 74 for other failures.
	 */
	write(text: string | Uint8Array): Promise<void>;
	readonly raw: Writable;
}

interface InStream {
	readonly isTTY: boolean;
	readonly raw: Readable;
}

export interface Io {
	readonly stdin: InStream;
	readonly stdout: OutStream;
	readonly stderr: OutStream;
	readonly env: Env;
}

export interface IoParts {
	stdin?: Readable & { isTTY?: boolean };
	stdout?: Writable & { isTTY?: boolean; columns?: number };
	stderr?: Writable & { isTTY?: boolean; columns?: number };
	env?: Env;
}

export function createIo(parts: IoParts = {}): Io {
	const stdin = parts.stdin;
	return {
		stdin: {
			// A getter, because reading process.stdin opens a handle that most commands do not need.
			get isTTY() {
				return (stdin ?? process.stdin).isTTY === true;
			},
			get raw() {
				return stdin ?? process.stdin;
			},
		},
		stdout: outStream(parts.stdout ?? process.stdout, 'required'),
		stderr: outStream(parts.stderr ?? process.stderr, 'optional'),
		env: parts.env ?? process.env,
	};
}

export async function printPage({ stdout, env }: Io, text: string, isPaged: boolean): Promise<void> {
	if (!stdout.isTTY || !isPaged) return stdout.write(text);
	const { isLonger, pagerOf, showPaged } = await import('../render/pager.js');
	const command = pagerOf(stdout, env);
	if (command === null || !isLonger(stdout, text)) return stdout.write(text);
	await showPaged(stdout, text, command, env);
}

const maxTurn: Micros = 20 * microsPerMs;

function outStream(
	raw: Writable & { isTTY?: boolean; columns?: number },
	need: 'required' | 'optional',
): OutStream {
	let lost: Error | null = null;
	let turnedAt = monotonicMicros();
	raw.on('error', (error: Error) => {
		lost ??= error;
	});
	return {
		isTTY: raw.isTTY === true,
		get columns() {
			return raw.columns !== undefined && raw.columns > 0 ? raw.columns : 80;
		},
		raw,
		async write(text) {
			if (lost === null) lost = await written(raw, text);
			// Yield to the event loop, so that signals and the deadline take effect. A command that reads SQLite and writes
			// a file would otherwise never yield.
			if (monotonicMicros() - turnedAt > maxTurn) {
				await new Promise((resolve) => setImmediate(resolve));
				turnedAt = monotonicMicros();
			}
			if (lost === null || need === 'optional') return;
			const isPipeClosed = ['EPIPE', 'ERR_STREAM_DESTROYED', 'ECONNRESET'].includes(codeOf(lost));
			throw isPipeClosed ? new OutputClosed() : await unwritten(lost);
		},
	};
}

function written(raw: Writable, text: string | Uint8Array): Promise<Error | null> {
	return new Promise((resolve) => raw.write(text, (error) => resolve(error ?? null)));
}

async function unwritten(cause: Error): Promise<CliError> {
	const { refusalOf } = await import('../../tables/output-file.js');
	const { code, why } = refusalOf(cause, '') ?? { code: 'disk', why: systemReason(cause) };
	return new CliError('disk', 74, `cannot write to standard output: ${why}`, {
		...(code === 'disk_full' && { hint: 'free some space, or write the output to another disk' }),
		cause,
	});
}
