/** Runs other programs to their end. Every test that waits for a program uses this function. */
import { type SpawnSyncOptions, spawnSync } from 'node:child_process';

export interface Run {
	status: number | null;
	signal: NodeJS.Signals | null;
	pid: number;
	stdout: string;
	stderr: string;
}

export interface RunOptions {
	cwd?: string;
	env?: NodeJS.ProcessEnv;
	input?: string | Uint8Array;
	stdio?: SpawnSyncOptions['stdio'];
}

// Without this limit, spawnSync kills a program after 1 MiB of output, and reports only a signal and an error. A test
// that compares two programs would then compare truncated outputs.
const maxBuffer = 1024 ** 3;

export function runProgram(program: string, words: readonly string[], options: RunOptions = {}): Run {
	const { error, stdout, stderr, status, signal, pid } = spawnSync(program, words, {
		...options,
		encoding: 'utf8',
		maxBuffer,
	});
	if (error !== undefined) throw new Error(`${program} ${words.join(' ').slice(0, 200)}`, { cause: error });
	return { status, signal, pid, stdout: stdout ?? '', stderr: stderr ?? '' };
}

export function runs(program: string, ...words: readonly string[]): boolean {
	return spawnSync(program, words, { stdio: 'ignore' }).status === 0;
}

export function isInstalled(program: string): boolean {
	return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;
}
