/**
 * Files of jobs: a database for each service that stores no jobs, a lock for each running job, and a mark for each job
 * that its service stores.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, statSync, writeFileSync } from 'node:fs';
import { chmod, link, open, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { codeOf, systemReason } from '../api/errors.js';
import { JobError } from './errors.js';
import { makeFolders } from './folders.js';

interface JobFiles {
	readonly database: string;
	hold(key: string, what: string): Promise<FileLock>;
	leaveToDeployment(key: string): Promise<void>;
	assertNotThere(key: string): void;
}

/** File names are hashes, since a job may have any name. */
export function jobFiles(folder: string, deployment: string): JobFiles {
	const database = join(folder, `${hashOf(deployment)}.db`);
	const pathOf = (key: string) => join(folder, `job-${hashOf(deployment, key)}`);
	return {
		database,
		hold: async (key, what) => {
			try {
				await makePrivateFolder(folder);
				return await lockFile(pathOf(key), what);
			} catch (error) {
				if (!notAllowed.has(codeOf(error))) throw error;
				throw new JobError('unwritable', `${folder} cannot be written: ${systemReason(error)}`);
			}
		},
		leaveToDeployment: async (key) => putNew(markOf(pathOf(key)), JSON.stringify({ deployment, key })),
		assertNotThere: (key) => {
			if (!existsSync(markOf(pathOf(key)))) return;
			const text = `the campaign "${key}" is stored on ${deployment}, which no longer answers as a mailctl server`;
			throw new JobError('other_road', `${text}; nothing was sent`);
		},
	};
}

export function keptHere(key: string, path: string): JobError {
	const text = `the campaign "${key}" was started before this service was a mailctl server, and is stored in ${path}`;
	return new JobError('other_road', `${text}; nothing was sent`);
}

async function makePrivateFolder(path: string): Promise<void> {
	const made = makeFolders(path);
	// The folder may belong to another program, or an unusual umask may have opened it to all.
	await chmod(path, 0o700);
	if (made !== undefined) await syncFolder(dirname(made));
}

const notAllowed = new Set(['EACCES', 'EPERM', 'ENOTDIR', 'EISDIR', 'EEXIST', 'EROFS']);

function hashOf(...names: readonly string[]): string {
	return createHash('sha256').update(JSON.stringify(names)).digest('hex').slice(0, 32);
}

function markOf(path: string): string {
	return `${path}.elsewhere`;
}

async function putNew(path: string, text: string): Promise<void> {
	const whole = `${path}.${process.pid}`;
	await writeFile(whole, text, { mode: 0o600, flush: true });
	try {
		await link(whole, path);
		await syncFolder(dirname(path));
	} catch (error) {
		if (codeOf(error) !== 'EEXIST') throw error;
	} finally {
		await rm(whole, { force: true });
	}
}

/** Syncs the folder, because otherwise its file names may not survive a power cut. */
async function syncFolder(path: string): Promise<void> {
	const folder = await open(path);
	await folder.sync().finally(() => folder.close());
}

/**
 * Allows one process at a time on a job or file. The lock is SQLite's lock of an empty file, which the kernel releases
 * when the process ends. The PID file beside it is for people.
 */
export interface FileLock {
	release(): Promise<void>;
}

/** Never waits: rejects with `JobError` `in_use`. The folder must exist. */
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
			throw new JobError('in_use', `${holder ?? 'another process'} is working on ${what}`);
		}
		// The previous holder may have removed the file before this process locked it.
		if (before === null || inodeOf(lock) !== before) {
			held.close();
			continue;
		}
		writeFileSync(pid, `${process.pid} on ${hostname()}\n`, { mode: 0o600 });
		return {
			release: async () => {
				// Remove the files before the unlock, so that those of the next holder stay.
				await rm(pid, { force: true });
				await rm(lock, { force: true });
				held.close();
			},
		};
	}
}

/** A holder without a PID file is about to write it or to release the lock. Wait two seconds to see which. */
const TRIES_WITHOUT_A_NAME = 100;

/** Opens a new file only: closing an existing one would release this process's lock on it. */
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
