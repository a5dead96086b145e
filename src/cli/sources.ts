/** Files, `@FILE` and `-` as values: opened when read, and standard input given to one reader only. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { ContentSource, FileSource } from './command.js';
import { UsageError } from './errors.js';
import type { Io } from './io.js';
import type { TableSource } from './tabular/source.js';

export interface Sources {
	file(text: string, flag: string): FileSource;
	content(text: string, flag: string): ContentSource;
	/** Standard input, for an argument `-`. */
	stdin(flag: string): Readable;
	/** A table that is an argument: a file's name, or standard input for `-`. */
	table(text: string): TableSource;
}

/** A folder where a file is wanted (exit 2): a command that knows what to do with one says so. */
export class FolderGiven extends UsageError {}

/**
 * One for a whole call, so that standard input is given once: a second flag that wants it throws `UsageError`. Nothing
 * is opened before it is read. Standard input ends with the signal, whose reason its reader gets.
 */
export function createSources(io: Io, signal: AbortSignal): Sources {
	let taken: string | null = null;
	const stdin = (flag: string): Readable => {
		if (taken !== null && taken !== flag)
			throw new UsageError(`${flag}: standard input is already read by ${taken}`);
		if (taken === null) endWith(io.stdin.raw, signal);
		taken = flag;
		return io.stdin.raw;
	};
	const file = (text: string, flag: string): FileSource => {
		if (text === '-') return streamSource('standard input', stdin(flag));
		return fileSource(text, flag);
	};
	return {
		stdin,
		file,
		table: (text) => (text === '-' ? { name: 'standard input', stream: stdin('-') } : text),
		content: (text, flag) => {
			if (text === '-') return file('-', flag);
			if (text.startsWith('@')) return file(text.slice(1), flag);
			return { name: flag, text: async () => text };
		},
	};
}

/** A terminal that is still read keeps the process until Enter is pressed, and takes what is typed for the shell. */
function endWith(stream: Readable, signal: AbortSignal): void {
	// Whoever was to read it may not have begun: then nobody else listens.
	stream.on('error', () => undefined);
	const end = () => stream.destroy(signal.reason);
	if (signal.aborted) end();
	else signal.addEventListener('abort', end, { once: true });
}

/** Far above anything a service takes; what never ends (a device, a pipe) must not fill the memory. Tables are streamed. */
const maxBytes = 64 * 1024 * 1024;

async function readAll(stream: Readable, name: string): Promise<Buffer> {
	const chunks: Buffer[] = [];
	let size = 0;
	for await (const chunk of stream) {
		chunks.push(Buffer.from(chunk));
		size += chunk.length;
		if (size > maxBytes) throw new UsageError(`${name} holds more than 64 MiB`);
	}
	return Buffer.concat(chunks);
}

function streamSource(name: string, stream: Readable): FileSource {
	const bytes = () => readAll(stream, name);
	return { name, path: null, bytes, text: async () => decode(await bytes(), name), open: () => stream };
}

function fileSource(path: string, flag: string): FileSource {
	const bytes = async () => {
		await refuseFolder(path, flag);
		return readAll(createReadStream(path), path).catch((error: unknown) => refuse(error, path, flag));
	};
	return {
		name: path,
		path,
		bytes,
		text: async () => decode(await bytes(), path),
		open: () => createReadStream(path),
	};
}

async function refuseFolder(path: string, flag: string): Promise<void> {
	const found = await stat(path).catch((error: unknown) => refuse(error, path, flag));
	if (found.isDirectory()) throw new FolderGiven(`${flag}: ${path} is a directory`);
}

function refuse(error: unknown, path: string, flag: string): never {
	if (error instanceof UsageError) throw error;
	const code = error instanceof Error && 'code' in error ? error.code : '';
	const why =
		code === 'ENOENT' ? 'no such file' : code === 'EACCES' ? 'no permission to read it' : String(code);
	throw new UsageError(`${flag}: ${path}: ${why}`, { cause: error });
}

/** UTF-8 or nothing: a silent replacement character would end up in somebody's mail. */
function decode(bytes: Buffer, name: string): string {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
	} catch (cause) {
		throw new UsageError(`${name} is not UTF-8 text`, { cause });
	}
}
