/** Runs command lines as a shell does: in this process with captured streams, or as the built program. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import type { MainOptions } from '../../src/cli/frame/context.js';
import { main } from '../../src/cli/main.js';

export interface CliResult {
	code: number;
	stdout: string;
	stderr: string;
}

export interface CliOptions {
	env?: Readonly<Record<string, string>>;
	stdin?: string | Buffer | Readable;
	columns?: number;
	interactive?: boolean;
	connect?: MainOptions['connect'];
	interrupts?: AbortSignal;
	heard?: (text: string) => void;
}

export function makeHome(): Promise<string> {
	return mkdtemp(join(tmpdir(), 'mailctl-cli-'));
}

export async function cli(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
	const isTTY = options.columns !== undefined;
	const stdout = capture(isTTY, options.columns);
	const stderr = capture(isTTY, options.columns, options.heard);
	const code = await main({
		argv,
		env: { HOME: options.env?.['HOME'] ?? (await makeHome()), TERM: 'xterm', ...options.env },
		stdin: Object.assign(inputOf(options.stdin), { isTTY: options.interactive === true }),
		stdout: stdout.stream,
		stderr: stderr.stream,
		interrupts: options.interrupts ?? new AbortController().signal,
		...(options.connect === undefined ? {} : { connect: options.connect }),
	});
	return { code, stdout: stdout.text(), stderr: stderr.text() };
}

export function withValues(words: readonly string[], values: Readonly<Record<string, string>>): string[] {
	const changed = [...words];
	for (const [flag, value] of Object.entries(values)) {
		const at = changed.indexOf(flag);
		if (at === -1) changed.push(flag, value);
		else changed[at + 1] = value;
	}
	return changed;
}

export function startProgram(
	argv: readonly string[],
	env: Readonly<Record<string, string>> = {},
	cwd = process.cwd(),
) {
	return spawn(process.execPath, [programPath, ...argv], {
		cwd,
		env: { PATH: process.env['PATH'] ?? '', TERM: 'dumb', ...env },
	});
}

export const programPath = join(import.meta.dirname, '../../bin/mailctl.js');

export const isBuilt = existsSync(join(import.meta.dirname, '../../dist/cli/main.js'));

function inputOf(input: CliOptions['stdin']): Readable {
	if (input instanceof Readable) return input;
	const stream = new PassThrough();
	stream.end(input ?? '');
	return stream;
}

function capture(isTTY: boolean, columns: number | undefined, heard?: (text: string) => void) {
	const chunks: Buffer[] = [];
	const stream = new Writable({
		write(chunk: Buffer, _encoding, done) {
			chunks.push(Buffer.from(chunk));
			heard?.(Buffer.concat(chunks).toString('utf8'));
			done();
		},
	});
	const more = columns === undefined ? {} : { columns };
	return {
		stream: Object.assign(stream, { isTTY, end: () => stream, ...more }),
		text: () => Buffer.concat(chunks).toString('utf8'),
	};
}
