import { readFileSync, type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { codeOf } from '../../api/errors.js';
import { utf8Fault } from '../../tables/encoding.js';
import type { TableSource } from '../../tables/source.js';
import { sizeText } from '../render/units.js';
import type { ContentSource, FileSource } from './command.js';
import { UsageError } from './errors.js';
import type { Io } from './io.js';

export interface Sources {
	file(text: string, flag: string): FileSource;
	content(text: string, flag: string): ContentSource;
	stdin(flag: string): Readable;
	table(text: string, flag: string): TableSource;
}

export function inputName(text: string): string {
	return ['/dev/stdin', '/dev/fd/0', '/proc/self/fd/0'].includes(text) ? '-' : text;
}

/** True if the bytes can be read only once: standard input (`-`), a pipe or a device. */
export async function isStream(path: string): Promise<boolean> {
	if (path === '-') return true;
	const found = await stat(path).catch(() => null);
	return found !== null && !found.isFile() && !found.isDirectory();
}

/**
 * Create one `Sources` per command. A second flag that reads standard input throws `UsageError`. Files are opened when
 * they are read. When the signal is aborted, reading rejects with the reason of the signal.
 */
export function createSources(io: Io, signal: AbortSignal): Sources {
	let taken: string | null = null;
	const stdin = (flag: string): Readable => {
		if (taken !== null && taken !== flag)
			throw new UsageError(`${taken} and ${flag} both read standard input; use a file for one of them`);
		if (taken === null) endWith(io.stdin.raw, signal);
		taken = flag;
		return io.stdin.raw;
	};
	const file = (text: string, flag: string): FileSource => {
		if (inputName(text) === '-') return streamSource('standard input', stdin(flag));
		return fileSource(text, flag, signal);
	};
	return {
		stdin,
		file,
		table: (text, flag) => (inputName(text) === '-' ? { name: 'standard input', stream: stdin(flag) } : text),
		content: (text, flag) => {
			if (text === '-') return file('-', flag);
			if (text.startsWith('@')) return file(text.slice(1), flag);
			return { name: flag, text: async () => text };
		},
	};
}

/** After an abort, an open terminal would keep the process running until the user presses Enter. */
function endWith(stream: Readable, signal: AbortSignal): void {
	stream.on('error', () => undefined);
	const end = () => stream.destroy(signal.reason);
	if (signal.aborted) end();
	else signal.addEventListener('abort', end, { once: true });
}

/**
 * Larger inputs are refused, because an endless device or pipe would use up all memory. Services accept much less. The
 * limit does not apply to tables, which are streamed.
 */
const maxBytes = 64 * 1024 * 1024;

async function readAll(stream: Readable, name: string, most = maxBytes): Promise<Buffer> {
	const chunks: Buffer[] = [];
	let size = 0;
	for await (const chunk of stream) {
		chunks.push(Buffer.from(chunk));
		size += chunk.length;
		if (size > most) throw new UsageError(`${name} is larger than ${sizeText(most)}`);
	}
	return Buffer.concat(chunks);
}

function streamSource(name: string, stream: Readable): FileSource {
	const bytes = (most?: number) => readAll(stream, name, most);
	return { name, path: null, bytes, text: async () => decode(await bytes(), name) };
}

/** Reads smaller files synchronously. A stream takes 3 ms longer, which would delay every command with a token file. */
const smallBytes = 64 * 1024;

function fileSource(path: string, flag: string, signal: AbortSignal): FileSource {
	const bytes = async (most?: number) => {
		const found = assertFile(path, flag);
		try {
			const isSmall = found.size > 0 && found.size <= Math.min(smallBytes, most ?? smallBytes);
			if (found.isFile() && isSmall) return readFileSync(path);
			const { fileStream } = await import('../../tables/source.js');
			return await readAll(await fileStream(path, signal), path, most);
		} catch (error) {
			signal.throwIfAborted();
			return refuse(error, path, flag);
		}
	};
	return { name: path, path, bytes, text: async () => decode(await bytes(), path) };
}

export function assertFile(path: string, flag: string): Stats {
	let found: Stats;
	try {
		found = statSync(path);
	} catch (error) {
		return refuse(error, path, flag);
	}
	if (found.isDirectory()) throw new UsageError(`${flag}: ${path} is a directory`);
	return found;
}

function refuse(error: unknown, path: string, flag: string): never {
	if (error instanceof UsageError) throw error;
	const code = codeOf(error);
	const why = code === 'ENOENT' ? 'no such file' : code === 'EACCES' ? 'permission denied' : String(code);
	throw new UsageError(`${flag}: ${path}: ${why}`, { cause: error });
}

/** Decodes UTF-8, and throws for invalid bytes: a replacement character would end up in mails. */
function decode(bytes: Buffer, name: string): string {
	const fault = utf8Fault(bytes);
	if (fault !== null) throw new UsageError(`${name} ${fault}`);
	return new TextDecoder().decode(bytes);
}
