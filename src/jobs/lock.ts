/**
 * One process at a time on a job or a file. The lock is the kernel's, held through SQLite on an empty file beside it.
 * It ends with the process in any case, and a reused pid cannot be mistaken for the holder. The pid is written beside
 * it for people only.
 */
import { closeSync, openSync, statSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { JobError } from './errors.js';

export interface FileLock {
	release(): Promise<void>;
}

/**
 * Rejects with `JobError` `in_use`, which names the process and the machine that hold it to work on `what`; never waits
 * for it. The folder must exist.
 */
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
			if (!isBusy(error)) throw error;
			const holder = await holderOf(pid);
			tries += 1;
			if (holder === null && tries < TRIES_WITHOUT_A_NAME) {
				await wait(20);
				continue;
			}
			throw new JobError('in_use', `${holder ?? 'another process'} is at work on ${what}`);
		}
		// The previous holder may have removed the file in between: then the lock is on a deleted file.
		if (before === null || inodeOf(lock) !== before) {
			held.close();
			continue;
		}
		writeFileSync(pid, `${process.pid} on ${hostname()}\n`, { mode: 0o600 });
		return {
			release: async () => {
				// While the lock is held: the next holder's files must not be removed.
				await rm(pid, { force: true });
				await rm(lock, { force: true });
				held.close();
			},
		};
	}
}

/** A holder without a name has just taken the lock or is about to release it: two seconds show which. */
const TRIES_WITHOUT_A_NAME = 100;

/** Never opens an existing file: closing it again would end a lock of this process on it. */
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

function isBusy(error: unknown): boolean {
	return codeOf(error).startsWith('SQLITE_BUSY');
}

function codeOf(error: unknown): string {
	return error instanceof Error && 'code' in error ? String(error.code) : '';
}
