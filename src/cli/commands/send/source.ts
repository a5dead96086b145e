/** Where the rows of a job come from: a table or send requests, from a file or standard input, read more than once. */
import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { Recipient } from '../../../api/capabilities.js';
import type { MailingSource, RequestRow } from '../../../api/mailings.js';
import type { MailingColumns } from '../../../jobs/mailing-columns.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';

/** Rows that are read once, and what lets go of them early. */
export interface OpenRows<Row> {
	/** What the same rows can be had from again, as a mailing keeps it. */
	source: MailingSource;
	rows: AsyncIterable<Row>;
	close(): Promise<void>;
}

/** Rows of a table, and what its header came to. */
export interface OpenTable extends OpenRows<Recipient> {
	header: readonly string[];
	columns: MailingColumns;
}

/** For people: the file's name, or standard input. */
export function sourceName(file: string): string {
	return file === '-' ? 'standard input' : basename(file);
}

/**
 * A row a message. `columns`: as an earlier run took them, so that nothing is found out anew; else found by name and by
 * `map`. Throws `TableError` for what is no table and `UsageError` for columns that cannot be used.
 */
export async function openTableRows(
	cx: CommandContext,
	file: string,
	how: { map: readonly string[] } | { columns: MailingColumns },
): Promise<OpenTable> {
	const [{ openTable }, { toRecipient }] = await Promise.all([
		import('../../tabular/read-table.js'),
		import('../../../jobs/mailing-rows.js'),
	]);
	const table = await openTable(cx.sources.table(file), { signal: cx.signal });
	try {
		const columns = 'columns' in how ? how.columns : await columnsOf(cx, table.header, how.map);
		const { encoding, delimiter } = table;
		const reading = { encoding, delimiter, columns: JSON.stringify(columns) };
		const source = { kind: 'csv', ...(await originOf(cx, file)), ...reading };
		const rows = mapped(table.rows, (row) => toRecipient(row, columns));
		return { source, rows, header: table.header, columns, close: table.close };
	} catch (error) {
		await table.close();
		throw error;
	}
}

/** The columns a mailing keeps: written by `openTableRows` and by nothing else. */
export function keptColumns({ columns = '' }: MailingSource): MailingColumns {
	return JSON.parse(columns) as MailingColumns;
}

/** A line a send request. */
export async function openRequestRows(cx: CommandContext, file: string): Promise<OpenRows<RequestRow>> {
	const [{ readBytes }, { readLines }, { requestRows }] = await Promise.all([
		import('../../tabular/source.js'),
		import('../../tabular/read-lines.js'),
		import('../../../jobs/mailing-requests.js'),
	]);
	const source = { kind: 'batch', ...(await originOf(cx, file)) };
	const bytes = readBytes(cx.sources.table(file), cx.signal);
	return { source, rows: requestRows(readLines(bytes)), close: () => bytes.return().then(() => undefined) };
}

/** Standard input and pipes have no second time: another run is never taken for the same rows. */
async function originOf(cx: CommandContext, file: string): Promise<Record<string, string>> {
	if (file === '-' || !(await stat(file)).isFile()) return { once: randomUUID() };
	const { surveySource } = await import('../../tabular/source.js');
	const { sha256 } = await surveySource(file, cx.signal);
	return { path: resolve(file), sha256 };
}

async function columnsOf(
	cx: CommandContext,
	header: readonly string[],
	map: readonly string[],
): Promise<MailingColumns> {
	const { mailingColumns } = await import('../../../jobs/mailing-columns.js');
	const result = mailingColumns(header, map);
	if (result.kind === 'refused') {
		throw new UsageError('the columns cannot be used as they are', {
			details: result.findings.map(({ message }) => message),
		});
	}
	const { ignored } = result.columns;
	if (ignored.length > 0) await cx.note(`left out: ${ignored.join(', ')}`);
	return result.columns;
}

async function* mapped<A, B>(rows: AsyncIterable<A>, map: (row: A) => B): AsyncGenerator<B, void, undefined> {
	for await (const row of rows) yield map(row);
}
