/** Applies the rules of staging to the rows of a file, the recipients of a campaign. */

import { parseAddress } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import type { AnyCampaignSpec, CampaignSession, Recipient, RequestRow } from '../../../api/campaigns.js';
import { ApiError, invalid } from '../../../api/errors.js';
import { builtInVariables, type SendRequest } from '../../../api/inputs.js';
import { type CheckedSend, sendFields } from '../../../api/messages.js';
import { noValueText } from '../../../api/refusals.js';
import { usedVariables, withoutDefaults } from '../../../api/variables.js';
import { parseRecipient, parseRequest } from '../../../engine/rules/campaign-rows.js';
import { missingVariables } from '../../../engine/rules/subscribers.js';
import { isVariableName, misnamedVariables } from '../../../jobs/campaigns.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isStream } from '../../frame/sources.js';
import { contentOf, fieldsOf, isOpaque, openVariables, type Prepared, warnOfVariables } from './content.js';
import { foreseeing } from './delivery.js';
import type { SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import { addresseeOf, isShown, shownKey } from './preview.js';
import { type Finding, Findings, missingVariable } from './report.js';
import { findTemplate, namedIn, prepare, readAttachments, specOf } from './request.js';
import {
	type Input,
	nameOf,
	type OpenRows,
	type OpenTable,
	openInput,
	openRequestRows,
	openTableRows,
	orClose,
	stageRest,
} from './rows.js';
import type { Audience, Checked, Depth, Source, Survey } from './stage.js';

interface Judged {
	finding: Omit<Finding, 'line'> | null;
	recipients: readonly { to: string; key: string }[];
	first: (() => Promise<Checked>) | null;
}

type Judge<Row> = (row: Row) => Judged | Promise<Judged>;

interface Kind<Row> {
	unit: 'rows' | 'requests';
	file: string;
	rows: OpenRows<Row>;
	/** Null if each request has its own content. */
	prepared: Prepared | null;
	files: readonly FileToSend[];
	spec: AnyCampaignSpec;
	judging(depth: Depth): Promise<Judge<Row>>;
}

class RowAudience<Row extends { line?: number }> implements Audience {
	readonly of: string;
	readonly selection = null;
	readonly prepared: Prepared | null;
	readonly subject: string | null;
	readonly files: readonly FileToSend[];
	readonly spec: AnyCampaignSpec;
	readonly again: string | undefined;
	readonly #cx: CommandContext;
	readonly #options: SendOptions;
	readonly #kind: Kind<Row>;

	constructor(cx: CommandContext, options: SendOptions, kind: Kind<Row>) {
		const { source } = kind.rows;
		this.of = nameOf(kind.file);
		this.prepared = kind.prepared;
		this.subject = kind.prepared && contentOf(kind.prepared).subject;
		this.files = kind.files;
		this.spec = { ...kind.spec, source, strict_vars: isStrict(options) };
		this.again = source['path'] === undefined ? '-' : undefined;
		this.#cx = cx;
		this.#options = options;
		this.#kind = kind;
	}

	get isBulk(): boolean {
		return this.#options.bulk || this.#kind.rows.hasLinks;
	}

	close(): Promise<void> {
		return this.#kind.rows.close();
	}

	stage(place: CampaignPlace, session: CampaignSession): Promise<readonly string[]> {
		return stageRest(this.#cx, place, session, { of: this.of, rows: async () => this.#kind.rows });
	}

	async survey(depth: Depth): Promise<Survey> {
		const { unit, file, rows, judging } = this.#kind;
		const isPart = depth === 'first' || (depth === 'look' && (await isStream(file)));
		const judge = await judging(depth);
		const wanted = shownKey(this.#options);
		const tally = new Tally(this.#cx);
		let good: Judged | null = null;
		let faulty: Judged | null = null;
		for await (const row of depth === 'first' ? rows.rows : rows.allowed()) {
			const judged = await judge(row);
			const fresh = tally.add(row.line ?? null, judged);
			if (judged.recipients.some(({ to }) => isShown(wanted, to))) {
				if (fresh > 0) good ??= judged;
				else faulty ??= judged.finding && judged;
			}
			if (isPart && (good ?? faulty) !== null) break;
		}
		const first = (await (good ?? faulty)?.first?.()) ?? null;
		const { read, recipients, duplicates, findings } = tally;
		const send = this.prepared?.request ?? first?.checked ?? null;
		const plan = { [unit]: read, recipients, duplicates, rejected: findings.rejected, send };
		return { recipients, findings, first, isPart, plan, notes: [] };
	}
}

/** True by default, because without its column every message would show `#name#`. */
function isStrict({ strictVars }: SendOptions): boolean {
	return strictVars ?? true;
}

/** A mailctl service may have a value for a field, which is unknown here. Another service fills in its fields itself. */
async function fieldsOfService(cx: CommandContext): Promise<{ isOurs: boolean; fields: readonly string[] }> {
	const isOurs = (await (await cx.api()).capabilities()).ext.campaigns !== undefined;
	return { isOurs, fields: isOurs ? ((await fieldsOf(cx)) ?? []) : [] };
}

/** Finds duplicate addresses by a 64-bit hash, which takes 11 to 21 bytes per address. */
class Tally {
	read = 0;
	recipients = 0;
	duplicates = 0;
	readonly findings: Findings;
	readonly #met = new AddressSet();

	constructor(cx: CommandContext) {
		this.findings = new Findings(cx);
	}

	/** Returns how many recipients are new. */
	add(line: number | null, { finding, recipients }: Judged): number {
		this.read += 1;
		if (finding !== null) {
			this.findings.add({ line, ...finding });
			return 0;
		}
		let fresh = 0;
		for (const { to, key } of recipients)
			if (this.#met.add(key)) fresh += 1;
			else this.findings.add({ line, to, code: 'duplicate', text: `${to} is in this campaign already.` });
		this.recipients += fresh;
		this.duplicates += recipients.length - fresh;
		return fresh;
	}
}

export async function tableSource(cx: CommandContext, options: SendOptions, file: string): Promise<Source> {
	const prepared = await prepare(cx, options);
	const { files = [] } = prepared;
	const open = async (isWhole: boolean) => {
		const read = (input: Input) => openTable(cx, options, prepared, input);
		const rows = await openInput(cx, file, { flag: '--csv', isWhole }, read);
		const judging = (depth: Depth) => judgingRows(cx, prepared, isStrict(options) && depth !== 'first');
		const spec = specOf(prepared);
		return new RowAudience(cx, options, { unit: 'rows', file, rows, prepared, files, spec, judging });
	};
	return { of: nameOf(file), open };
}

async function openTable(cx: CommandContext, options: SendOptions, prepared: Prepared, input: Input) {
	const { map, encoding } = options;
	const strict = isStrict(options);
	const table = await openTableRows(cx, input, { map, encoding });
	return orClose(table.opened, async () => {
		if (strict) await assertNoUnknownColumns(cx, prepared, table);
		const columns = table.columns.variables.map(({ name }) => name);
		await warnOfVariables(cx, prepared, { columns, strict });
		return table.opened;
	});
}

async function judgingRows(cx: CommandContext, prepared: Prepared, isStrict: boolean) {
	const { isOurs, fields } = await fieldsOfService(cx);
	const used = isOpaque(prepared) ? null : usedVariables(contentOf(prepared));
	const shared = prepared.request.context ?? {};
	const known = new Set(isOurs ? ['email', 'name', 'email_reason', ...fields] : ['email']);
	return (row: Recipient): Judged => {
		const parsed = parseRecipient(row);
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
		const checked = parsed.value;
		const first = () => firstOfRow(cx, prepared, row);
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

async function firstOfRow(cx: CommandContext, { request, ...rest }: Prepared, { to, context }: Recipient) {
	const prepared = { ...rest, request: { ...request, context: { ...request.context, ...context } } };
	// Check without the row's values: a wrong value makes only this row's message fail.
	const checked = { ...request, to: [to] };
	return { prepared, addressee: await addresseeOf(cx, prepared, to), checked };
}

/** Refuses a column's name instead of its variable, which would show as `#First Name#`. Throws `UsageError`. */
async function assertNoUnknownColumns(
	cx: CommandContext,
	prepared: Prepared,
	{ header, columns }: OpenTable,
): Promise<void> {
	if (isOpaque(prepared)) return;
	const { subject, text, html } = contentOf(prepared);
	// Remove defaults, because a default would hide the mistake in every message.
	const [bare = '', ...bodies] = [subject, text ?? '', html ?? ''].map(withoutDefaults);
	const misnamed = misnamedVariables([bare, ...bodies], header, columns);
	if (misnamed.length === 0) return;
	const [bareText = '', bareHtml = ''] = bodies;
	const content = { subject: bare, text: bareText, html: bareHtml };
	const open = openVariables(content, prepared.request.context ?? {});
	const fields = (await fieldsOf(cx)) ?? [];
	// A field replaces a column only if the column has no variable.
	const refused = misnamed.filter(
		({ written, variable }) =>
			!isVariableName(written) ||
			(open.includes(written) && (variable !== null || !fields.includes(written))),
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

export async function requestSource(cx: CommandContext, options: SendOptions, file: string): Promise<Source> {
	const files = await readAttachments(cx, options.attach);
	const added = { attachments: namedIn(files), track: options.track };
	const open = async (isWhole: boolean) => {
		const read = (input: Input) => openRequestRows(cx, input, added);
		const rows = await openInput(cx, file, { flag: '--batch', isWhole }, read);
		const judging = (depth: Depth) => judgingRequests(cx, options, files, depth);
		const kind = { file, rows, prepared: null, files, spec: { requests: true as const }, judging };
		return new RowAudience(cx, options, { unit: 'requests', ...kind });
	};
	return { of: nameOf(file), open };
}

async function judgingRequests(
	cx: CommandContext,
	options: SendOptions,
	files: readonly FileToSend[],
	depth: Depth,
): Promise<Judge<RequestRow>> {
	const { isOurs, fields } = await fieldsOfService(cx);
	const known = new Set<string>([...builtInVariables, ...fields]);
	// Check each request only in a dry run: a preview checks the request that it shows.
	const check = depth === 'all' ? await foreseeing(cx) : null;
	const refused = (to: string, code: string, text: string) => ({
		finding: { to, code, text },
		recipients: [],
		first: null,
	});
	return async (row) => {
		const parsed = parseRequest(row, isOurs ? 'smtp' : 'api');
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
		const one = parsed.value;
		if (one.kind === 'rejected') {
			// For a request of the wrong shape, report only its line.
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
		return { finding: null, recipients, first: () => firstOfRequest(cx, options, files, request, send) };
	};
}

/** Composes the message from the checked values, in which numbers are texts and addresses are normalized. */
async function firstOfRequest(
	cx: CommandContext,
	{ previewAs }: SendOptions,
	files: readonly FileToSend[],
	request: SendRequest,
	send: CheckedSend,
): Promise<Checked> {
	const { to: _, ...given } = request;
	const { envelope, from_key: _key, ...content } = send;
	const checked: Record<string, unknown> = { ...content, ...envelope };
	const values = Object.entries(given).map(([key, value]) => [key, checked[key] ?? value] as const);
	const uuid = send.template_unique_id;
	const prepared = {
		request: Object.fromEntries(values) as typeof given,
		template: uuid === null ? null : await findTemplate(cx, uuid),
		...(files.length > 0 && { files }),
	};
	const to = previewAs ?? send.to[0]?.address ?? '';
	return { prepared, addressee: await addresseeOf(cx, prepared, to), checked: request, request };
}

function complaintOf(error: unknown): string {
	if (error instanceof ApiError && error.fields !== null) return error.message;
	throw error;
}

/** Returns none for a template, whose variables are unknown here. */
function missingOf({ subject, text_body, html_body, template_unique_id, context }: CheckedSend): string[] {
	if (template_unique_id !== null) return [];
	const used = usedVariables({ subject: subject ?? '', text: text_body, html: html_body });
	return missingVariables({}, used, context);
}
