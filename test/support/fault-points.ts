/**
 * Kills programs, or lets their disk fail, at chosen system calls. strace counts each system call of each thread
 * separately, so a point is the name of a call and its number.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { build } from 'esbuild';
import { afterAll, expect } from 'vitest';
import { syncTwin } from '../../scripts/sync-twin.mjs';
import { isInstalled } from './run-program.js';

export const hasStrace = isInstalled('strace');

export const asked = (name: `MAILCTL_${string}`, usual: number) => Number(process.env[name] ?? usual);

export const timeLimit = ['KILLS', 'FAULTS', 'KILL_ROWS'].some((name) => `MAILCTL_${name}` in process.env)
	? 3_600_000
	: undefined;

export const databaseCalls = 'pwrite64,ftruncate,fdatasync,fsync';

export interface Ended {
	code: number | null;
	stdout: string;
	stderr: string;
}

export interface Place {
	env?: NodeJS.ProcessEnv;
	cwd?: string;
}

interface Point {
	call: string;
	at: number;
}

export interface Fault extends Point {
	does: 'KILL' | 'ENOSPC' | 'EIO';
	lasts?: boolean;
}

export async function bundleProgram(name: string): Promise<string> {
	const cache = join(import.meta.dirname, '../../node_modules/.cache');
	mkdirSync(cache, { recursive: true });
	const outfile = join(cache, `${name}-${process.pid}.mjs`);
	afterAll(() => rmSync(outfile, { force: true }));
	await build({
		...{ entryPoints: [join(import.meta.dirname, `${name}.ts`)], outfile },
		...{ bundle: true, platform: 'node', format: 'esm', packages: 'external', logLevel: 'error' },
		plugins: [syncTwin],
	});
	return outfile;
}

export async function ended(child: ChildProcess): Promise<Ended> {
	let stdout = '';
	let stderr = '';
	child.stdout?.on('data', (chunk: Buffer) => {
		stdout += chunk.toString();
	});
	child.stderr?.on('data', (chunk: Buffer) => {
		stderr += chunk.toString();
	});
	return new Promise((resolve, reject) => {
		child.on('error', reject);
		child.on('close', (code) => resolve({ code, stdout, stderr }));
	});
}

/** Runs Node.js with these arguments to its end, with a fault or without (null). */
export function runNode(words: readonly string[], fault: Fault | null, place: Place = {}): Promise<Ended> {
	return ended(startNode(words, fault, place));
}

export function startNode(words: readonly string[], fault: Fault | null, place: Place = {}): ChildProcess {
	const options = { ...place, stdio: ['ignore', 'pipe', 'pipe'] as ('ignore' | 'pipe')[] };
	if (fault === null) return spawn(process.execPath, words, options);
	const { call, at, does, lasts } = fault;
	const what = does === 'KILL' ? 'signal=KILL' : `error=${does}`;
	const inject = `inject=${call}:${what}:when=${at}${lasts === true ? '+' : ''}`;
	return spawn('strace', [...traced(call, '/dev/null'), '-e', inject, process.execPath, ...words], options);
}

function traced(calls: string, log: string): string[] {
	return ['-D', '-f', '-qq', '-o', log, '-e', `trace=${calls}`];
}

export async function measurePoints(
	{ calls, work }: { calls: string; work?: (child: ChildProcess) => Promise<unknown> },
	words: readonly string[],
	place: Place = {},
): Promise<{ points: Point[]; run: Ended }> {
	const log = join(mkdtempSync(join(tmpdir(), 'mailctl-calls-')), 'log');
	const strace = [...traced(calls, log), process.execPath, ...words];
	const child = spawn('strace', strace, { ...place, stdio: ['ignore', 'pipe', 'pipe'] });
	const end = ended(child);
	if (work !== undefined) {
		await work(child);
		child.kill('SIGTERM');
	}
	const run = await end;
	const threads = new Map<string, Point[]>();
	const counts = new Map<string, number>();
	for (const [line, thread = '', call = ''] of readFileSync(log, 'utf8').matchAll(/^(\d+) +(\w+)\(/gm)) {
		const at = (counts.get(line) ?? 0) + 1;
		counts.set(line, at);
		threads.set(thread, [...(threads.get(thread) ?? []), { call, at }]);
	}
	const [points = []] = [...threads.values()].sort((a, b) => b.length - a.length);
	return { points, run };
}

export function spread(points: readonly Point[], count: number): Point[] {
	const step = (points.length - 1) / Math.max(1, count - 1);
	return Array.from({ length: count }, (_, index) => points[Math.floor(index * step)]).filter(
		(point) => point !== undefined,
	);
}

export function faultsOver(
	points: readonly Point[],
	{ kills, faults }: { kills: number; faults: number },
): Fault[] {
	return [
		...spread(points, kills).map((point): Fault => ({ ...point, does: 'KILL' })),
		...spread(points, faults).map((point, index): Fault => {
			return { ...point, does: index % 2 === 0 ? 'ENOSPC' : 'EIO', lasts: index % 4 < 2 };
		}),
	];
}

interface Sweep<T> {
	begin(): Promise<T>;
	run(place: T, kill: Fault): Promise<Ended>;
	check(place: T): Promise<void>;
}

export async function killAtEach<T>(
	points: readonly Point[],
	{ begin, run, check }: Sweep<T>,
): Promise<number> {
	let place = await begin();
	let killed = 0;
	for (const point of points) {
		let end = await run(place, { ...point, does: 'KILL' });
		for (let { at } = point; end.code === 0 && at > 0; at = Math.floor(at / 2)) {
			await check(place);
			place = await begin();
			end = await run(place, { ...point, at, does: 'KILL' });
		}
		if (end.code === 0) continue;
		expect(end.code, `${JSON.stringify(point)}: ${end.stderr}`).toBeNull();
		killed += 1;
	}
	await check(place);
	return killed;
}

export function expectHappened(
	what: string,
	codes: readonly (number | null)[],
	{ kills, faults }: { kills: number; faults: number },
): void {
	const killed = codes.filter((code) => code === null).length;
	const failed = codes.filter((code) => code !== null && code !== 0).length;
	process.stderr.write(`${what}: ${killed} kills, ${failed} of ${faults} faults ended the program\n`);
	expect(killed).toBeGreaterThanOrEqual(kills / 2);
	expect(failed).toBeGreaterThanOrEqual(faults / 4);
}

export function expectSound(path: string): void {
	const db = new Database(path, { readonly: true, fileMustExist: true });
	expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
	expect(db.pragma('foreign_key_check')).toEqual([]);
	db.close();
}

export function seeded(seed = 20_261_121): () => number {
	let state = seed;
	return () => {
		state = (state * 48_271) % 2_147_483_647;
		return state / 2_147_483_647;
	};
}
