import { open, readdir, rename, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { codeOf } from '../../api/errors.js';
import { beginOf, maxMailBytes } from './mime.js';

export interface StoredMail {
	bytes: Buffer;
	/** Call this after the mail is recorded. Moves a mail of a Maildir from `new` to `cur`, and marks it as seen. */
	done(): Promise<void>;
}

const maxNameBytes = 255;

type OnUnreadable = (file: string, code: string) => void;

type StreamOf = (path: string) => Promise<AsyncIterable<Buffer>>;

export async function* openMailbox(
	path: string,
	{ onUnreadable, streamOf }: { onUnreadable: OnUnreadable; streamOf: StreamOf },
): AsyncGenerator<StoredMail> {
	// The path may be a pipe, such as `<(…)` in a shell.
	if (!(await stat(path)).isDirectory()) return yield* mailsIn(await streamOf(path));
	const names = await readdir(path);
	const isMaildir = names.includes('new') && names.includes('cur');
	const files = isMaildir ? await readdir(join(path, 'new')) : names;
	for (const name of files.filter((one) => !one.startsWith('.')).sort()) {
		const file = join(path, isMaildir ? 'new' : '', name);
		try {
			// Skip a pipe in the folder, because opening it would wait for a writer.
			if (!(await stat(file)).isFile()) continue;
			if (isMaildir) yield { bytes: await readBegin(file), done: () => markSeen(path, file) };
			else yield* mailsIn(await streamOf(file));
		} catch (error) {
			if (codeOf(error) === 'ENOENT') continue;
			if (!(error instanceof Error && 'syscall' in error)) throw error;
			onUnreadable(file, codeOf(error));
		}
	}
}

export async function* mailsIn(pieces: AsyncIterable<Buffer>): AsyncGenerator<StoredMail> {
	const iterator = pieces[Symbol.asyncIterator]();
	let begin = Buffer.alloc(0);
	for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
		begin = Buffer.concat([begin, next.value]);
		if (begin.length >= separatorStart.length) break;
	}
	const whole = joined(begin, iterator);
	if (isMbox(begin)) for await (const bytes of splitMbox(whole)) yield { bytes, done: nothing };
	else if (begin.length > 0) yield { bytes: await beginOf(whole), done: nothing };
}

async function nothing(): Promise<void> {}

async function* joined(begin: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
	yield begin;
	for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
		yield Buffer.from(next.value);
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
	const marked = `${name}:2,S`;
	const isNameable = !name.includes(':2,') && Buffer.byteLength(marked) <= maxNameBytes;
	// Another reader of the same Maildir may have moved the mail.
	await rename(file, join(path, 'cur', isNameable ? marked : name)).catch((error: unknown) => {
		if (codeOf(error) !== 'ENOENT') throw error;
	});
}

const separatorStart = 'From ';
const maxSeparator = 1_000;

const day = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const month = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const sender = String.raw`(?:"[^"\n]{1,64}"\S{0,255}|\S{1,320})`;
/** Matches the date format of ctime (RFC 4155), even with a time zone, and the date format of header fields. */
const moment = String.raw`${day},?[ \t]+(?:${month}[ \t]+\d{1,2}|\d{1,2}[ \t]+${month}[ \t]+\d{4})[ \t]+\d{1,2}:\d\d[^\n]{0,60}`;

/**
 * A separator is an empty line and a `From` line with a time of day. If a writer omits the empty line, the `From` line
 * must have a sender and a date, and a header field must follow. A `From` line directly after a line of dashes belongs
 * to a returned message.
 */
const separator = new RegExp(
	String.raw`(?<!\n[-=_*]{3,200}[ \t\r]{0,5})\n(?:\r?\n)?From ${sender}[ \t]+${moment}\n(?=[!-9;-~]{1,100}:)|\n\r?\nFrom [^\n]{1,700}\d:\d\d[^\n]{0,50}\n`,
);

/** Also true for a single mail that a mail server pipes with a `From ` line before its header. */
export function isMbox(begin: Buffer): boolean {
	return begin.toString('latin1', 0, separatorStart.length) === separatorStart;
}

export async function* splitMbox(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
	// No empty line precedes the first separator, so add one.
	let pending = '\n\n';
	let mail = new MailText();
	for await (const piece of pieces) {
		pending += piece.toString('latin1');
		for (let found = separator.exec(pending); found !== null; found = separator.exec(pending)) {
			mail.add(pending.slice(0, found.index + 1));
			yield* mail.bytes();
			mail = new MailText();
			pending = pending.slice(found.index + found[0].length);
		}
		// Keep the end of the text, because it may be the start of a separator.
		const rest = Math.max(0, pending.length - maxSeparator);
		mail.add(pending.slice(0, rest));
		pending = pending.slice(rest);
	}
	mail.add(pending);
	yield* mail.bytes();
}

class MailText {
	readonly #kept: string[] = [];
	#length = 0;

	add(text: string): void {
		if (this.#length < maxMailBytes) this.#kept.push(text.slice(0, maxMailBytes - this.#length));
		this.#length += text.length;
	}

	bytes(): Buffer[] {
		const text = this.#kept.join('').replace(/^(?:\r?\n)+/, '');
		return text === '' ? [] : [Buffer.from(text.replace(/^>(>*From )/gm, '$1'), 'latin1')];
	}
}
