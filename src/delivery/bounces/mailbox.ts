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

/**
 * Mails of a path, in the order of their names. Throws the system's error where the path cannot be read; a file that
 * somebody takes away meanwhile is left out.
 */
export async function* openMailbox(path: string): AsyncGenerator<StoredMail> {
	const found = await stat(path);
	if (!found.isDirectory()) return yield* mailsOf(path);
	const names = await readdir(path);
	if (names.includes('new') && names.includes('cur')) return yield* maildir(path);
	for (const name of names.filter((one) => !one.startsWith('.')).sort()) {
		yield* unlessGone(mailsOf(join(path, name)));
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

async function* mailsOf(path: string): AsyncGenerator<StoredMail> {
	if (!(await stat(path)).isFile()) return;
	yield* mailsIn(createReadStream(path));
}

async function* maildir(path: string): AsyncGenerator<StoredMail> {
	const names = await readdir(join(path, 'new'));
	for (const name of names.filter((one) => !one.startsWith('.')).sort()) {
		const file = join(path, 'new', name);
		const bytes = await readBegin(file).catch(orGone);
		if (bytes !== null) yield { bytes, done: () => markSeen(path, file) };
	}
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
	// Another reader of the same Maildir may have moved it.
	await rename(file, join(path, 'cur', name.includes(':2,') ? name : `${name}:2,S`)).catch(orGone);
}

async function* unlessGone(mails: AsyncIterable<StoredMail>): AsyncGenerator<StoredMail> {
	try {
		yield* mails;
	} catch (error) {
		orGone(error);
	}
}

function orGone(error: unknown): null {
	if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
	throw error;
}
