/**
 * The rows of a table, or the send requests of a batch, as the recipients of a campaign. A pipe is copied to an unnamed
 * file, because staging needs the hash of all rows before the first row. `survey` checks the rows by the rules of
 * staging.
 */

import { randomBytes } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseAddress } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
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
import { ApiError, invalid, systemReason } from '../../../api/errors.js';
import { builtInVariables, type SendRequest } from '../../../api/inputs.js';
import { isRecord } from '../../../api/json.js';
import { type CheckedSend, sendFields } from '../../../api/messages.js';
import { noValueText } from '../../../api/refusals.js';
import { usedVariables, withoutDefaults } from '../../../api/variables.js';
import { parseRecipient, parseRequest } from '../../../engine/rules/campaign-rows.js';
import { missingVariables } from '../../../engine/rules/subscribers.js';
import {
	type CampaignColumns,
	campaignColumns,
	isVariableName,
	misnamedVariables,
	requestRows,
	stageRows,
	toRecipient,
} from '../../../jobs/campaigns.js';
import { utf16Fault } from '../../../tables/encoding.js';
import { readLines } from '../../../tables/read-lines.js';
import { openTable } from '../../../tables/read-table.js';
import { readBytes, readChunks, sourceName, surveySource, type TableSource } from '../../../tables/source.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isStream } from '../../frame/sources.js';
import { given } from '../../frame/values.js';
import { assertAllowed, isLimited } from '../../verbs/allowed.js';
import { sayGuess, shortNames } from '../../verbs/importing.js';
import { foreseeing } from './delivery.js';
import { Draft, type First, fieldsOf } from './draft.js';
import type { SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import { isShown, shownKey } from './preview.js';
import { eachResult, type Finding, Findings, missingVariable } from './report.js';
import { findTemplate, namedIn, prepare, readAttachments } from './request.js';
import type { Audience, Depth, Source, Survey } from './stage.js';

interface Input {
	bytes: TableSource;
	/** The hash and the path, by which another run recognizes the content. Empty if only the first rows are read. */
	origin: CampaignSource;
	close(): Promise<void>;
}

async function openInput<T>(
	cx: CommandContext,
	file: string,
	{ flag, isWhole }: { flag: string; isWhole: boolean },
	read: (input: Input) => Promise<T>,
): Promise<T> {
	const bytes = cx.sources.table(file, flag);
	const close = async () => undefined;
	if (!isWhole) return read({ bytes, origin: {}, close });
	if (await isStream(file)) {
		const input = await spool(cx, bytes);
		return orClose(input, () => read(input));
	}
	const { sha256 } = await surveySource(bytes, cx.signal);
	return read({ bytes, origin: { path: resolve(file), sha256 }, close });
}

/** Copies the source to an unnamed file, which disappears at `close` or when the process ends. */
async function spool(cx: CommandContext, source: TableSource): Promise<Input> {
	const name = sourceName(source);
	const folder = cx.io.env['TMPDIR'] || tmpdir();
	const noRoom = (cause: unknown) => {
		const message = `cannot copy ${name} to ${folder}: ${systemReason(cause)}; nothing was sent`;
		throw new CliError('disk', exits.disk, message, { hint: 'set TMPDIR to another directory', cause });
	};
	const path = join(folder, `mailctl-${randomBytes(12).toString('hex')}`);
	const file = await open(path, 'wx+', 0o600).catch(noRoom);
	const progress = cx.progress(`lines of ${name}`, null);
	try {
		await rm(path).catch(noRoom);
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

/** `work` may close `opened` itself, because a second close has no effect. */
async function orClose<T>(opened: { close(): Promise<void> }, work: () => Promise<T>): Promise<T> {
	try {
		return await work();
	} catch (error) {
		await opened.close();
		throw error;
	}
}

type Sink = Pick<Campaigns, 'put' | 'putRequests' | 'complete'>;

/** Rows that can be read only once. `stageRest` closes them; every other caller must close them. */
interface OpenRows<Row> {
	rows: AsyncIterable<Row>;
	/** The origin of the rows and how they are read. A run with the same source reads the same rows. */
	source: CampaignSource;
	/** True once a request with an unsubscribe link was read. */
	hasLinks: boolean;
	addressesOf(row: Row): readonly string[];
	put(campaigns: Sink, id: string, first: number, rows: readonly Row[]): Promise<Ack<AcceptCounts>>;
	batchBytes?: number;
	close(): Promise<void>;
}

function allowedRows<Row>(cx: CommandContext, { rows, addressesOf }: OpenRows<Row>) {
	if (!isLimited(cx)) return rows;
	return mapped(rows, (row) => {
		assertAllowed(cx, addressesOf(row));
		return row;
	});
}

/** Opens the rows that are not staged yet. Null if all are staged. */
export type Rest = (() => Promise<OpenRows<unknown>>) | null;

export async function stageRest(
	cx: CommandContext,
	{ campaigns }: CampaignPlace,
	session: CampaignSession,
	{ of, rows }: { of: string; rows: Rest },
): Promise<readonly string[]> {
	const { id, key, position } = session;
	if (rows === null) {
		// Check the staged rows, because the profile of the earlier run may have allowed other recipients.
		if (isLimited(cx))
			for await (const { id: message, to } of eachResult(cx, campaigns, id))
				if (message !== null) assertAllowed(cx, [to]);
		return [];
	}
	await cx.note(`campaign ${key}: ${position === 0 ? 'staging' : 'continuing with'} ${of}`);
	const opened = await rows();
	const progress = cx.progress('staging', null, position);
	try {
		await stageRows({
			session,
			rows: allowedRows(cx, opened),
			sink: {
				put: (first, batch) => opened.put(campaigns, id, first, batch),
				complete: (rows) => campaigns.complete(id, { position: rows }),
			},
			signal: cx.signal,
			onProgress: (count) => progress.update(count, ''),
			...given({ batchBytes: opened.batchBytes }),
		});
		return [];
	} finally {
		progress.stop();
		await opened.close();
	}
}

interface OpenTable extends OpenRows<Recipient> {
	header: readonly string[];
	columns: CampaignColumns;
}

async function openTableRows(
	cx: CommandContext,
	input: Input,
	how: ({ map: readonly string[] } | { columns: CampaignColumns }) & { encoding?: string | undefined },
): Promise<OpenTable> {
	const table = await openTable(input.bytes, { encoding: how.encoding ?? 'auto', signal: cx.signal });
	return orClose(table, async () => {
		await sayGuess(cx, sourceName(input.bytes), table);
		const { header, encoding, delimiter } = table;
		const columns = 'columns' in how ? how.columns : await columnsOf(cx, header, how.map);
		return {
			...{ header, columns, hasLinks: false },
			rows: mapped(table.rows, (row) => toRecipient(row, columns)),
			source: { ...input.origin, kind: 'csv', encoding, delimiter, columns: JSON.stringify(columns) },
			addressesOf: ({ to, refused }) => (refused === undefined ? [to] : []),
			put: (campaigns, id, first, recipients) => campaigns.put(id, { first, recipients }),
			close: async () => {
				await table.close();
				await input.close();
			},
		};
	});
}

async function columnsOf(cx: CommandContext, header: readonly string[], map: readonly string[]) {
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

/** The size limit of a batch. A batch is one transaction, and each of its requests may have a thousand recipients. */
const requestBytes = 512 * 1024;

async function openRequestRows({ signal }: CommandContext, input: Input, added: AddedToRequests) {
	const bytes = readBytes(input.bytes, signal);
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
	const opened: OpenRows<RequestRow> = {
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
		hasLinks: false,
		addressesOf: addressesOfRequest,
		put: (campaigns, id, first, requests) => campaigns.putRequests(id, { first, requests }),
		batchBytes: requestBytes,
		close,
	};
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
	// Staging refuses attachments that are not an array, so leave them unchanged.
	if (attachments.length === 0 || (own !== undefined && !Array.isArray(own))) return { ...row, request };
	return { ...row, request: { ...request, attachments: [...(own ?? []), ...attachments] } };
}

/** Returns no addresses for a request that is not an object, because a later check reports it. */
function addressesOfRequest({ request }: RequestRow): string[] {
	if (!isRecord(request)) return [];
	const values = ['to', 'cc', 'bcc'].flatMap((key): unknown => request[key]);
	return values.filter((one) => typeof one === 'string');
}

/** Returns null if the content has changed. */
export async function openRowsAgain(
	cx: CommandContext,
	file: string,
	source: CampaignSource,
): Promise<OpenRows<unknown> | null> {
	const { sha256, kind, encoding, track, columns = '', attachments = '[]' } = source;
	return openInput(cx, file, { flag: '--source', isWhole: true }, async (input) => {
		if (input.origin['sha256'] === sha256) {
			if (kind === 'batch')
				return openRequestRows(cx, input, { attachments: JSON.parse(attachments) as Attachment[], track });
			return openTableRows(cx, input, { columns: JSON.parse(columns) as CampaignColumns, encoding });
		}
		await input.close();
		return null;
	});
}

async function* mapped<A, B>(rows: AsyncIterable<A>, map: (row: A) => B): AsyncGenerator<B, void, undefined> {
	for await (const row of rows) yield map(row);
}

interface Judged {
	finding: Omit<Finding, 'line'> | null;
	recipients: readonly { to: string; key: string }[];
	first: (() => Promise<First>) | null;
}

type Judge<Row> = (row: Row) => Judged | Promise<Judged>;

interface Kind<Row> {
	flag: '--csv' | '--batch';
	read(input: Input): Promise<OpenRows<Row>>;
	/** Null if each request has its own content. */
	draft: Draft | null;
	files: readonly FileToSend[];
	judging(depth: Depth): Promise<Judge<Row>>;
}

function rowSource<Row extends { line?: number }>(
	cx: CommandContext,
	options: SendOptions,
	file: string,
	{ flag, read, draft, files, judging }: Kind<Row>,
): Source {
	const of = file === '-' ? 'standard input' : basename(file);
	const open = async (isWhole: boolean): Promise<Audience> => {
		const rows = await openInput(cx, file, { flag, isWhole }, read);
		const { source } = rows;
		return {
			...{ of, draft, files, selection: null },
			subject: draft?.content.subject ?? null,
			spec: { ...(draft?.spec ?? { requests: true }), source, strict_vars: isStrict(options) },
			again: source['path'] === undefined ? '-' : undefined,
			get isBulk() {
				return options.bulk || rows.hasLinks;
			},
			stage: (place, session) => stageRest(cx, place, session, { of, rows: async () => rows }),
			survey: async (depth) => {
				const isPart = depth === 'first' || (depth === 'look' && (await isStream(file)));
				return survey(cx, options, rows, { draft, isPart, depth, judge: await judging(depth) });
			},
			close: () => rows.close(),
		};
	};
	return { of, open };
}

async function survey<Row extends { line?: number }>(
	cx: CommandContext,
	options: SendOptions,
	rows: OpenRows<Row>,
	{ draft, isPart, depth, judge }: { draft: Draft | null; isPart: boolean; depth: Depth; judge: Judge<Row> },
): Promise<Survey> {
	const wanted = shownKey(options);
	const findings = new Findings(cx);
	const met = new AddressSet();
	let [read, recipients, duplicates] = [0, 0, 0];
	let good: Judged | null = null;
	let faulty: Judged | null = null;
	for await (const row of depth === 'first' ? rows.rows : allowedRows(cx, rows)) {
		const judged = await judge(row);
		const fresh = addRow(findings, met, row.line ?? null, judged);
		read += 1;
		recipients += fresh;
		if (judged.finding === null) duplicates += judged.recipients.length - fresh;
		if (judged.recipients.some(({ to }) => isShown(wanted, to))) {
			if (fresh > 0) good ??= judged;
			else faulty ??= judged.finding && judged;
		}
		if (isPart && (good ?? faulty) !== null) break;
	}
	const first = (await (good ?? faulty)?.first?.()) ?? null;
	const send = draft?.request ?? first?.request ?? null;
	const unit = draft === null ? 'requests' : 'rows';
	const plan = { [unit]: read, recipients, duplicates, rejected: findings.rejected, send };
	return { recipients, findings, first, isPart, plan, notes: [] };
}

function addRow(
	findings: Findings,
	met: AddressSet,
	line: number | null,
	{ finding, recipients }: Judged,
): number {
	if (finding !== null) {
		findings.add({ line, ...finding });
		return 0;
	}
	let fresh = 0;
	for (const { to, key } of recipients)
		if (met.add(key)) fresh += 1;
		else findings.add({ line, to, code: 'duplicate', text: `${to} is in this campaign already.` });
	return fresh;
}

/** Strict by default: if a column is missing, every message would show `#name#`. */
function isStrict({ strictVars }: SendOptions): boolean {
	return strictVars ?? true;
}

/** Returns the fields of a mailctl service. If a row has no value for a field, the service takes the subscriber's. */
async function fieldsOfService(cx: CommandContext): Promise<{ isOurs: boolean; fields: readonly string[] }> {
	const isOurs = (await (await cx.api()).capabilities()).ext.campaigns !== undefined;
	return { isOurs, fields: isOurs ? ((await fieldsOf(cx)) ?? []) : [] };
}

export async function tableSource(cx: CommandContext, options: SendOptions, file: string): Promise<Source> {
	const draft = await prepare(cx, options);
	const strict = isStrict(options);
	const read = async (input: Input) => {
		const table = await openTableRows(cx, input, options);
		return orClose(table, async () => {
			if (strict) await assertNoUnknownColumns(cx, draft, table);
			const columns = table.columns.variables.map(({ name }) => name);
			await draft.warnOfVariables(strict, columns);
			return table;
		});
	};
	const judging = (depth: Depth) => judgingRows(cx, draft, strict && depth !== 'first');
	return rowSource(cx, options, file, { flag: '--csv', read, draft, files: draft.files, judging });
}

async function judgingRows(cx: CommandContext, draft: Draft, isStrict: boolean) {
	const { isOurs, fields } = await fieldsOfService(cx);
	const used = draft.isOpaque ? null : usedVariables(draft.content);
	const shared = draft.request.context ?? {};
	const known = new Set(isOurs ? ['email', 'name', 'email_reason', ...fields] : ['email']);
	return (row: Recipient): Judged => {
		const parsed = parseRecipient(row);
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
		const checked = parsed.value;
		const first = async () => {
			const request = { ...draft.request, context: { ...shared, ...row.context } };
			const own = new Draft(cx, { ...draft, request });
			return { draft: own, addressee: await own.addressee(row.to) };
		};
		if (checked.kind === 'rejected') {
			const hasAddress = row.refused === undefined && parseAddress(row.to) !== null;
			const recipients = hasAddress ? [{ to: row.to, key: '' }] : [];
			return { finding: { to: row.to, code: checked.code, text: checked.error }, recipients, first };
		}
		const { to, to_key: key, context } = checked;
		const missing = isStrict
			? missingVariables(context, used, shared).filter((name) => !known.has(name))
			: [];
		const text = noValueText(missing, to);
		const finding = missing.length === 0 ? null : { to: row.to, code: missingVariable, text };
		return { finding, recipients: [{ to, key }], first };
	};
}

/** Throws `UsageError` if the message has the name of a column, such as `#First Name#`, instead of its variable. */
async function assertNoUnknownColumns(cx: CommandContext, draft: Draft, { header, columns }: OpenTable) {
	if (draft.isOpaque) return;
	const { subject, text, html } = draft.content;
	// Check without defaults, because a default hides a wrong name: every message would show the default.
	const [bare = '', bareText = '', bareHtml = ''] = [subject, text ?? '', html ?? ''].map(withoutDefaults);
	const misnamed = misnamedVariables([bare, bareText, bareHtml], header, columns);
	if (misnamed.length === 0) return;
	const open = draft.open({ subject: bare, text: bareText, html: bareHtml });
	const fields = (await fieldsOf(cx)) ?? [];
	// Accept the name of an unmapped column if it is also a field, because the values then come from the field.
	const refused = misnamed.filter(
		({ written, variable }) =>
			!isVariableName(written) ||
			(open.includes(written) && (variable !== null || !fields.includes(written))),
	);
	if (refused.length === 0) return;
	throw new UsageError('the message uses names of columns instead of variables; nothing was sent', {
		details: refused.map(({ written, column, variable }) =>
			variable === null
				? `#${written}#: --map "${column}=NAME" makes the column "${column}" a variable`
				: `#${written}#: for the column "${column}", write #${variable}#`,
		),
		hint: 'variable names have letters A to Z, digits and _, and case matters; --no-strict-vars sends the text unchanged',
	});
}

export async function requestSource(cx: CommandContext, options: SendOptions, file: string): Promise<Source> {
	const files = await readAttachments(cx, options.attach);
	const added = { attachments: namedIn(files), track: options.track };
	const read = (input: Input) => openRequestRows(cx, input, added);
	const judging = (depth: Depth) => judgingRequests(cx, options, files, depth);
	return rowSource(cx, options, file, { flag: '--batch', read, draft: null, files, judging });
}

async function judgingRequests(
	cx: CommandContext,
	options: SendOptions,
	files: readonly FileToSend[],
	depth: Depth,
): Promise<Judge<RequestRow>> {
	const { isOurs, fields } = await fieldsOfService(cx);
	const known = new Set<string>([...builtInVariables, ...fields]);
	// Check every request only in a dry run: a preview checks only the request that it shows.
	const check = depth === 'all' ? await foreseeing(cx) : null;
	const refused = (to: string, code: string, text: string) => ({
		finding: { to, code, text },
		recipients: [],
		first: null,
	});
	/** Composes the message from the checked values, in which numbers are texts and addresses are normalized. */
	const firstOf = async (request: SendRequest, send: CheckedSend): Promise<First> => {
		const { to: _, ...given } = request;
		const { envelope, from_key: _key, template_unique_id: uuid, ...content } = send;
		const checked: Record<string, unknown> = { ...content, ...envelope };
		const values = Object.entries(given).map(([key, value]) => [key, checked[key] ?? value] as const);
		const template = uuid === null ? null : await findTemplate(cx, uuid);
		const draft = new Draft(cx, { request: Object.fromEntries(values) as typeof given, template, files });
		const to = options.previewAs ?? send.to[0]?.address ?? '';
		return { draft, addressee: await draft.addressee(to), request };
	};
	return async (row) => {
		const parsed = parseRequest(row, isOurs ? 'smtp' : 'api');
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
		const one = parsed.value;
		if (one.kind === 'rejected') {
			// Name the recipient only if the request is valid. Otherwise, the line number identifies the request.
			const isShaped = isOurs && sendFields.parse(row.request).kind === 'valid';
			return refused((isShaped && one.to) || '', one.code, one.error);
		}
		const { send, alike } = one;
		const request = row.request as SendRequest;
		const complaint = await check?.(request).then(() => null, complaintOf);
		if (complaint != null)
			return refused(send.to.map(({ address }) => address).join(', '), 'invalid', complaint);
		const missing = isStrict(options) ? missingOf(send).filter((name) => !known.has(name)) : [];
		if (missing.length > 0) return refused('', missingVariable, noValueText(missing));
		const recipients = send.to.map(({ address: to, key }) => ({ to, key: `${key}\n${alike}` }));
		return { finding: null, recipients, first: () => firstOf(request, send) };
	};
}

function complaintOf(error: unknown): string {
	if (error instanceof ApiError && error.fields !== null) return error.message;
	throw error;
}

/** Returns no variables for a template, because its content is unknown here. */
function missingOf({ subject, text_body, html_body, template_unique_id, context }: CheckedSend): string[] {
	if (template_unique_id !== null) return [];
	const used = usedVariables({ subject: subject ?? '', text: text_body, html: html_body });
	return missingVariables({}, used, context);
}
