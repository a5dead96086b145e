/**
 * A file that is there whole or not at all: written beside its place under another name, synced, then put into place.
 * What is no file (a pipe, a device) is written to as it is.
 */
import { randomBytes } from 'node:crypto';
import { type FileHandle, link, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { TableError } from './finding.js';

export interface OutputFile {
	/** Throws what the disk says (`ENOSPC`, `EIO`). */
	write(text: string): Promise<void>;
	/** Puts it into place: from then on it is durable. Throws `TableError` when somebody made such a file meanwhile. */
	finish(): Promise<void>;
	/** Removes what was written; nothing to do once it is in place. */
	discard(): Promise<void>;
}

/** What is done with a file of that name. */
export type WhenThere = 'refuse' | 'replace';

/** Throws `TableError` before anything is written: the file is there already, is a folder, cannot be made. */
export async function createOutputFile(path: string, whenThere: WhenThere): Promise<OutputFile> {
	const there = await stat(path).catch(() => null);
	if (there?.isDirectory()) throw new TableError('directory', `${path} is a directory`);
	if (there !== null && !there.isFile()) return direct(await opened(path, path, 'w'));
	if (there !== null && whenThere === 'refuse') throw alreadyThere(path);
	// What a symbolic link leads to is replaced, not the link.
	const target = there === null ? path : await realpath(path);
	const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}.part`);
	const file = await opened(temporary, path, 'wx');
	await removeLeftovers(target, (await file.stat()).mtimeMs).catch(() => undefined);
	return beside(file, { path, target, temporary, whenThere });
}

/** Who is still writing has written since. */
const leftoverMs = 3_600_000;

/** What was begun for the same name and never put into place: its process was killed. `nowMs` is the disk's own time. */
async function removeLeftovers(target: string, nowMs: number): Promise<void> {
	const folder = dirname(target);
	const start = `.${basename(target)}.`;
	for (const name of await readdir(folder)) {
		if (!name.startsWith(start) || !/^[0-9a-f]{12}\.part$/.test(name.slice(start.length))) continue;
		const path = join(folder, name);
		const { mtimeMs } = await stat(path);
		if (nowMs - mtimeMs > leftoverMs) await rm(path, { force: true });
	}
}

function direct(file: FileHandle): OutputFile {
	return {
		write: async (text) => {
			await file.writeFile(text);
		},
		finish: () => file.close(),
		discard: () => file.close().catch(() => undefined),
	};
}

interface Place {
	/** As it was named. */
	path: string;
	target: string;
	temporary: string;
	whenThere: WhenThere;
}

function beside(file: FileHandle, place: Place): OutputFile {
	let isPlaced = false;
	return {
		write: async (text) => {
			await file.writeFile(text);
		},
		finish: async () => {
			await file.sync();
			await file.close();
			await putInPlace(place);
			isPlaced = true;
			await syncFolder(dirname(place.target));
		},
		discard: async () => {
			if (isPlaced) return;
			await file.close().catch(() => undefined);
			await rm(place.temporary, { force: true });
		},
	};
}

// A rename would replace what somebody made since the beginning; a link does not. Some disks know no links.
async function putInPlace({ path, target, temporary, whenThere }: Place): Promise<void> {
	if (whenThere === 'replace') return rename(temporary, target);
	try {
		await link(temporary, target);
	} catch (error) {
		if (codeOf(error) === 'EEXIST') throw alreadyThere(path);
		if ((await stat(target).catch(() => null)) !== null) throw alreadyThere(path);
		return rename(temporary, target);
	}
	await rm(temporary);
}

function opened(file: string, path: string, flags: string): Promise<FileHandle> {
	return open(file, flags, 0o600).catch((cause: unknown) => {
		if (!refusals.has(codeOf(cause))) throw cause;
		throw new TableError('unreadable', `${path} cannot be written: no folder, or no permission`, { cause });
	});
}

const refusals = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM']);

function alreadyThere(path: string): TableError {
	return new TableError('file_exists', `${path} exists already`, { hint: '--force replaces it' });
}

function codeOf(error: unknown): string {
	return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** A name is durable when its folder is. */
async function syncFolder(path: string): Promise<void> {
	const folder = await open(path);
	await folder.sync().finally(() => folder.close());
}
