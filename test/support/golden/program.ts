/**
 * Calls of the built program. They run in this process, which is five times as fast as a process each; with
 * GOLDENS_PROCESSES=1 each call that needs no terminal is one of its own, and must write the same.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { PassThrough, Writable } from 'node:stream';
import { programPath } from '../cli.js';

// What libraries ask this process for is the same everywhere: local time, and the colours of prompts.
process.env['TZ'] = 'UTC';
process.env['NO_COLOR'] = '1';
delete process.env['FORCE_COLOR'];

/** The moment at which every call happens: 2026-11-21T12:00:00Z. */
export const moment = '1795262400';

export interface Call {
	argv: readonly string[];
	env: Readonly<Record<string, string>>;
	/** Standard input, or what is typed at a terminal: a line for each question. */
	stdin?: string | Buffer;
	columns?: number;
	/** Comes once stderr shows `at`. */
	signal?: { name: 'SIGINT' | 'SIGTERM'; at: string };
}

export interface Outcome {
	code: number | null;
	stdout: string;
	stderr: string;
}

type Main = (options: object) => Promise<number>;
const { main }: { main: Main } = createRequire(import.meta.url)('../../../dist/cli/main.js');
const inProcesses = process.env['GOLDENS_PROCESSES'] === '1';

export function runCall(call: Call): Promise<Outcome> {
	return inProcesses && call.columns === undefined ? runProcess(call) : runHere(call);
}

/** Runs one call as a process of its own. */
async function runProcess({ argv, env, stdin, signal }: Call): Promise<Outcome> {
	const child = spawn(process.execPath, [programPath, ...argv], { env: { ...processEnv(), ...env } });
	child.stdin.on('error', () => {});
	child.stdin.end(stdin ?? '');
	const stdout: Buffer[] = [];
	const stderr: Buffer[] = [];
	const signalOnce = onceSaid(signal, (name) => child.kill(name));
	child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
	child.stderr.on('data', (chunk: Buffer) => {
		stderr.push(chunk);
		signalOnce(textOf(stderr));
	});
	const [code] = await once(child, 'close');
	return { code, stdout: textOf(stdout), stderr: textOf(stderr) };
}

/** What a process needs of this one's environment, and nothing that names its user. */
function processEnv(): Record<string, string> {
	return { PATH: process.env['PATH'] ?? '', TZ: 'UTC' };
}

async function runHere({ argv, env, stdin, columns, signal }: Call): Promise<Outcome> {
	const input = new PassThrough();
	const isTerminal = columns !== undefined;
	const answers = isTerminal && typeof stdin === 'string' ? stdin.split(/\n|\\n/) : [];
	if (!isTerminal) input.end(stdin ?? '');
	const signalOnce = onceSaid(signal, (name) => process.emit(name, name));
	const stdout = capture(columns);
	const stderr = capture(columns, (text) => {
		const answer = /\?/.test(text) ? answers.shift() : undefined;
		// The prompt listens once it has been drawn.
		if (answer !== undefined) setImmediate(() => input.write(`${answer}\n`));
		signalOnce(text);
	});
	const code = await main({
		argv,
		env,
		stdin: Object.assign(input, { isTTY: isTerminal }),
		stdout: stdout.stream,
		stderr: stderr.stream,
	});
	return { code, stdout: stdout.text(), stderr: withoutWaiting(stderr.text()) };
}

/** A busy machine shows for a moment what is waited for: of a line that is drawn over only the last drawing is left. */
function withoutWaiting(text: string): string {
	return text.replace(/\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)/g, '').replaceAll('\r\x1b[K', '');
}

/** Sends the signal when stderr holds what it waits for, and no second time. */
function onceSaid(signal: Call['signal'], send: (name: 'SIGINT' | 'SIGTERM') => void) {
	let isSent = false;
	return (text: string) => {
		if (signal === undefined || isSent || !text.includes(signal.at)) return;
		isSent = true;
		send(signal.name);
	};
}

function capture(columns: number | undefined, heard?: (text: string) => void) {
	const chunks: Buffer[] = [];
	const stream = new Writable({
		write(chunk: Buffer, _encoding, done) {
			chunks.push(Buffer.from(chunk));
			heard?.(chunk.toString('utf8'));
			done();
		},
	});
	const more = columns === undefined ? {} : { columns };
	return {
		// Like the process's own streams it cannot be ended: a prompt tries to when it is answered.
		stream: Object.assign(stream, { isTTY: columns !== undefined, end: () => stream, ...more }),
		text: () => textOf(chunks),
	};
}

function textOf(chunks: readonly Buffer[]): string {
	return Buffer.concat(chunks).toString('utf8');
}
