/** A table's row as a recipient of a mailing, or why it is none. Pure. */
import type { Recipient } from '../api/capabilities.js';
import type { TableRow } from '../cli/tabular/finding.js';
import type { MailingColumns } from './mailing-columns.js';
import { maxRowsBytes } from './mailings.js';

/**
 * Every row becomes one, so that each line of the source has its result. An empty cell is an empty value: what the
 * row says counts, not what is known of the person otherwise.
 */
export function toRecipient(row: TableRow, { email, variables }: MailingColumns): Recipient {
	const { line, cells } = row;
	const to = (cells[email] ?? '').trim().slice(0, maxAddress);
	if (row.kind === 'bad') return { to, line, refused: { code: row.code, error: row.error } };
	const context = Object.fromEntries(variables.map(({ index, name }) => [name, cells[index] ?? '']));
	if (charactersOf(context) * maxBytesPerCharacter > maxRowsBytes && bytesOf(context) > maxRowsBytes)
		return { to, line, refused: tooLong };
	return { to, line, context };
}

/** Longer is no address; it is quoted in findings. */
const maxAddress = 320;
/** `\u0000` in JSON. */
const maxBytesPerCharacter = 6;
const tooLong = { code: 'row_too_long', error: 'the row is too long for a batch of 4 MiB' };

function charactersOf(context: Readonly<Record<string, string>>): number {
	return Object.values(context).reduce((sum, value) => sum + value.length, 0);
}

function bytesOf(context: Readonly<Record<string, string>>): number {
	return Buffer.byteLength(JSON.stringify(context)) + 1_024;
}
