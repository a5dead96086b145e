/** What a bench gives the runner, and what several measure with. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { memoryOf } from '../support/memory.js';

export interface BenchRow {
	what: string;
	/** The program or library that marks the limit; what is missing for it when the row was skipped. */
	limit: string;
	limitMedian: string;
	oursMedian: string;
	/** Ours to the limit; null when skipped. */
	ratio: number | null;
	/** As the performance goals state it. */
	goal: string;
}

export interface Bench {
	subject: string;
	run(): Promise<BenchRow[]>;
}

/** The row of the smallest program of the same design (`least-*`), beside that of ours. */
export function leastOf(what: string): string {
	return `the same ${what}, of a program without checks`;
}

export function median(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The row of a bench whose limit is not on this machine. */
export function skippedRow(what: string, why: string, goal = ''): BenchRow {
	return { what, limit: why, limitMedian: '', oursMedian: '', ratio: null, goal };
}

export const program = join(process.cwd(), 'bin/mailctl.js');

export interface Run {
	seconds: number;
	/** Resident memory at its most. */
	peakMb: number;
	stdout: string;
}

/** A whole process of Node.js; throws where it does not end with `exit`. */
export async function timedNode(words: readonly string[], env: NodeJS.ProcessEnv, exit = 0): Promise<Run> {
	const began = performance.now();
	const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
	let stdout = '';
	child.stdout.on('data', (chunk) => {
		stdout += String(chunk);
	});
	let peakMb = 0;
	const watch = setInterval(() => {
		peakMb = Math.max(peakMb, memoryOf(child.pid).peakMb);
	}, 50);
	const code = await ended(child);
	clearInterval(watch);
	if (code !== exit) throw new Error(`${words.join(' ')} ended with ${code}`);
	return { seconds: (performance.now() - began) / 1000, peakMb, stdout };
}

export async function ended(child: ChildProcess): Promise<number | null> {
	const [code] = await once(child, 'close');
	return code;
}

export function perSecond(count: number, seconds: number): string {
	return `${Math.round(count / seconds)}/s`;
}
