import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { median } from './bench.js';

export function syncMs(folder: string): number {
	const path = join(folder, 'sync');
	const file = openSync(path, 'w');
	const page = Buffer.alloc(8192);
	const rounds = 50;
	writeSync(file, Buffer.alloc(page.length * rounds));
	fdatasyncSync(file);
	const times = Array.from({ length: rounds }, (_, at) => {
		const began = performance.now();
		writeSync(file, page, 0, page.length, at * page.length);
		fdatasyncSync(file);
		return performance.now() - began;
	});
	closeSync(file);
	rmSync(path);
	return median(times);
}

export interface DiskProbe {
	takeWaits(): number[];
	stop(): Promise<void>;
}

const probeBytes = 10 * 8192;
const probeEveryMs = 50;

export async function startDiskProbe(folder: string): Promise<DiskProbe> {
	const path = join(folder, 'probe');
	const file = await open(path, 'w');
	const data = Buffer.alloc(probeBytes, 1);
	let waits: number[] = [];
	let last: Promise<void> = Promise.resolve();
	const write = async (due: number) => {
		await file.write(data, 0, data.length, 0);
		await file.datasync();
		waits.push(performance.now() - due);
	};
	const timer = setInterval(() => {
		const due = performance.now();
		last = last.then(() => write(due));
	}, probeEveryMs);
	return {
		takeWaits: () => {
			const taken = waits;
			waits = [];
			return taken;
		},
		stop: async () => {
			clearInterval(timer);
			await last;
			await file.close();
			rmSync(path);
		},
	};
}

export function singleCommits(folder: string, seconds: number): number {
	const path = join(folder, 'commits.db');
	const db = new Database(path);
	db.pragma('journal_mode = WAL');
	db.pragma('synchronous = FULL');
	db.exec('CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, email TEXT UNIQUE)');
	const insert = db.prepare('INSERT INTO rows (email) VALUES (?)');
	const stamp = Math.random();
	const began = performance.now();
	let count = 0;
	while (performance.now() - began < seconds * 1000) {
		insert.run(`${stamp}-${count}@example.org`);
		count += 1;
	}
	const rate = count / ((performance.now() - began) / 1000);
	db.close();
	return rate;
}
