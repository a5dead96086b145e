/**
 * `send --csv`, a message a row of a table, and `send --batch`, a send request a line: their rows before they are staged, and
 * as a campaign.
 */

import { parseAddress } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import type {
	CampaignSession,
	CampaignSource,
	CampaignSpec,
	Campaigns,
	Recipient,
	RequestRow,
	RequestsSpec,
} from '../../../api/campaigns.js';
import type { Session } from '../../../api/capabilities.js';
import { ApiError, invalid } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import { builtInVariables } from '../../../api/inputs.js';
import { isRecord } from '../../../api/json.js';
import { type CheckedSend, sendFields } from '../../../api/messages.js';
import { noValueText } from '../../../api/refusals.js';
import { usedVariables } from '../../../api/variables.js';
import { parseRecipient, parseRequest } from '../../../engine/rules/campaign-rows.js';
import { missingVariables, overlayVariables, personVariables } from '../../../engine/rules/meta.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { type CliError, UsageError } from '../../frame/errors.js';
import { isStream } from '../../frame/sources.js';
import { counted, numberText } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { namedIn, readAttachments } from './attach.js';
import type { CampaignPlace } from './begin.js';
import { type Finding, Findings, missingVariable } from './findings.js';
import { fieldsOf, linted, warnOfLinks } from './lint.js';
import type { SendOptions } from './options.js';
import { addresseeOf, foreseeing, isShown, notAmong, shownKey } from './preview.js';
import { addFindings } from './recipients.js';
import type { CampaignRun, RunOptions } from './release.js';
import { contentOf, findTemplate, isOpaque, type Prepared, prepare, specOf, withContext } from './request.js';
import { eachResult, writeCampaign } from './results.js';
import {
	assertNoUnknownColumns,
	glance,
	type Input,
	known,
	mapped,
	nameOf,
	type OpenRows,
	openRequestRows,
	openTableRows,
	placeToTell,
	type RowsFlag,
} from './rows.js';
import { type Audience, assertAllowed, type First, isLimited, requestFor, type Survey } from './stage.js';

type Depth = Parameters<Audience['survey']>[0];

/** One row before it is staged. */
type Judged<Row> =
	| { kind: 'finding'; finding: Finding }
	/** `keys`: an address comes once; `row`: as it is sent. */
	| { kind: 'good'; recipients: readonly { to: string; key: string }[]; row: Row };

abstract class RowAudience<Row extends { line?: number }, Good> implements Audience {
	readonly name: string;
	readonly where: string;
	readonly noRecipients: string;
	abstract readonly prepared: Prepared | null;
	abstract readonly files: readonly FileToSend[];
	protected readonly cx: CommandContext;
	protected readonly options: SendOptions;
	protected readonly file: string;
	protected input: Input | null = null;
	protected opened: OpenRows<Row> | null = null;
	#read = 0;
	#duplicates = 0;

	constructor(cx: CommandContext, options: SendOptions, file: string) {
		this.cx = cx;
		this.options = options;
		this.file = file;
		this.name = nameOf(file);
		this.where = this.name;
		this.noRecipients = `${this.name} has no rows; nothing was sent`;
	}

	abstract get spec(): CampaignSpec | RequestsSpec;
	abstract run(place: CampaignPlace, session: CampaignSession): Omit<CampaignRun, 'begun'>;
	abstract sentence(subject: string, survey: Survey): string;
	abstract plan(survey: Survey): ReturnType<Audience['plan']>;
	abstract warn(): Promise<void>;
	protected abstract readonly flag: RowsFlag;
	protected abstract openRows(input: Input): Promise<OpenRows<Row>>;
	protected abstract judging(depth: Depth): Promise<(row: Row) => Judged<Good> | Promise<Judged<Good>>>;
	/** The row where it may be shown and has an address, whatever else it lacks. */
	protected abstract looked(row: Row): Good | null;
	protected abstract addresses(row: Row): readonly string[];
	protected abstract isShown(row: Good): boolean;
	protected abstract firstOf(row: Good): Promise<First>;

	async open(isWhole: boolean): Promise<void> {
		const { cx, file, flag } = this;
		this.input = isWhole ? await known(cx, file, flag) : glance(cx, file, flag);
		this.opened = await this.openRows(this.input);
	}

	async close(): Promise<void> {
		await this.opened?.close();
	}

	/** By the rules of staging. An address that comes again is known by 64 bits of a hash, 11 to 21 bytes each. */
	async survey(depth: Depth): Promise<Survey> {
		const isPart = depth === 'first' || (depth === 'look' && (await isStream(this.file)));
		const judge = await this.judging(depth);
		const isGuarded = depth !== 'first' && isLimited(this.cx);
		const findings = new Findings(this.cx);
		const met = new AddressSet();
		let recipients = 0;
		let first: Good | null = null;
		let shown: Good | null = null;
		for await (const row of this.rows()) {
			this.#read += 1;
			if (isGuarded) assertAllowed(this.cx, this.addresses(row));
			shown ??= this.looked(row);
			const judging = judge(row);
			const judged = judging instanceof Promise ? await judging : judging;
			const fresh = this.#freshOf(judged, { met, findings, line: row.line ?? null });
			recipients += fresh;
			if (fresh > 0 && judged.kind === 'good') first ??= this.isShown(judged.row) ? judged.row : null;
			if (isPart && (first ?? shown) !== null) break;
		}
		const found = await this.#messageOf(first);
		const looked = found ?? (await this.#messageOf(shown));
		return { recipients, findings, isPart, notes: [], hint: null, plan: {}, first: found, shown: looked };
	}

	async #messageOf(row: Good | null): Promise<First | null> {
		return row === null ? null : this.firstOf(row);
	}

	#freshOf(
		judged: Judged<Good>,
		{ met, findings, line }: { met: AddressSet; findings: Findings; line: number | null },
	): number {
		if (judged.kind === 'finding') {
			findings.add(judged.finding);
			return 0;
		}
		let fresh = 0;
		for (const { to, key } of judged.recipients) {
			if (met.add(key)) fresh += 1;
			else findings.add({ line, to, code: 'duplicate', text: `${to} is in this campaign already.` });
		}
		this.#duplicates += judged.recipients.length - fresh;
		return fresh;
	}

	noFirst(): CliError {
		if (this.options.previewAs !== undefined) return notAmong(this.options, `the rows of ${this.name}`);
		return new UsageError(`${this.name} has no row that could be sent to`);
	}

	protected counts({ recipients, findings: { rejected } }: Survey) {
		return { read: this.#read, counts: { recipients, duplicates: this.#duplicates, rejected } };
	}

	protected get source(): CampaignSource {
		return { ...this.input?.origin, ...this.opened?.reading };
	}

	protected rows(): AsyncIterable<Row> {
		if (this.opened === null) throw new Error('the rows are not open');
		return this.opened.rows;
	}
}

export async function tableAudience(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<Audience> {
	return new TableAudience(cx, options, file, await prepare(cx, options));
}

class TableAudience extends RowAudience<Recipient, Recipient> {
	prepared: Prepared;
	readonly files: readonly FileToSend[];
	protected readonly flag = '--csv';
	readonly #isStrict: boolean;

	constructor(cx: CommandContext, options: SendOptions, file: string, prepared: Prepared) {
		super(cx, options, file);
		this.prepared = prepared;
		this.files = prepared.files ?? [];
		// A column that is missing shows as #name# in every message.
		this.#isStrict = options.strictVars ?? true;
	}

	get spec(): CampaignSpec {
		return { ...specOf(this.prepared), source: this.source, strict_vars: this.#isStrict };
	}

	protected async openRows(input: Input): Promise<OpenRows<Recipient>> {
		const { cx, options } = this;
		const { map, encoding } = options;
		const table = await openTableRows(cx, input, { map, encoding });
		try {
			if (this.#isStrict) await assertNoUnknownColumns(cx, this.prepared, table);
			const columns = table.columns.variables.map(({ name }) => name);
			this.prepared = await linted(cx, this.prepared, { columns, strict: this.#isStrict });
			return table;
		} catch (error) {
			await table.close();
			throw error;
		}
	}

	protected async judging(depth: Depth): Promise<(row: Recipient) => Judged<Recipient>> {
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
			const line = row.line ?? null;
			if (checked.kind === 'rejected')
				return { kind: 'finding', finding: { line, to: row.to, code: checked.code, text: checked.error } };
			const { to, to_key: key, context } = checked;
			const person = unknownPerson(to, isOurs);
			const values = overlayVariables(personVariables(person, used, shared), used, context);
			const missing = this.#isStrict ? missingVariables(values, used, shared) : [];
			const lost = missing.filter((name) => !mayHaveValue(name));
			if (lost.length === 0) return { kind: 'good', recipients: [{ to, key }], row };
			const text = noValueText(lost, to);
			return { kind: 'finding', finding: { line, to: row.to, code: missingVariable, text } };
		};
	}

	protected looked(row: Recipient): Recipient | null {
		const hasAddress = row.refused === undefined && parseAddress(row.to) !== null;
		return hasAddress && this.isShown(row) ? row : null;
	}

	protected addresses(row: Recipient): readonly string[] {
		return addressesOfRecipient(row);
	}

	protected isShown({ to }: Recipient): boolean {
		return isShown(shownKey(this.options), to);
	}

	protected async firstOf(row: Recipient): Promise<First> {
		const filled = withContext(this.prepared, row);
		const to = parseAddress(row.to)?.address ?? row.to;
		return {
			prepared: filled,
			addressee: await addresseeOf(this.cx, filled, row.to),
			// The row's own values are for the message: it fails alone.
			checked: { ...this.prepared.request, to: [row.to] },
			call: () => requestFor(this.prepared, unknownPerson(to, false), row.context),
		};
	}

	run(place: CampaignPlace, session: CampaignSession): Omit<CampaignRun, 'begun'> {
		const subject = this.prepared.template?.name ?? this.prepared.request.subject ?? '';
		const { bulk } = this.options;
		return rowCampaign(this.cx, {
			...{ place, session, name: session.key, of: this.name, subject, bulk, options: this.options },
			source: placeToTell(this.source),
			rows: async () => ({ kind: 'csv', open: { rows: this.rows(), close: () => this.close() } }),
		});
	}

	sentence(subject: string, { recipients, findings: { rejected } }: Survey): string {
		const left = rejected === 0 ? '' : `, ${numberText(rejected)} left out`;
		return `send ${subject} to the ${counted(recipients, 'recipient')} of ${this.name}${left}`;
	}

	plan(survey: Survey) {
		const { read: rows, counts } = this.counts(survey);
		return { rows, ...counts, send: this.prepared.request };
	}

	warn(): Promise<void> {
		return warnOfLinks(this.cx, { bulk: this.options.bulk });
	}
}

/** An address in no list: our own service knows that there is no name, elsewhere nothing is known. */
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

/** A request that can be sent, as it is given and as it is checked. */
interface GoodRequest {
	request: SendRequest;
	send: CheckedSend;
}

class BatchAudience extends RowAudience<RequestRow, GoodRequest> {
	readonly prepared = null;
	readonly files: readonly FileToSend[];
	protected readonly flag = '--batch';
	#hasLinks = false;
	readonly #isStrict: boolean;

	constructor(cx: CommandContext, options: SendOptions, file: string, files: readonly FileToSend[]) {
		super(cx, options, file);
		this.files = files;
		this.#isStrict = options.strictVars ?? true;
	}

	get spec(): RequestsSpec {
		return { requests: true, source: this.source, strict_vars: this.#isStrict };
	}

	protected async openRows(input: Input): Promise<OpenRows<RequestRow>> {
		const added = { attachments: namedIn(this.files), track: this.options.track };
		const opened = await openRequestRows(this.cx, input, added);
		const rows = mapped(opened.rows, (row) => {
			this.#hasLinks ||= isRecord(row.request) && hasOurLinks(row.request);
			return row;
		});
		return { ...opened, rows };
	}

	/** Templates and lists of requests are looked up only where they are staged. */
	protected async judging(depth: Depth) {
		const { cx } = this;
		const api = await cx.api();
		const isOurs = (await api.capabilities()).ext.campaigns !== undefined;
		const fields = new Set<string>(builtInVariables);
		for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) fields.add(variable);
		// A request that is shown is refused by its own complaint.
		const check = depth === 'all' ? await foreseeing(cx) : async () => undefined;
		return async (row: RequestRow): Promise<Judged<GoodRequest>> => {
			const finding = (to: string, code: string, text: string) => ({
				kind: 'finding' as const,
				finding: { line: row.line ?? null, to, code, text },
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
			// Checked: it is a send request.
			const request = row.request as SendRequest;
			const refused = await complaintOf(check(request));
			if (refused !== null)
				return finding(send.to.map(({ address }) => address).join(', '), 'invalid', refused);
			// A field may have a value for the recipient: only the service knows.
			const missing = this.#isStrict ? missingOf(send).filter((name) => !fields.has(name)) : [];
			if (missing.length > 0) return finding('', missingVariable, noValueText(missing));
			const recipients = send.to.map(({ address: to, key }) => ({ to, key: `${key}\n${alike}` }));
			return { kind: 'good', recipients, row: { request, send } };
		};
	}

	protected looked(): null {
		return null;
	}

	protected addresses(row: RequestRow): readonly string[] {
		return addressesOfRequest(row);
	}

	protected isShown({ send }: GoodRequest): boolean {
		const key = shownKey(this.options);
		return key === null || send.to.some((one) => one.key === key);
	}

	/** With its values as they are checked: a number is a text, an address has its form. */
	protected async firstOf({ request, send }: GoodRequest): Promise<First> {
		const { to: _, ...given } = request;
		const { envelope, from_key: _key, ...content } = send;
		const checked: Record<string, unknown> = { ...content, ...envelope };
		const values = Object.entries(given).map(([key, value]) => [key, checked[key] ?? value] as const);
		const uuid = send.template_unique_id;
		const prepared = {
			// Only the values differ: the keys are those that were given.
			request: Object.fromEntries(values) as typeof given,
			template: uuid === null ? null : await findTemplate(this.cx, uuid),
			...(this.files.length > 0 && { files: this.files }),
		};
		const to = this.options.previewAs ?? send.to[0]?.address ?? '';
		const addressee = await addresseeOf(this.cx, prepared, to);
		return { prepared, addressee, checked: request, call: () => request };
	}

	run(place: CampaignPlace, session: CampaignSession): Omit<CampaignRun, 'begun'> {
		return rowCampaign(this.cx, {
			...{ place, session, name: session.key, of: this.name, subject: null, options: this.options },
			bulk: () => this.#hasLinks,
			source: placeToTell(this.source),
			rows: async () => ({ kind: 'batch', open: { rows: this.rows(), close: () => this.close() } }),
		});
	}

	sentence(_subject: string, survey: Survey): string {
		const { read, counts } = this.counts(survey);
		return `send the ${counted(read, 'request')} of ${this.name} to ${counted(counts.recipients, 'recipient')}`;
	}

	plan(survey: Survey) {
		const { read: requests, counts } = this.counts(survey);
		return { requests, ...counts, send: survey.first?.checked ?? null };
	}

	warn(): Promise<void> {
		return warnOfLinks(this.cx, { bulk: this.#hasLinks });
	}
}

/** The refusal of a request; null: it is accepted. */
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

export type CampaignRows =
	| { kind: 'csv'; open: Pick<OpenRows<Recipient>, 'rows' | 'close'> }
	| { kind: 'batch'; open: Pick<OpenRows<RequestRow>, 'rows' | 'close'> };

/** A campaign before any row is read. */
interface RowCampaign {
	place: CampaignPlace;
	session: Session;
	name: string;
	of: string;
	/** See `Unreleased`. */
	source: string | undefined;
	subject: string | null;
	/** Of send requests: any of those staged by this run has links of ours. */
	bulk: boolean | (() => boolean);
	options: RunOptions;
	/** The rows from the first on; null: all of them are staged. */
	rows: (() => Promise<CampaignRows>) | null;
}

export function rowCampaign(cx: CommandContext, row: RowCampaign): Omit<CampaignRun, 'begun'> {
	const { place, session, name, of, source, subject, bulk, options } = row;
	const { id } = session;
	return {
		...{ place, id, name, source, options, of, where: of, subject },
		stage: () => stage(cx, row),
		findings: (into) => addFindings(cx, place, id, into),
		sample: (most) => firstAddresses(cx, place.campaigns, id, most),
		writeResults: (path) => writeCampaign(cx, { place, id, isRows: true }, path),
		warn: () => warnOfLinks(cx, { bulk: typeof bulk === 'boolean' ? bulk : bulk() }),
		sayCounts: () => [],
		noRecipients: `${of} has no rows; nothing was sent`,
	};
}

/** A request has up to a thousand recipients, and a batch is one transaction. */
const requestBytes = 512 * 1024;

async function stage(cx: CommandContext, { place, session, name, of, rows }: RowCampaign): Promise<void> {
	const { id, position } = session;
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
	const how = { session, signal: cx.signal, onProgress: (count: number) => progress.update(count, '') };
	const complete = (position: number) => campaigns.complete(id, { position });
	try {
		if (opened.kind === 'csv')
			await stageRows<Recipient>({
				...how,
				sink: { put: (first, recipients) => campaigns.put(id, { first, recipients }), complete },
				rows: allowed(cx, opened.open.rows, addressesOfRecipient),
			});
		else
			await stageRows<RequestRow>({
				...how,
				sink: { put: (first, requests) => campaigns.putRequests(id, { first, requests }), complete },
				rows: allowed(cx, opened.open.rows, addressesOfRequest),
				batchBytes: requestBytes,
			});
	} finally {
		progress.stop();
		await opened.open.close();
	}
}

/** A profile's `allowRecipients` holds for each row; nothing is released before all were looked at. */
async function* allowed<Row>(
	cx: CommandContext,
	rows: AsyncIterable<Row>,
	addressesOf: (row: Row) => readonly string[],
): AsyncGenerator<Row, void, undefined> {
	const isGuarded = isLimited(cx);
	for await (const row of rows) {
		if (isGuarded) assertAllowed(cx, addressesOf(row));
		yield row;
	}
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

async function firstAddresses(
	cx: CommandContext,
	campaigns: Campaigns,
	id: string,
	most: number,
): Promise<string[]> {
	const shown: string[] = [];
	if (most === 0) return shown;
	for await (const { state, to } of eachResult(cx, campaigns, id)) {
		if (state !== 'rejected' && state !== 'suppressed') shown.push(to);
		if (shown.length >= most) break;
	}
	return shown;
}
