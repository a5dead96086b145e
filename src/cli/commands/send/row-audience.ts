import { parseAddress } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import type {
	CampaignSession,
	CampaignSource,
	CampaignSpec,
	Recipient,
	RequestRow,
	RequestsSpec,
} from '../../../api/campaigns.js';
import { ApiError, invalid } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import { builtInVariables } from '../../../api/inputs.js';
import { isRecord } from '../../../api/json.js';
import { type CheckedSend, sendFields } from '../../../api/messages.js';
import { noValueText } from '../../../api/refusals.js';
import { usedVariables } from '../../../api/variables.js';
import { parseRecipient, parseRequest } from '../../../engine/rules/campaign-rows.js';
import { missingVariables, overlayVariables, personVariables } from '../../../engine/rules/subscribers.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { type CliError, UsageError } from '../../frame/errors.js';
import { isStream } from '../../frame/sources.js';
import { counted, numberText } from '../../render/units.js';
import { assertAllowed, foreseeing, isLimited } from './accept.js';
import { namedIn, readAttachments } from './attach.js';
import type { CampaignPlace } from './begin.js';
import { fieldsOf, warnOfVariables } from './lint.js';
import type { SendOptions } from './options.js';
import { addresseeOf, isShown, notAmong, shownKey } from './preview.js';
import type { CampaignRun, RunOptions } from './release.js';
import { type Finding, Findings, missingVariable } from './report.js';
import { contentOf, findTemplate, isOpaque, type Prepared, prepare, specOf, withContext } from './request.js';
import { eachResult } from './results.js';
import {
	assertNoUnknownColumns,
	glance,
	type Input,
	known,
	mapped,
	nameOf,
	type OpenRequests,
	type OpenTable,
	openRequestRows,
	openTableRows,
} from './rows.js';
import { type Audience, type First, requestFor, type Survey } from './stage.js';

type Depth = Parameters<Audience['survey']>[0];

interface Judged {
	finding: Omit<Finding, 'line'> | null;
	recipients: readonly { to: string; key: string }[];
	first: (() => Promise<First>) | null;
}

abstract class RowAudience<Rows extends OpenTable | OpenRequests, Row extends { line?: number }>
	implements Audience
{
	readonly name: string;
	readonly where: string;
	readonly noRecipients: string;
	abstract readonly prepared: Prepared | null;
	abstract readonly files: readonly FileToSend[];
	abstract readonly spec: CampaignSpec | RequestsSpec;
	protected readonly cx: CommandContext;
	protected readonly options: SendOptions;
	/** A column that is missing would show as `#name#` in every message. */
	protected readonly isStrict: boolean;
	readonly #file: string;
	#input: Input | null = null;
	#opened: Rows | null = null;
	#read = 0;
	#duplicates = 0;

	constructor(cx: CommandContext, options: SendOptions, file: string) {
		this.cx = cx;
		this.options = options;
		this.isStrict = options.strictVars ?? true;
		this.#file = file;
		this.name = nameOf(file);
		this.where = this.name;
		this.noRecipients = `${this.name} has no rows; nothing was sent`;
	}

	protected abstract openRows(input: Input): Promise<Rows>;
	protected abstract rowsOf(opened: Rows): AsyncIterable<Row>;
	protected abstract judging(depth: Depth): Promise<(row: Row) => Judged | Promise<Judged>>;
	protected abstract addressesOf(row: Row): readonly string[];
	abstract sentence(subject: string, survey: Survey): string;
	abstract plan(survey: Survey): ReturnType<Audience['plan']>;
	abstract isBulk(): boolean;

	async open(isWhole: boolean): Promise<void> {
		const flag = this.options.csv === undefined ? '--batch' : '--csv';
		this.#input = isWhole ? await known(this.cx, this.#file, flag) : glance(this.cx, this.#file, flag);
		this.#opened = await this.openRows(this.#input);
	}

	async close(): Promise<void> {
		await this.#opened?.close();
	}

	/** Judges by the rules of staging. An address that comes again is known by 64 bits of a hash, 11 to 21 bytes each. */
	async survey(depth: Depth): Promise<Survey> {
		const { cx } = this;
		const isPart = depth === 'first' || (depth === 'look' && (await isStream(this.#file)));
		const judge = await this.judging(depth);
		const isGuarded = depth !== 'first' && isLimited(cx);
		const wanted = shownKey(this.options);
		const findings = new Findings(cx);
		const met = new AddressSet();
		let recipients = 0;
		let good: Judged | null = null;
		let faulty: Judged | null = null;
		for await (const row of this.rowsOf(this.opened)) {
			this.#read += 1;
			if (isGuarded) assertAllowed(cx, this.addressesOf(row));
			const judged = await judge(row);
			const fresh = this.#freshOf(judged, row.line ?? null, findings, met);
			recipients += fresh;
			if (judged.recipients.some(({ to }) => isShown(wanted, to))) {
				if (fresh > 0) good ??= judged;
				else faulty ??= judged.finding && judged;
			}
			if (isPart && (good ?? faulty) !== null) break;
		}
		const first = (await (good ?? faulty)?.first?.()) ?? null;
		return { recipients, findings, first, isPart, notes: [] };
	}

	#freshOf(judged: Judged, line: number | null, findings: Findings, met: AddressSet): number {
		if (judged.finding !== null) {
			findings.add({ line, ...judged.finding });
			return 0;
		}
		let fresh = 0;
		for (const { to, key } of judged.recipients)
			if (met.add(key)) fresh += 1;
			else findings.add({ line, to, code: 'duplicate', text: `${to} is in this campaign already.` });
		this.#duplicates += judged.recipients.length - fresh;
		return fresh;
	}

	noFirst(): CliError {
		if (this.options.previewAs !== undefined) return notAmong(this.options, `the rows of ${this.name}`);
		return new UsageError(`${this.name} has no row that could be sent to`);
	}

	run(place: CampaignPlace, { id, key: name, position }: CampaignSession): Omit<CampaignRun, 'begun'> {
		const { prepared, options } = this;
		const subject = prepared && (prepared.template?.name ?? prepared.request.subject ?? '');
		const run = { place, id, name, of: this.name, subject, options, content: prepared };
		const source = this.source['path'] === undefined ? '-' : undefined;
		return rowCampaign(this.cx, {
			...{ ...run, source, position, isBulk: () => this.isBulk() },
			rows: async () => this.opened,
		});
	}

	protected counts({ recipients, findings: { rejected } }: Survey) {
		return { read: this.#read, counts: { recipients, duplicates: this.#duplicates, rejected } };
	}

	protected get source(): CampaignSource {
		return { ...this.#input?.origin, ...this.#opened?.reading };
	}

	protected get opened(): Rows {
		if (this.#opened === null) throw new Error('the rows are not open');
		return this.#opened;
	}
}

export async function tableAudience(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<Audience> {
	return new TableAudience(cx, options, file, await prepare(cx, options));
}

class TableAudience extends RowAudience<OpenTable, Recipient> {
	readonly prepared: Prepared;
	readonly files: readonly FileToSend[];

	constructor(cx: CommandContext, options: SendOptions, file: string, prepared: Prepared) {
		super(cx, options, file);
		this.prepared = prepared;
		this.files = prepared.files ?? [];
	}

	get spec(): CampaignSpec {
		return { ...specOf(this.prepared), source: this.source, strict_vars: this.isStrict };
	}

	protected async openRows(input: Input): Promise<OpenTable> {
		const { cx, options, isStrict: strict } = this;
		const { map, encoding } = options;
		const table = await openTableRows(cx, input, { map, encoding });
		try {
			if (strict) await assertNoUnknownColumns(cx, this.prepared, table);
			const columns = table.columns.variables.map(({ name }) => name);
			await warnOfVariables(cx, this.prepared, { columns, strict });
			return table;
		} catch (error) {
			await table.close();
			throw error;
		}
	}

	protected rowsOf({ rows }: OpenTable): AsyncIterable<Recipient> {
		return rows;
	}

	protected async judging(depth: Depth): Promise<(row: Recipient) => Judged> {
		const { cx, prepared } = this;
		const isOurs = (await (await cx.api()).capabilities()).ext.campaigns !== undefined;
		const used = isOpaque(prepared) ? null : usedVariables(contentOf(prepared));
		const shared = prepared.request.context ?? {};
		// A field may have a value for the recipient: only the service knows.
		const fields = depth !== 'first' && isOurs ? ((await fieldsOf(cx)) ?? []) : [];
		const mayHaveValue = (name: string) => depth === 'first' || fields.includes(name);
		return (row) => {
			const parsed = parseRecipient(row);
			if (parsed.kind === 'invalid') throw invalid(parsed.errors);
			const checked = parsed.value;
			const first = () => this.#firstOf(row);
			if (checked.kind === 'rejected') {
				const hasAddress = row.refused === undefined && parseAddress(row.to) !== null;
				const recipients = hasAddress ? [{ to: row.to, key: '' }] : [];
				return { finding: { to: row.to, code: checked.code, text: checked.error }, recipients, first };
			}
			const { to, to_key: key, context } = checked;
			const values = overlayVariables(
				personVariables(unknownPerson(to, isOurs), used, shared),
				used,
				context,
			);
			const missing = this.isStrict ? missingVariables(values, used, shared) : [];
			const lost = missing.filter((name) => !mayHaveValue(name));
			const finding =
				lost.length === 0 ? null : { to: row.to, code: missingVariable, text: noValueText(lost, to) };
			return { finding, recipients: [{ to, key }], first };
		};
	}

	protected addressesOf(row: Recipient): readonly string[] {
		return addressesOfRecipient(row);
	}

	async #firstOf(row: Recipient): Promise<First> {
		const filled = withContext(this.prepared, row);
		const to = parseAddress(row.to)?.address ?? row.to;
		return {
			prepared: filled,
			addressee: await addresseeOf(this.cx, filled, row.to),
			// The values of a row concern its message alone, which fails alone.
			checked: { ...this.prepared.request, to: [row.to] },
			request: () => requestFor(this.prepared, unknownPerson(to, false), row.context),
		};
	}

	sentence(subject: string, { recipients, findings: { rejected } }: Survey): string {
		const left = rejected === 0 ? '' : `, ${numberText(rejected)} left out`;
		return `send ${subject} to the ${counted(recipients, 'recipient')} of ${this.name}${left}`;
	}

	plan(survey: Survey) {
		const { read: rows, counts } = this.counts(survey);
		return { rows, ...counts, send: this.prepared.request };
	}

	isBulk(): boolean {
		return this.options.bulk;
	}
}

function unknownPerson(email: string, isOurs: boolean) {
	const unknown = isOurs ? '' : null;
	return { email, name: unknown, email_reason: unknown, meta: {} };
}

export async function batchAudience(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<Audience> {
	return new BatchAudience(cx, options, file, await readAttachments(cx, options.attach));
}

class BatchAudience extends RowAudience<OpenRequests, RequestRow> {
	readonly prepared = null;
	readonly files: readonly FileToSend[];
	#hasLinks = false;

	constructor(cx: CommandContext, options: SendOptions, file: string, files: readonly FileToSend[]) {
		super(cx, options, file);
		this.files = files;
	}

	get spec(): RequestsSpec {
		return { requests: true, source: this.source, strict_vars: this.isStrict };
	}

	protected async openRows(input: Input): Promise<OpenRequests> {
		const added = { attachments: namedIn(this.files), track: this.options.track };
		const opened = await openRequestRows(this.cx, input, added);
		const rows = mapped(opened.rows, (row) => {
			this.#hasLinks ||= isRecord(row.request) && hasOurLinks(row.request);
			return row;
		});
		return { ...opened, rows };
	}

	protected rowsOf({ rows }: OpenRequests): AsyncIterable<RequestRow> {
		return rows;
	}

	protected async judging(depth: Depth): Promise<(row: RequestRow) => Promise<Judged>> {
		const { cx } = this;
		const isOurs = (await (await cx.api()).capabilities()).ext.campaigns !== undefined;
		const fields = new Set<string>([...builtInVariables, ...((await fieldsOf(cx)) ?? [])]);
		// A request that is shown is refused by its own complaint.
		const check = depth === 'all' ? await foreseeing(cx) : null;
		return async (row) => {
			const finding = (to: string, code: string, text: string) => ({
				finding: { to, code, text },
				recipients: [],
				first: null,
			});
			const parsed = parseRequest(row, isOurs ? 'smtp' : 'api');
			if (parsed.kind === 'invalid') throw invalid(parsed.errors);
			const one = parsed.value;
			if (one.kind === 'rejected') {
				// A request of the wrong shape is reported by its line alone.
				const isShaped = isOurs && sendFields.parse(row.request).kind === 'valid';
				return finding((isShaped && one.to) || '', one.code, one.error);
			}
			const { send, alike } = one;
			const request = row.request as SendRequest;
			const refused = check === null ? null : await complaintOf(check(request));
			if (refused !== null)
				return finding(send.to.map(({ address }) => address).join(', '), 'invalid', refused);
			const missing = this.isStrict ? missingOf(send).filter((name) => !fields.has(name)) : [];
			if (missing.length > 0) return finding('', missingVariable, noValueText(missing));
			const recipients = send.to.map(({ address: to, key }) => ({ to, key: `${key}\n${alike}` }));
			return { finding: null, recipients, first: () => this.#firstOf(request, send) };
		};
	}

	protected addressesOf(row: RequestRow): readonly string[] {
		return addressesOfRequest(row);
	}

	/** The message has values as they are checked: a number is a text, an address has its form. */
	async #firstOf(request: SendRequest, send: CheckedSend): Promise<First> {
		const { to: _, ...given } = request;
		const { envelope, from_key: _key, ...content } = send;
		const checked: Record<string, unknown> = { ...content, ...envelope };
		const values = Object.entries(given).map(([key, value]) => [key, checked[key] ?? value] as const);
		const uuid = send.template_unique_id;
		const prepared = {
			request: Object.fromEntries(values) as typeof given,
			template: uuid === null ? null : await findTemplate(this.cx, uuid),
			...(this.files.length > 0 && { files: this.files }),
		};
		const to = this.options.previewAs ?? send.to[0]?.address ?? '';
		const addressee = await addresseeOf(this.cx, prepared, to);
		return { prepared, addressee, checked: request, request: () => request };
	}

	sentence(_subject: string, survey: Survey): string {
		const { read, counts } = this.counts(survey);
		return `send the ${counted(read, 'request')} of ${this.name} to ${counted(counts.recipients, 'recipient')}`;
	}

	plan(survey: Survey) {
		const { read: requests, counts } = this.counts(survey);
		return { requests, ...counts, send: survey.first?.checked ?? null };
	}

	isBulk(): boolean {
		return this.#hasLinks;
	}
}

async function complaintOf(checking: Promise<void>): Promise<string | null> {
	try {
		await checking;
		return null;
	} catch (error) {
		if (error instanceof ApiError && error.fields !== null) return error.message;
		throw error;
	}
}

function hasOurLinks({ type, text_body, html_body }: Record<string, unknown>): boolean {
	return type === 'BULK' || [text_body, html_body].some((body) => /#unsubscribe_url#/.test(String(body)));
}

/** A template does not tell its variables. */
function missingOf({ subject, text_body, html_body, template_unique_id, context }: CheckedSend): string[] {
	if (template_unique_id !== null) return [];
	const used = usedVariables({ subject: subject ?? '', text: text_body, html: html_body });
	return missingVariables({}, used, context);
}

export type Rest = (() => Promise<OpenTable | OpenRequests>) | null;

interface RowCampaign extends Pick<CampaignRun, 'place' | 'id' | 'name' | 'of' | 'source' | 'subject'> {
	content: Prepared | null;
	isBulk: () => boolean;
	position: number;
	options: RunOptions;
	rows: Rest;
}

export function rowCampaign(cx: CommandContext, row: RowCampaign): Omit<CampaignRun, 'begun'> {
	const { rows: _, position: __, ...run } = row;
	return {
		...run,
		selection: null,
		where: row.of,
		noRecipients: `${row.of} has no rows; nothing was sent`,
		stage: async () => {
			await stage(cx, row);
			return [];
		},
	};
}

/** A request has up to a thousand recipients, and a batch is one transaction. */
const requestBytes = 512 * 1024;

async function stage(
	cx: CommandContext,
	{ place, id, position, name, of, rows }: RowCampaign,
): Promise<void> {
	const { campaigns } = place;
	if (rows === null) {
		// Another run staged them, maybe with another profile.
		if (isLimited(cx))
			for await (const result of eachResult(cx, campaigns, id))
				if (result.id !== null) assertAllowed(cx, [result.to]);
		return;
	}
	await cx.note(`campaign ${name}: ${position === 0 ? 'staging' : 'going on with'} ${of}`);
	const { stageRows } = await import('../../../jobs/campaigns.js');
	const opened = await rows();
	const progress = cx.progress('staging', null, position);
	const how = {
		session: { id, position },
		signal: cx.signal,
		onProgress: (count: number) => progress.update(count, ''),
	};
	const complete = (position: number) => campaigns.complete(id, { position });
	try {
		if (opened.kind === 'csv')
			await stageRows<Recipient>({
				...how,
				sink: { put: (first, recipients) => campaigns.put(id, { first, recipients }), complete },
				rows: allowed(cx, opened.rows, addressesOfRecipient),
			});
		else
			await stageRows<RequestRow>({
				...how,
				sink: { put: (first, requests) => campaigns.putRequests(id, { first, requests }), complete },
				rows: allowed(cx, opened.rows, addressesOfRequest),
				batchBytes: requestBytes,
			});
	} finally {
		progress.stop();
		await opened.close();
	}
}

/** A profile's `allowRecipients` holds for each row; nothing is released before all were looked at. */
function allowed<Row>(
	cx: CommandContext,
	rows: AsyncIterable<Row>,
	addressesOf: (row: Row) => readonly string[],
): AsyncIterable<Row> {
	if (!isLimited(cx)) return rows;
	return mapped(rows, (row) => {
		assertAllowed(cx, addressesOf(row));
		return row;
	});
}

function addressesOfRecipient({ to, refused }: Recipient): string[] {
	return refused === undefined ? [to] : [];
}

/** The recipients of a request, copies too; a wrong shape has none here, and is a finding later. */
function addressesOfRequest({ request }: RequestRow): string[] {
	if (!isRecord(request)) return [];
	return ['to', 'cc', 'bcc'].flatMap((key) => {
		const value = request[key];
		const all: unknown[] = Array.isArray(value) ? value : [value];
		return all.filter((one) => typeof one === 'string');
	});
}
