/** The folder of all jobs: which ledgers lie there, and forgetting one. */
import { chmod, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type LedgerHeader, readHeader } from './header.js';
import { lockFile } from './lock.js';

/** A ledger as it lies in its folder; nobody need have it open. */
export interface LedgerEntry {
	path: string;
	header: LedgerHeader;
	/** Of the last append, milliseconds since 1970. */
	modifiedMs: number;
}

const extension = '.jsonl';

/** A job's file in the folder of all jobs; `name` is of letters, digits, `.`, `_` and `-`. */
export function ledgerPath(folder: string, name: string): string {
	return join(folder, `${name}${extension}`);
}

/** Every ledger of a folder by its name; what is none is left out, and a folder that is not there has none. */
export async function listLedgers(folder: string): Promise<LedgerEntry[]> {
	const names = await readdir(folder).catch((error: unknown) =>
		error instanceof Error && 'code' in error && error.code === 'ENOENT' ? [] : Promise.reject(error),
	);
	const found: LedgerEntry[] = [];
	for (const name of names.filter((one) => one.endsWith(extension)).sort()) {
		const entry = await readEntry(join(folder, name)).catch(() => null);
		if (entry !== null) found.push(entry);
	}
	return found;
}

/** Forgets a job; one that is not there is forgotten already. Throws `LedgerError` `in_use`. */
export async function removeLedger(path: string): Promise<void> {
	if (!(await exists(path))) return;
	const lock = await lockFile(path);
	try {
		await rm(path, { force: true });
		await syncFolder(dirname(path));
	} finally {
		await lock.release();
	}
}

/** Private to its owner, and durable itself. */
export async function makePrivateFolder(path: string): Promise<void> {
	const made = await mkdir(path, { recursive: true, mode: 0o700 });
	// One that was made by somebody else, or under an odd umask, may be open to all.
	await chmod(path, 0o700);
	if (made !== undefined) await syncFolder(dirname(made));
}

/** A name is durable when its folder is. */
export async function syncFolder(path: string): Promise<void> {
	const folder = await open(path);
	await folder.sync().finally(() => folder.close());
}

async function readEntry(path: string): Promise<LedgerEntry | null> {
	const file = await open(path, 'r');
	try {
		const { size, mtimeMs } = await file.stat();
		const found = await readHeader(file, size);
		return found === null ? null : { path, header: found.header, modifiedMs: mtimeMs };
	} finally {
		await file.close();
	}
}

async function exists(path: string): Promise<boolean> {
	return stat(path).then(
		() => true,
		() => false,
	);
}
