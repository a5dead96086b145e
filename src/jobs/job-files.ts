/**
 * The folder for jobs. It has a database for each service that cannot store jobs, a lock for each running job, and a
 * mark for each job that a service stores.
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

/** File names are hashes, because a job's name may have characters that a file name cannot have. */
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
			const text = `the campaign "${key}" is stored on ${deployment}, which is no longer a mailctl server`;
			throw new JobError('other_road', `${text}; nothing was sent`);
		},
	};
}

export function keptHere(key: string, path: string): JobError {
	const text = `the campaign "${key}" is stored in ${path}: it started before this service was a mailctl server`;
	return new JobError('other_road', `${text}; nothing was sent`);
}

async function makePrivateFolder(path: string): Promise<void> {
	const made = makeFolders(path);
	// The folder may have existed with a wider mode, and an unusual umask may have removed the owner's permissions.
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
 * Lets one process at a time work on a job or file. SQLite locks an empty file, and the kernel releases the lock when
 * the process ends. The PID file beside it names the holder in messages.
 */
export interface FileLock {
	release(): Promise<void>;
}

/** Rejects with `JobError` `in_use` if another process holds the lock. The folder must exist. */
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
				// Remove the files before unlocking, because afterwards they may belong to the next holder.
				await rm(pid, { force: true });
				await rm(lock, { force: true });
				held.close();
			},
		};
	}
}

/** Retry for two seconds while there is no PID file: the holder is about to write it or to release the lock. */
const TRIES_WITHOUT_A_NAME = 100;

/** Never opens an existing file: closing it would release all POSIX locks that this process has on the file. */
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
