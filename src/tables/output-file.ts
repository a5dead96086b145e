/** Writes a file completely or not at all: writes a temporary file, syncs and renames it. Writes a pipe directly. */
import { randomBytes } from 'node:crypto';
import { type FileHandle, link, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../api/errors.js';
import { TableError } from './finding.js';

export type WhenThere = 'refuse' | 'replace';

export async function createOutputFile(
	path: string,
	whenThere: WhenThere,
	ending = 'part',
): Promise<OutputFile> {
	const there = await stat(path).catch(() => null);
	if (there?.isDirectory()) throw new TableError('directory', `${path} is a directory`);
	if (there !== null && !there.isFile()) return new OutputFile(await opened(path, path, 'w'), path);
	if (there !== null && whenThere === 'refuse') throw alreadyThere(path);
	// Replace the target of a symbolic link, instead of the link.
	const target = there === null ? path : await realpath(path);
	if (there !== null && ending === 'part' && (await isDatabase(target)))
		throw new TableError('file_exists', `${path} is a SQLite database; name another file`);
	const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}.${ending}`);
	const file = await opened(temporary, path, 'wx');
	return new OutputFile(file, path, { path, target, temporary, whenThere });
}

/** Reads the next piece while it writes the previous one. */
export async function writeOutputFile(
	path: string,
	whenThere: WhenThere,
	pieces: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
): Promise<void> {
	const file = await createOutputFile(path, whenThere);
	let written = Promise.resolve();
	try {
		for await (const piece of pieces) {
			await written;
			written = file.write(piece);
			written.catch(() => undefined);
		}
		await written;
		await file.finish();
	} finally {
		await written.catch(() => undefined);
		await file.discard();
	}
}

/** Writing a table over a database would lose all its data. */
async function isDatabase(path: string): Promise<boolean> {
	const file = await open(path).catch(() => null);
	const { buffer } = (await file?.read(Buffer.alloc(16), 0, 16, 0)) ?? { buffer: Buffer.alloc(0) };
	await file?.close();
	return buffer.toString('latin1') === 'SQLite format 3\0';
}

interface Place {
	path: string;
	target: string;
	temporary: string;
	whenThere: WhenThere;
}

export class OutputFile {
	/** The temporary path, for code that writes the file itself before it calls `finish`. */
	readonly path: string;
	readonly #file: FileHandle;
	readonly #named: string;
	readonly #place: Place | null;
	#isPlaced = false;

	constructor(file: FileHandle, path: string, place: Place | null = null) {
		this.path = place?.temporary ?? path;
		this.#file = file;
		this.#named = path;
		this.#place = place;
	}

	write(content: string | Uint8Array): Promise<void> {
		return writing(this.#named, () => this.#file.writeFile(content));
	}

	/** With `refuse`, throws if another program has created a file at the final path. */
	async finish(): Promise<void> {
		const place = this.#place;
		if (place === null) return this.#file.close();
		await writing(this.#named, async () => {
			await this.#file.sync();
			await this.#file.close();
			await putInPlace(place);
			this.#isPlaced = true;
			await syncFolder(dirname(place.target));
		});
	}

	async discard(): Promise<void> {
		if (this.#isPlaced) return;
		await this.#file.close().catch(() => undefined);
		if (this.#place === null) return;
		// SQLite may have written the file and journals beside it.
		for (const suffix of ['', '-journal', '-wal', '-shm']) await rm(this.path + suffix, { force: true });
	}
}

// If another program has created the file, `link` fails, but `rename` replaces it. Some file systems lack `link`.
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

/** Without `chmod`, a umask of 0777 would prevent opening the file again. */
function opened(file: string, path: string, flags: 'w' | 'wx'): Promise<FileHandle> {
	return writing(path, async () => {
		const handle = await open(file, flags, 0o600);
		if (flags === 'wx') await handle.chmod(0o600);
		return handle;
	});
}

/** Turns system errors into a `TableError` that names `path`, not the temporary file. */
async function writing<T>(path: string, write: () => Promise<T>): Promise<T> {
	try {
		return await write();
	} catch (cause) {
		const refusal = refusalOf(cause, path);
		if (refusal === null) throw cause;
		const { code, why } = refusal;
		throw new TableError(code, `${path} cannot be written: ${why}`, {
			cause,
			...(code === 'disk_full' ? { hint: otherDisk } : { unwritten: path }),
		});
	}
}

const otherDisk = 'free some space, or name a file on another disk';

interface Refusal {
	code: 'unreadable' | 'disk' | 'disk_full';
	why: string;
}

const denied: Refusal = { code: 'unreadable', why: 'permission denied' };
const full: Refusal = { code: 'disk_full', why: 'no space is left on the disk' };
const refusals: ReadonlyMap<string, Refusal> = new Map<string, Refusal>([
	['EACCES', denied],
	['EPERM', denied],
	['ENAMETOOLONG', { code: 'unreadable', why: 'its name is too long' }],
	['ENOSPC', full],
	['EDQUOT', full],
	['EROFS', { code: 'disk', why: 'its file system is read-only' }],
	[
		'EFBIG',
		{ code: 'disk', why: 'it is larger than the system allows (EFBIG: a limit such as `ulimit -f`)' },
	],
	['EIO', { code: 'disk', why: 'the disk has failed (EIO)' }],
]);

export function refusalOf(error: unknown, path: string): Refusal | null {
	const code = codeOf(error);
	const folder = dirname(path);
	if (code === 'ENOENT') return { code: 'unreadable', why: `there is no folder ${folder}` };
	if (code === 'ENOTDIR') return { code: 'unreadable', why: `${folder} is not a folder` };
	return refusals.get(code) ?? null;
}

function alreadyThere(path: string): TableError {
	return new TableError('file_exists', `${path} exists already`, { hint: '--force replaces it' });
}

export async function syncFolder(path: string): Promise<void> {
	const folder = await open(path);
	await folder.sync().finally(() => folder.close());
}
