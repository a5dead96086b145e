/**
 * One process at a time on a job or a file. The kernel holds the lock, through SQLite on an empty file, so it ends
 * with the process. The pid beside it is for people.
 */
import { closeSync, openSync, statSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { codeOf } from '../api/errors.js';
import { JobError } from './errors.js';

export interface FileLock {
	release(): Promise<void>;
}

/** Rejects with `JobError` `in_use`; never waits. The folder must exist. */
export async function lockFile(path: string, what = `this job (${path})`): Promise<FileLock> {
	const { default: Sqlite } = await import('better-sqlite3');
	const lock = `${path}.lock`;
	const pid = `${path}.pid`;
	for (let tries = 0; ; ) {
		createEmpty(lock);
		const before = inodeOf(lock);
		const held = new Sqlite(lock, { timeout: 0 });
		try {
			held.exec('BEGIN EXCLUSIVE');
		} catch (error) {
			held.close();
			if (!codeOf(error).startsWith('SQLITE_BUSY')) throw error;
			const holder = await holderOf(pid);
			tries += 1;
			if (holder === null && tries < TRIES_WITHOUT_A_NAME) {
				await wait(20);
				continue;
			}
			throw new JobError('in_use', `${holder ?? 'another process'} is at work on ${what}`);
		}
		// The previous holder may have removed the file in between.
		if (before === null || inodeOf(lock) !== before) {
			held.close();
			continue;
		}
		writeFileSync(pid, `${process.pid} on ${hostname()}\n`, { mode: 0o600 });
		return {
			release: async () => {
				// Before the unlock: the next holder's files must not be removed.
				await rm(pid, { force: true });
				await rm(lock, { force: true });
				held.close();
			},
		};
	}
}

/** A holder without a name has just taken the lock or is about to release it: two seconds show which. */
const TRIES_WITHOUT_A_NAME = 100;

/** Closing an existing file would end a lock of this process on it. */
function createEmpty(path: string): void {
	try {
		closeSync(openSync(path, 'wx', 0o600));
	} catch (error) {
		if (codeOf(error) !== 'EEXIST') throw error;
	}
}

function inodeOf(path: string): number | null {
	return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}

async function holderOf(pidFile: string): Promise<string | null> {
	const text = (await readFile(pidFile, 'utf8').catch(() => '')).trim();
	return /^\d/.test(text) ? `process ${text}` : null;
}
