/**
 * The rows of a campaign: a table or send requests, from a file or a pipe. A pipe comes once: it is kept in a file without a
 * name, so that its rows are known by their hash before any is used.
 */

import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import type { Attachment } from '../../../api/attachments.js';
import type { CampaignSource, Recipient, RequestRow } from '../../../api/campaigns.js';
import { systemReason } from '../../../api/errors.js';
import { isRecord } from '../../../api/json.js';
import { withoutDefaults } from '../../../api/variables.js';
import { type CampaignColumns, isVariableName, misnamedVariables } from '../../../jobs/campaigns.js';
import type { TableSource } from '../../../tables/source.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isStream } from '../../frame/sources.js';
import { numberText } from '../../render/units.js';
import { sayGuess, shortNames } from '../../verbs/importing.js';
import { contentOf, isOpaque, missingVariables, openVariables, type Prepared } from './request.js';

export interface Input {
	bytes: TableSource;
	/** `sha256`, and the `path` of a file: another run can tell whether it has the same. Empty where only the first rows are read. */
	origin: CampaignSource;
	close(): Promise<void>;
}

interface Opened<Row> {
	/** How they are read, as a campaign keeps it beside the origin: the same bytes give the same rows then. */
	reading: CampaignSource;
	rows: AsyncIterable<Row>;
	close(): Promise<void>;
}

export interface OpenTable extends Opened<Recipient> {
	kind: 'csv';
	header: readonly string[];
	columns: CampaignColumns;
}

export interface OpenRequests extends Opened<RequestRow> {
	kind: 'batch';
}

export type RowsFlag = '--csv' | '--batch' | '--source';

export function nameOf(file: string): string {
	return file === '-' ? 'standard input' : basename(file);
}

/** For a look at the first rows: a pipe is read no further. */
export function glance(cx: CommandContext, file: string, flag: RowsFlag): Input {
	return { bytes: cx.sources.table(file, flag), origin: {}, close: async () => undefined };
}

export async function known(cx: CommandContext, file: string, flag: RowsFlag): Promise<Input> {
	if (await isStream(file)) return spool(cx, cx.sources.table(file, flag));
	const { surveySource } = await import('../../../tables/source.js');
	const { sha256 } = await surveySource(file, cx.signal);
	return { ...glance(cx, file, flag), origin: { path: resolve(file), sha256 } };
}

/**
 * One message a row. `encoding`: undefined: it is looked for. `columns`: those of an earlier run; else they are found by
 * name and by `map`. Throws `TableError`, and `UsageError` for the columns.
 */
export async function openTableRows(
	cx: CommandContext,
	input: Input,
	how: ({ map: readonly string[] } | { columns: CampaignColumns }) & { encoding: string | undefined },
): Promise<OpenTable> {
	const [{ openTable }, { sourceName }, { toRecipient }] = await Promise.all([
		import('../../../tables/read-table.js'),
		import('../../../tables/source.js'),
		import('../../../jobs/campaigns.js'),
	]);
	const opening = openTable(input.bytes, { encoding: how.encoding ?? 'auto', signal: cx.signal });
	const table = await opening.catch(async (error: unknown) => {
		await input.close();
		throw error;
	});
	const close = async () => {
		await table.close();
		await input.close();
	};
	try {
		await sayGuess(cx, sourceName(input.bytes), table);
		const { header, encoding, delimiter } = table;
		const columns = 'columns' in how ? how.columns : await columnsOf(cx, header, how.map);
		const reading = { kind: 'csv', encoding, delimiter, columns: JSON.stringify(columns) };
		const rows = mapped(table.rows, (row) => toRecipient(row, columns));
		return { kind: 'csv', rows, header, columns, reading, close };
	} catch (error) {
		await close();
		throw error;
	}
}

export function keptColumns({ columns = '' }: CampaignSource): CampaignColumns {
	return JSON.parse(columns) as CampaignColumns;
}

interface AddedToRequests {
	attachments: readonly Attachment[];
	track?: string | undefined;
}

export function keptAdditions({ attachments = '[]', track }: CampaignSource): AddedToRequests {
	return { attachments: JSON.parse(attachments) as readonly Attachment[], track };
}

export async function openRequestRows(
	cx: CommandContext,
	input: Input,
	added: AddedToRequests,
): Promise<OpenRequests> {
	const [{ utf16Fault }, { readBytes, sourceName }, { readLines }, { requestRows }] = await Promise.all([
		import('../../../tables/encoding.js'),
		import('../../../tables/source.js'),
		import('../../../tables/read-lines.js'),
		import('../../../jobs/campaigns.js'),
	]);
	const bytes = readBytes(input.bytes, cx.signal);
	const close = async () => {
		await bytes.return();
		await input.close();
	};
	const first = await bytes.next();
	const fault = first.done ? null : utf16Fault(Buffer.from(first.value));
	if (fault !== null) {
		await close();
		throw new UsageError(`${sourceName(input.bytes)} ${fault}`);
	}
	async function* all() {
		if (!first.done) yield first.value;
		yield* bytes;
	}
	const { attachments, track } = added;
	const reading = {
		kind: 'batch',
		...(attachments.length > 0 && { attachments: JSON.stringify(attachments) }),
		...(track === 'off' && { track }),
	};
	const rows = mapped(requestRows(readLines(all())), (row) => withAdditions(row, added));
	return { kind: 'batch', reading, rows, close };
}

function withAdditions(row: RequestRow, { attachments, track }: AddedToRequests): RequestRow {
	if (!isRecord(row.request)) return row;
	const own = row.request['attachments'];
	const request = { ...row.request, ...(track === 'off' && { disable_tracking: true }) };
	// Staging refuses anything else than a list.
	if (attachments.length === 0 || (own !== undefined && !Array.isArray(own))) return { ...row, request };
	return { ...row, request: { ...request, attachments: [...(own ?? []), ...attachments] } };
}

async function columnsOf(
	cx: CommandContext,
	header: readonly string[],
	map: readonly string[],
): Promise<CampaignColumns> {
	const { campaignColumns } = await import('../../../jobs/campaigns.js');
	const result = campaignColumns(header, map);
	if (result.kind === 'refused') {
		throw new UsageError('the columns cannot be used as they are', {
			details: result.findings.map(({ message }) => message),
		});
	}
	const { ignored } = result.columns;
	if (ignored.length > 0) await cx.note(`left out: ${shortNames(ignored).join(', ')}`);
	return result.columns;
}

export async function* mapped<A, B>(
	rows: AsyncIterable<A>,
	map: (row: A) => B,
): AsyncGenerator<B, void, undefined> {
	for await (const row of rows) yield map(row);
}

/**
 * Reads the source to its end into a file without a name, gone with `close` and with the process. Throws `CliError` (exit
 * 74) where the temporary folder cannot take it.
 */
async function spool(cx: CommandContext, source: TableSource): Promise<Input> {
	const { readChunks, sourceName, surveySource } = await import('../../../tables/source.js');
	const name = sourceName(source);
	const folder = cx.io.env['TMPDIR'] || tmpdir();
	const file = await openUnnamed(folder).catch((error: unknown) => {
		throw unkept(error, `${folder} takes no file for ${name}`);
	});
	// Typed rows are on the screen already: a progress line would stand between them.
	const isTyped = typeof source !== 'string' && cx.io.stdin.isTTY;
	const progress = isTyped ? null : cx.progress(`lines of ${name}`, null);
	let bytes = 0;
	try {
		const { sha256 } = await surveySource(source, cx.signal, async (chunk, lineFeeds) => {
			await file.appendFile(chunk).catch((error: unknown) => {
				const took = `${numberText(Math.round(bytes / 1_000_000))} MB`;
				throw unkept(error, `${folder} has no room for ${name}, of which it took ${took}`);
			});
			bytes += chunk.length;
			progress?.update(lineFeeds);
		});
		const again = () => readChunks(file, 0);
		return { bytes: { name, again }, origin: { sha256 }, close: () => file.close() };
	} catch (error) {
		await file.close();
		if (cx.signal.aborted) await cx.note(`nothing was sent: ${name} was still being read`);
		throw error;
	} finally {
		progress?.stop();
	}
}

async function openUnnamed(folder: string): Promise<FileHandle> {
	const path = join(folder, `mailctl-${randomBytes(12).toString('hex')}`);
	const file = await open(path, 'wx+', 0o600);
	try {
		await rm(path);
		return file;
	} catch (error) {
		await file.close();
		throw error;
	}
}

function unkept(cause: unknown, what: string): CliError {
	return new CliError('disk', exits.disk, `${what}: ${systemReason(cause)}; nothing was sent`, {
		hint: 'TMPDIR names another folder; or put it into a file and give that',
		cause,
	});
}

/**
 * A column whose name is not a variable's would show as `#First Name#` in every message. Throws `UsageError` naming each;
 * a text that only the service knows is not looked at.
 */
export async function assertNoUnknownColumns(
	cx: CommandContext,
	prepared: Prepared,
	{ header, columns }: OpenTable,
): Promise<void> {
	if (isOpaque(prepared)) return;
	const written = contentOf(prepared);
	// A default would hide the mistake in every message.
	const content = {
		...written,
		subject: withoutDefaults(written.subject),
		text: written.text && withoutDefaults(written.text),
		html: written.html && withoutDefaults(written.html),
	};
	const texts = [content.subject, content.text ?? '', content.html ?? ''];
	const misnamed = misnamedVariables(texts, header, columns);
	if (misnamed.length === 0) return;
	const context = prepared.request.context ?? {};
	const open = openVariables(content, context);
	const missing = await missingVariables(cx, content, context);
	// The columns of a table count; a field stands in only for a column that was left out.
	const refused = misnamed.filter(
		({ written, variable }) =>
			!isVariableName(written) || (variable === null ? missing : open).includes(written),
	);
	if (refused.length === 0) return;
	throw new UsageError('the message names columns that are not variables; nothing was sent', {
		details: refused.map(({ written, column, variable }) =>
			variable === null
				? `#${written}#: --map "${column}=NAME" makes the column "${column}" a variable`
				: `#${written}#: the column "${column}" is #${variable}#`,
		),
		hint: 'a variable has letters A to Z, digits and _, and case counts; --no-strict-vars leaves it as it is',
	});
}
