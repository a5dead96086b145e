/**
 * Opens the rows of a campaign, a table or send requests, from a file or a pipe. Copies a pipe, which can be read once,
 * to an unnamed file, so that the hash of the rows is known before the first is used.
 */

import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import type { Attachment } from '../../../api/attachments.js';
import type {
	AcceptCounts,
	CampaignSession,
	CampaignSource,
	Campaigns,
	Recipient,
	RequestRow,
} from '../../../api/campaigns.js';
import type { Ack } from '../../../api/capabilities.js';
import { systemReason } from '../../../api/errors.js';
import { isRecord } from '../../../api/json.js';
import type { CampaignColumns } from '../../../jobs/campaigns.js';
import type { TableSource } from '../../../tables/source.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isStream } from '../../frame/sources.js';
import { assertAllowed, isLimited } from '../../verbs/allowed.js';
import { sayGuess, shortNames } from '../../verbs/importing.js';
import type { CampaignPlace } from './place.js';
import { eachResult } from './results.js';

export function nameOf(file: string): string {
	return file === '-' ? 'standard input' : basename(file);
}

export interface Input {
	bytes: TableSource;
	/** `sha256` and a file's `path`, by which another run knows the content. Empty if only the first rows are read. */
	origin: CampaignSource;
	close(): Promise<void>;
}

interface InputOptions {
	flag: '--csv' | '--batch' | '--source';
	isWhole: boolean;
}

/** Opens the file for `read`. Closes the file if `read` fails. */
export async function openInput<T>(
	cx: CommandContext,
	file: string,
	{ flag, isWhole }: InputOptions,
	read: (input: Input) => Promise<T>,
): Promise<T> {
	const isPiped = await isStream(file);
	const bytes = cx.sources.table(file, flag);
	const close = async () => undefined;
	if (!isWhole) return read({ bytes, origin: {}, close });
	if (isPiped) {
		const input = await spool(cx, bytes);
		return orClose(input, () => read(input));
	}
	const { surveySource } = await import('../../../tables/source.js');
	const { sha256 } = await surveySource(bytes, cx.signal);
	return read({ bytes, origin: { path: resolve(file), sha256 }, close });
}

/** Copies the source to an unnamed file, which disappears at `close` or when the process ends. */
async function spool(cx: CommandContext, source: TableSource): Promise<Input> {
	const { readChunks, sourceName, surveySource } = await import('../../../tables/source.js');
	const name = sourceName(source);
	const folder = cx.io.env['TMPDIR'] || tmpdir();
	const noRoom = (cause: unknown) => {
		const message = `cannot copy ${name} to ${folder}: ${systemReason(cause)}; nothing was sent`;
		throw new CliError('disk', exits.disk, message, { hint: 'set TMPDIR to another directory', cause });
	};
	const file = await openUnnamed(folder).catch(noRoom);
	const progress = cx.progress(`lines of ${name}`, null);
	try {
		const { sha256 } = await surveySource(source, cx.signal, async (chunk, lineFeeds) => {
			await file.appendFile(chunk).catch(noRoom);
			progress.update(lineFeeds);
		});
		const again = () => readChunks(file, 0);
		return { bytes: { name, again }, origin: { sha256 }, close: () => file.close() };
	} catch (error) {
		await file.close();
		if (cx.signal.aborted) await cx.note(`nothing was sent: ${name} was still being read`);
		throw error;
	} finally {
		progress.stop();
	}
}

async function openUnnamed(folder: string): Promise<FileHandle> {
	const path = join(folder, `mailctl-${randomBytes(12).toString('hex')}`);
	const file = await open(path, 'wx+', 0o600);
	return orClose(file, async () => {
		await rm(path);
		return file;
	});
}

/** Closes `opened` if the work fails. A second close has no effect. */
export async function orClose<T>(opened: { close(): Promise<void> }, work: () => Promise<T>): Promise<T> {
	try {
		return await work();
	} catch (error) {
		await opened.close();
		throw error;
	}
}

type Sink = Pick<Campaigns, 'put' | 'putRequests' | 'complete'>;

interface Reading<Row> {
	rows: AsyncIterable<Row>;
	/** The origin of the rows and how they are read. Another run with the same source gets the same rows. */
	source: CampaignSource;
	addressesOf(row: Row): readonly string[];
	put(campaigns: Sink, id: string, first: number, rows: readonly Row[]): Promise<Ack<AcceptCounts>>;
	batchBytes?: number;
	close(): Promise<void>;
}

/** Rows that can be read only once, from the first. Close them unless `stage` was called, which closes them. */
export class OpenRows<Row> {
	readonly rows: AsyncIterable<Row>;
	readonly source: CampaignSource;
	/** True once a request with an unsubscribe link was read. */
	hasLinks = false;
	readonly #cx: CommandContext;
	readonly #reading: Reading<Row>;

	constructor(cx: CommandContext, reading: Reading<Row>) {
		this.rows = reading.rows;
		this.source = reading.source;
		this.#cx = cx;
		this.#reading = reading;
	}

	close(): Promise<void> {
		return this.#reading.close();
	}

	/** Throws `UsageError` at a row with an address that the profile does not allow. */
	allowed(): AsyncIterable<Row> {
		if (!isLimited(this.#cx)) return this.rows;
		return mapped(this.rows, (row) => {
			assertAllowed(this.#cx, this.#reading.addressesOf(row));
			return row;
		});
	}

	async stage(campaigns: Sink, session: CampaignSession): Promise<void> {
		const { stageRows } = await import('../../../jobs/campaigns.js');
		const { id } = session;
		const { batchBytes } = this.#reading;
		const progress = this.#cx.progress('staging', null, session.position);
		try {
			await stageRows<Row>({
				session,
				rows: this.allowed(),
				sink: {
					put: (first, rows) => this.#reading.put(campaigns, id, first, rows),
					complete: (position) => campaigns.complete(id, { position }),
				},
				signal: this.#cx.signal,
				onProgress: (count) => progress.update(count, ''),
				...(batchBytes !== undefined && { batchBytes }),
			});
		} finally {
			progress.stop();
			await this.close();
		}
	}
}

/** Opens the rows that are not staged yet. Null if all are staged. */
export type Rest = (() => Promise<Pick<OpenRows<unknown>, 'stage' | 'close'>>) | null;

export async function stageRest(
	cx: CommandContext,
	{ campaigns }: CampaignPlace,
	session: CampaignSession,
	{ of, rows }: { of: string; rows: Rest },
): Promise<readonly string[]> {
	const { id, key, position } = session;
	if (rows !== null) {
		await cx.note(`campaign ${key}: ${position === 0 ? 'staging' : 'continuing with'} ${of}`);
		await (await rows()).stage(campaigns, session);
	} else if (isLimited(cx))
		// An earlier run staged the rows, perhaps with another profile.
		for await (const result of eachResult(cx, campaigns, id))
			if (result.id !== null) assertAllowed(cx, [result.to]);
	return [];
}

export interface OpenTable {
	opened: OpenRows<Recipient>;
	header: readonly string[];
	columns: CampaignColumns;
}

/** Columns are found by name and by `map`, unless an earlier run kept them. Throws `TableError` and `UsageError`. */
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
	const table = await openTable(input.bytes, { encoding: how.encoding ?? 'auto', signal: cx.signal });
	return orClose(table, async () => {
		await sayGuess(cx, sourceName(input.bytes), table);
		const { header, encoding, delimiter } = table;
		const columns = 'columns' in how ? how.columns : await columnsOf(cx, header, how.map);
		const opened = new OpenRows<Recipient>(cx, {
			rows: mapped(table.rows, (row) => toRecipient(row, columns)),
			source: { ...input.origin, kind: 'csv', encoding, delimiter, columns: JSON.stringify(columns) },
			addressesOf: ({ to, refused }) => (refused === undefined ? [to] : []),
			put: (campaigns, id, first, recipients) => campaigns.put(id, { first, recipients }),
			close: async () => {
				await table.close();
				await input.close();
			},
		});
		return { opened, header, columns };
	});
}

async function columnsOf(cx: CommandContext, header: readonly string[], map: readonly string[]) {
	const { campaignColumns } = await import('../../../jobs/campaigns.js');
	const result = campaignColumns(header, map);
	if (result.kind === 'refused')
		throw new UsageError('the columns cannot be used as they are', {
			details: result.findings.map(({ message }) => message),
		});
	const { ignored } = result.columns;
	if (ignored.length > 0) await cx.note(`left out: ${shortNames(ignored).join(', ')}`);
	return result.columns;
}

interface AddedToRequests {
	attachments: readonly Attachment[];
	track?: string | undefined;
}

/** Limits a batch, because a request has up to a thousand recipients, and a batch is one transaction. */
const requestBytes = 512 * 1024;

export async function openRequestRows(
	cx: CommandContext,
	input: Input,
	added: AddedToRequests,
): Promise<OpenRows<RequestRow>> {
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
	const opened = new OpenRows<RequestRow>(cx, {
		rows: mapped(requestRows(readLines(all())), (row) => {
			opened.hasLinks ||= hasLinks(row);
			return withAdditions(row, added);
		}),
		source: {
			...input.origin,
			kind: 'batch',
			...(attachments.length > 0 && { attachments: JSON.stringify(attachments) }),
			...(track === 'off' && { track }),
		},
		addressesOf: addressesOfRequest,
		put: (campaigns, id, first, requests) => campaigns.putRequests(id, { first, requests }),
		batchBytes: requestBytes,
		close,
	});
	return opened;
}

function hasLinks({ request }: RequestRow): boolean {
	if (!isRecord(request)) return false;
	const { type, text_body, html_body } = request;
	return type === 'BULK' || [text_body, html_body].some((body) => /#unsubscribe_url#/.test(String(body)));
}

function withAdditions(row: RequestRow, { attachments, track }: AddedToRequests): RequestRow {
	if (!isRecord(row.request)) return row;
	const own = row.request['attachments'];
	const request = { ...row.request, ...(track === 'off' && { disable_tracking: true }) };
	// Keep attachments that are not an array, so that staging refuses them.
	if (attachments.length === 0 || (own !== undefined && !Array.isArray(own))) return { ...row, request };
	return { ...row, request: { ...request, attachments: [...(own ?? []), ...attachments] } };
}

/** Includes cc and bcc. Returns none for a request of another shape, which a later check reports. */
function addressesOfRequest({ request }: RequestRow): string[] {
	if (!isRecord(request)) return [];
	const values = ['to', 'cc', 'bcc'].flatMap((key): unknown => request[key]);
	return values.filter((one) => typeof one === 'string');
}

/** Opens the rows of an earlier run with its options. Null if the content has changed. */
export async function openRowsAgain(
	cx: CommandContext,
	file: string,
	source: CampaignSource,
): Promise<Pick<OpenRows<never>, 'stage' | 'close'> | null> {
	const { sha256, kind, encoding, track, columns = '', attachments = '[]' } = source;
	return openInput(cx, file, { flag: '--source', isWhole: true }, async (input) => {
		if (input.origin['sha256'] !== sha256) {
			await input.close();
			return null;
		}
		if (kind === 'batch')
			return openRequestRows(cx, input, { attachments: JSON.parse(attachments) as Attachment[], track });
		const how = { columns: JSON.parse(columns) as CampaignColumns, encoding };
		return (await openTableRows(cx, input, how)).opened;
	});
}

async function* mapped<A, B>(rows: AsyncIterable<A>, map: (row: A) => B): AsyncGenerator<B, void, undefined> {
	for await (const row of rows) yield map(row);
}
