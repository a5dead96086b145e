/** A ledger's lines as bytes: how they are read back, and where what can be relied on ends. */
import type { FileHandle } from 'node:fs/promises';
import { LedgerError } from './error.js';

/** One entry: anything that JSON keeps. */
export type LedgerRecord = Readonly<Record<string, unknown>>;

/** A line, and the offset behind it; `record` null: it cannot be read. */
export interface ReadLine {
	record: LedgerRecord | null;
	end: number;
}

const chunkBytes = 256 * 1024;
const newline = 10;

/** Lines that end within the first `size` bytes. Memory: a chunk, or the longest line. */
export async function* readLines(file: FileHandle, size: number): AsyncGenerator<ReadLine, void, undefined> {
	let rest = Buffer.alloc(0);
	let end = 0;
	for (let at = 0; at < size; ) {
		const { buffer, bytesRead } = await file.read(
			Buffer.allocUnsafe(chunkBytes),
			0,
			Math.min(chunkBytes, size - at),
			at,
		);
		if (bytesRead === 0) return;
		at += bytesRead;
		let text = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
		for (let cut = text.indexOf(newline); cut !== -1; cut = text.indexOf(newline)) {
			end += cut + 1;
			yield { record: parseRecord(text.toString('utf8', 0, cut)), end };
			text = text.subarray(cut + 1);
		}
		rest = text;
	}
}

/**
 * Where the last whole record ends. A torn end (a crash, a full disk) was never acknowledged and does not count; what
 * cannot be read with whole records behind it is damage that nobody foresaw: `LedgerError`.
 */
export async function findWholeEnd(file: FileHandle, size: number, path: string): Promise<number> {
	let end = 0;
	let line = 0;
	let torn: number | null = null;
	for await (const read of readLines(file, size)) {
		line += 1;
		if (read.record === null) torn ??= line;
		else if (torn !== null) throw new LedgerError('damaged', `${path} cannot be read in line ${torn}`);
		else end = read.end;
	}
	return end;
}

/** With its newline; JSON escapes those within. */
export function formatRecords(records: readonly LedgerRecord[]): string {
	return records.map((record) => `${JSON.stringify(record)}\n`).join('');
}

function parseRecord(text: string): LedgerRecord | null {
	try {
		const parsed: unknown = JSON.parse(text);
		// Any object is a record; arrays and bare values are none.
		return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
			? (parsed as LedgerRecord)
			: null;
	} catch {
		return null;
	}
}
