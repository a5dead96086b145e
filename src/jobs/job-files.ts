/**
 * The files of jobs on deployments: a database for each deployment that stores none itself, a lock for each job at
 * work, and a mark for each job that its deployment stores.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, link, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, systemReason } from '../api/errors.js';
import { JobError } from './errors.js';
import { makeFolders } from './folders.js';
import { type FileLock, lockFile } from './lock.js';

export interface JobFiles {
	readonly database: string;
	hold(key: string, what: string): Promise<FileLock>;
	leaveToDeployment(key: string): Promise<void>;
	assertNotThere(key: string): void;
}

/** Files have hashes as names, since a job may have any name. */
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
			const text = `the campaign "${key}" is kept by ${deployment} itself, which says now that it is not a mailctl server`;
			throw new JobError('other_road', `${text}; nothing was sent`);
		},
	};
}

export function keptHere(key: string, path: string): JobError {
	const text = `the campaign "${key}" was begun when this service was not a mailctl server, and is kept in ${path}`;
	return new JobError('other_road', `${text}; nothing was sent`);
}

export async function makePrivateFolder(path: string): Promise<void> {
	const made = makeFolders(path);
	// A folder of another program, or under an odd umask, may be open to all.
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

/** A name is durable when its folder is. */
async function syncFolder(path: string): Promise<void> {
	const folder = await open(path);
	await folder.sync().finally(() => folder.close());
}
