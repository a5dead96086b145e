import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { memoryOf } from '../support/memory.js';

export interface BenchRow {
	what: string;
	limit: string;
	limitMedian: string;
	oursMedian: string;
	ratio: number | null;
	goal: string;
}

export interface Bench {
	subject: string;
	run(): Promise<BenchRow[]>;
}

export function median(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export function skippedRow(what: string, why: string, goal = ''): BenchRow {
	return { what, limit: why, limitMedian: '', oursMedian: '', ratio: null, goal };
}

export const program = join(process.cwd(), 'bin/mailctl.js');

export interface Run {
	seconds: number;
	peakMb: number;
	stdout: string;
}

/** Runs a Node.js process to its end; throws if its exit code is not `exit`. */
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
