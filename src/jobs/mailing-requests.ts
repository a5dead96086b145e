/** Lines of NDJSON as send requests of a mailing, or why they are none. Pure but for reading. */
import { parseJson } from '../api/json.js';
import type { RequestRow } from '../api/mailings.js';
import type { Line } from '../cli/tabular/read-lines.js';
import { maxRowsBytes } from './mailings.js';

/** One row a line that is not blank, in order; what a request may say is checked where it is staged. */
export async function* requestRows(lines: AsyncIterable<Line>): AsyncGenerator<RequestRow, void, undefined> {
	for await (const line of lines) yield toRequest(line);
}

function toRequest({ line, bytes, length, isCut }: Line): RequestRow {
	if (isCut || length > maxRowsBytes - 1_024) return refused(line, 'row_too_long', 'longer than 4 MiB');
	const text = decode(bytes);
	if (text === null) return refused(line, 'encoding', 'not UTF-8');
	const parsed = parseJson(line === 1 ? text.replace(/^\uFEFF/, '') : text);
	if (parsed.kind === 'invalid') return refused(line, 'bad_json', 'not a line of JSON that can be used');
	return { line, request: parsed.value };
}

function refused(line: number, code: string, error: string): RequestRow {
	return { line, request: null, refused: { code, error } };
}

/** Null for bytes that are no UTF-8: a name would silently become another one. */
function decode(bytes: Uint8Array): string | null {
	try {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
	} catch {
		return null;
	}
}
