/** Where mails that came back lie: a file, an mbox, a folder of files, or a Maildir; one after the other. */
import { createReadStream } from 'node:fs';
import { open, readdir, rename, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isMbox, splitMbox } from './mbox.js';

/** A mail that lies somewhere. */
export interface StoredMail {
	bytes: Buffer;
	/** It is dealt with: in a Maildir it is moved from `new` to `cur` and marked as seen; elsewhere nothing happens. */
	done(): Promise<void>;
}

/** What is read of one mail at most; nothing behind it says anything. */
const maxMailBytes = 4 * 1024 * 1024;
/** Of a file's name, on the file systems in use. */
const maxNameBytes = 255;

/** Told of a file that could not be read, and by which error of the system: `EACCES`. */
export type OnUnreadable = (file: string, code: string) => void;

/**
 * Mails of a path, in the order of their names. Throws the system's error where the path itself cannot be read. In a
 * folder one that cannot be read keeps no other waiting; what is no file, or was taken away meanwhile, is left out.
 */
export async function* openMailbox(path: string, onUnreadable: OnUnreadable): AsyncGenerator<StoredMail> {
	// What is named may be a pipe, as `<(…)` of a shell is.
	if (!(await stat(path)).isDirectory()) return yield* mailsOf(path);
	const names = await readdir(path);
	const isMaildir = names.includes('new') && names.includes('cur');
	const files = isMaildir ? await readdir(join(path, 'new')) : names;
	for (const name of files.filter((one) => !one.startsWith('.')).sort()) {
		const file = join(path, isMaildir ? 'new' : '', name);
		try {
			// Opening a pipe would wait for somebody to write.
			if (!(await stat(file)).isFile()) continue;
			if (isMaildir) yield { bytes: await readBegin(file), done: () => markSeen(path, file) };
			else yield* mailsOf(file);
		} catch (error) {
			if (!isGone(error)) onUnreadable(file, codeOf(error));
		}
	}
}

/** Mails of a stream, such as standard input: one, or an mbox; none in an empty one. */
export async function* mailsIn(pieces: AsyncIterable<Buffer>): AsyncGenerator<StoredMail> {
	const iterator = pieces[Symbol.asyncIterator]();
	const kept: Buffer[] = [];
	let length = 0;
	for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
		kept.push(Buffer.from(next.value));
		length += next.value.length;
		// As many bytes as it takes to know which of the two it is.
		if (length < 5) continue;
		const begin = Buffer.concat(kept);
		const whole = joined(begin, iterator);
		if (isMbox(begin)) for await (const bytes of splitMbox(whole)) yield { bytes, done: nothing };
		else yield { bytes: await firstOf(whole), done: nothing };
		return;
	}
	if (length > 0) yield { bytes: Buffer.concat(kept), done: nothing };
}

async function nothing(): Promise<void> {}

async function* joined(begin: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
	yield begin;
	for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
		yield Buffer.from(next.value);
	}
}

/** All is read, so that whoever writes a pipe can end; what is kept is bounded. */
async function firstOf(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
	const kept: Buffer[] = [];
	let length = 0;
	for await (const piece of pieces) {
		if (length < maxMailBytes) kept.push(piece);
		length += piece.length;
	}
	return Buffer.concat(kept).subarray(0, maxMailBytes);
}

function mailsOf(path: string): AsyncGenerator<StoredMail> {
	return mailsIn(createReadStream(path));
}

async function readBegin(file: string): Promise<Buffer> {
	const handle = await open(file);
	try {
		const { size } = await handle.stat();
		const bytes = Buffer.alloc(Math.min(size, maxMailBytes));
		const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
		return bytes.subarray(0, bytesRead);
	} finally {
		await handle.close();
	}
}

async function markSeen(path: string, file: string): Promise<void> {
	const name = basename(file);
	const marked = `${name}:2,S`;
	const isNameable = !name.includes(':2,') && Buffer.byteLength(marked) <= maxNameBytes;
	// Another reader of the same Maildir may have moved it.
	await rename(file, join(path, 'cur', isNameable ? marked : name)).catch((error: unknown) => {
		if (!isGone(error)) throw error;
	});
}

function isGone(error: unknown): boolean {
	return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/** Anything but the system's is a mistake of ours, and is not to be told as a file's. */
function codeOf(error: unknown): string {
	if (error instanceof Error && 'syscall' in error && 'code' in error) return String(error.code);
	throw error;
}
