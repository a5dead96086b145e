/**
 * One process at a time on a file. The lock is the kernel's, held through SQLite on an empty file beside it: it ends with
 * the process however that ends, and no pid of a dead one can be taken for that of a living one. The pid is written
 * beside it for people only.
 */
import { closeSync, openSync, statSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { LedgerError } from './error.js';

/** Held until `release`, or until the process is gone. */
export interface FileLock {
	release(): Promise<void>;
}

/** Rejects with `LedgerError` `in_use`, naming the process that has it; never waits. The folder must be there. */
export async function lockFile(path: string): Promise<FileLock> {
	const { default: Sqlite } = await import('better-sqlite3');
	const lock = `${path}.lock`;
	const pid = `${path}.pid`;
	for (;;) {
		createEmpty(lock);
		const before = inodeOf(lock);
		const held = new Sqlite(lock, { timeout: 0 });
		try {
			held.exec('BEGIN EXCLUSIVE');
		} catch (error) {
			held.close();
			if (isBusy(error)) throw await inUse(path, pid);
			throw error;
		}
		// Whoever had it may have removed the file in between: then this is a lock on nothing.
		if (before === null || inodeOf(lock) !== before) {
			held.close();
			continue;
		}
		await writeFile(pid, `${process.pid}\n`, { mode: 0o600 });
		return {
			release: async () => {
				// While it is held: nobody else's may be removed.
				await rm(pid, { force: true });
				await rm(lock, { force: true });
				held.close();
			},
		};
	}
}

/** Never opens one that is there: closing it again would end the lock this process may hold on it. */
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

async function inUse(path: string, pidFile: string): Promise<LedgerError> {
	const pid = (await readFile(pidFile, 'utf8').catch(() => '')).trim();
	const who = /^\d+$/.test(pid) ? `process ${pid}` : 'another process';
	return new LedgerError('in_use', `${who} is at work on this job (${path})`);
}

function isBusy(error: unknown): boolean {
	return codeOf(error).startsWith('SQLITE_BUSY');
}

function codeOf(error: unknown): string {
	return error instanceof Error && 'code' in error ? String(error.code) : '';
}
