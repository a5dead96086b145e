/** A backup put into place: the store makes the copy, a file that is whole or not there holds it. */
import { readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type BackedUp, backUpStore, isInUse } from '../../store/open.js';
import { createOutputFile, leftoverMs, type WhenThere } from '../../tables/output-file.js';

export interface BackupRequest {
	/** The database. */
	database: string;
	file: string;
	whenThere: WhenThere;
	signal: AbortSignal;
	onProgress: (copied: { pages: number; of: number }) => void;
	/** Called with each leftover of a killed backup that is removed from the folder. */
	onRemoved: (name: string) => Promise<void>;
}

/** Throws store errors, `TableError` and errors of the disk; then there is no such file, or the one before. */
export async function backUp({
	database,
	file,
	whenThere,
	onRemoved,
	...rest
}: BackupRequest): Promise<BackedUp> {
	const output = await createOutputFile(file, whenThere, 'backup.part');
	try {
		for await (const name of removeLeftovers(resolve(output.path))) await onRemoved(name);
		const made = await backUpStore(database, { into: resolve(output.path), name: file, ...rest });
		await output.finish();
		return made;
	} finally {
		await output.discard();
	}
}

/**
 * Leftovers of killed backups and restores in the folder, under any name: names with a date in them never come again. Ages count
 * from the new file's time, by the clock of the disk. A running backup holds a lock, or has just begun to write.
 */
export async function* removeLeftovers(own: string): AsyncGenerator<string> {
	const { mtimeMs: nowMs } = await stat(own);
	const folder = dirname(own);
	const names = await readdir(folder).catch(() => []);
	for (const name of names.filter((one) => /^\..*\.[0-9a-f]{12}\.backup\.part$/s.test(one))) {
		const path = join(folder, name);
		const mtimeMs = await stat(path).then(
			(found) => (found.isFile() ? found.mtimeMs : nowMs),
			() => nowMs,
		);
		if (name === basename(own) || nowMs - mtimeMs <= leftoverMs || isInUse(path)) continue;
		for (const suffix of ['-journal', '-wal', '-shm', '']) await rm(path + suffix, { force: true });
		yield name;
	}
}
