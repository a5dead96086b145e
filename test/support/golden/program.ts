/**
 * Calls of the built program. They run in this process, five times as fast as separate processes. With
 * GOLDENS_PROCESSES=1 each call without a terminal is a separate process, and must print the same.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { PassThrough, Writable } from 'node:stream';
import { programPath } from '../cli.js';

process.env['TZ'] = 'UTC';
process.env['NO_COLOR'] = '1';
delete process.env['FORCE_COLOR'];

export const moment = '1795262400';

export interface Call {
	argv: readonly string[];
	env: Readonly<Record<string, string>>;
	stdin?: string | Buffer;
	columns?: number;
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

function withoutWaiting(text: string): string {
	return text.replace(/\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)/g, '').replaceAll('\r\x1b[K', '');
}

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
		stream: Object.assign(stream, { isTTY: columns !== undefined, end: () => stream, ...more }),
		text: () => textOf(chunks),
	};
}

function textOf(chunks: readonly Buffer[]): string {
	return Buffer.concat(chunks).toString('utf8');
}
