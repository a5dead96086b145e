import { parseAddress } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import type {
	CampaignSession,
	CampaignSpec,
	Recipient,
	RequestRow,
	RequestsSpec,
} from '../../../api/campaigns.js';
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
import { assertAllowed, foreseeing, isLimited } from './accept.js';
import { namedIn, readAttachments } from './attach.js';
import { contentOf, fieldsOf, isOpaque, openVariables, type Prepared, warnOfVariables } from './content.js';
import type { SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import { addresseeOf, isShown, shownKey } from './preview.js';
import type { CampaignRun } from './release.js';
import { type Finding, Findings, missingVariable } from './report.js';
import { findTemplate, prepare, specOf } from './request.js';
import { eachResult } from './results.js';
import { nameOf, type OpenRows, type OpenTable, openInput, openRequestRows, openTableRows } from './rows.js';
import type { Audience, Depth, First, Survey } from './stage.js';

interface Judged {
	finding: Omit<Finding, 'line'> | null;
	recipients: readonly { to: string; key: string }[];
	first: (() => Promise<First>) | null;
}

type Judge<Row> = (row: Row) => Judged | Promise<Judged>;

/** The rows of a file, judged by the rules of staging. */
abstract class RowAudience<Row extends { line?: number }> implements Audience {
	readonly of: string;
	abstract readonly prepared: Prepared | null;
	abstract readonly files: readonly FileToSend[];
	abstract readonly spec: CampaignSpec | RequestsSpec;
	protected abstract readonly unit: 'rows' | 'requests';
	protected readonly cx: CommandContext;
	protected readonly options: SendOptions;
	/** A missing column would show as `#name#` in every message. */
	protected readonly isStrict: boolean;
	readonly #file: string;
	#opened: OpenRows<Row> | null = null;

	constructor(cx: CommandContext, options: SendOptions, file: string) {
		this.cx = cx;
		this.options = options;
		this.isStrict = options.strictVars ?? true;
		this.#file = file;
		this.of = nameOf(file);
	}

	protected abstract openRows(input: Awaited<ReturnType<typeof openInput>>): Promise<OpenRows<Row>>;
	protected abstract judging(depth: Depth): Promise<Judge<Row>>;
	abstract isBulk(): boolean;

	async open(isWhole: boolean): Promise<void> {
		const flag = this.options.csv === undefined ? '--batch' : '--csv';
		this.#opened = await this.openRows(await openInput(this.cx, this.#file, { flag, isWhole }));
	}

	async close(): Promise<void> {
		await this.#opened?.close();
	}

	async survey(depth: Depth): Promise<Survey> {
		const { cx } = this;
		const isPart = depth === 'first' || (depth === 'look' && (await isStream(this.#file)));
		const judge = await this.judging(depth);
		const wanted = shownKey(this.options);
		const tally = new Tally(cx);
		let good: Judged | null = null;
		let faulty: Judged | null = null;
		for await (const row of depth === 'first' ? this.opened.rows : this.opened.allowed()) {
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
		const plan = { [this.unit]: read, recipients, duplicates, rejected: findings.rejected, send };
		return { recipients, findings, first, isPart, plan, notes: [] };
	}

	run(place: CampaignPlace, { id, key: name, position }: CampaignSession): Omit<CampaignRun, 'begun'> {
		const { prepared, options, of } = this;
		const subject = prepared && (prepared.template?.name ?? prepared.request.subject ?? '');
		const source = this.source['path'] === undefined ? '-' : undefined;
		const run = { place, id, name, of, subject, options, content: prepared, source, position };
		return rowCampaign(this.cx, { ...run, isBulk: () => this.isBulk(), rows: async () => this.opened });
	}

	/** Our service may have a value for a field, which is not known here. Another service fills in its fields itself. */
	protected async service(): Promise<{ isOurs: boolean; fields: readonly string[] }> {
		const isOurs = (await (await this.cx.api()).capabilities()).ext.campaigns !== undefined;
		return { isOurs, fields: isOurs ? ((await fieldsOf(this.cx)) ?? []) : [] };
	}

	protected get source() {
		return this.opened.source;
	}

	protected get opened(): OpenRows<Row> {
		if (this.#opened === null) throw new Error('the rows are not open');
		return this.#opened;
	}
}

/** Knows an address that comes again by 64 bits of a hash, 11 to 21 bytes each. */
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

export async function tableAudience(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<Audience> {
	return new TableAudience(cx, options, file, await prepare(cx, options));
}

class TableAudience extends RowAudience<Recipient> {
	readonly unit = 'rows';
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

	protected async openRows(input: Parameters<typeof openTableRows>[1]): Promise<OpenRows<Recipient>> {
		const { cx, prepared, isStrict: strict } = this;
		const { map, encoding } = this.options;
		const table = await openTableRows(cx, input, { map, encoding });
		try {
			if (strict) await assertNoUnknownColumns(cx, prepared, table);
			const columns = table.columns.variables.map(({ name }) => name);
			await warnOfVariables(cx, prepared, { columns, strict });
			return table.opened;
		} catch (error) {
			await table.opened.close();
			throw error;
		}
	}

	protected async judging(depth: Depth): Promise<Judge<Recipient>> {
		const { isOurs, fields } = await this.service();
		const { prepared } = this;
		const isStrict = this.isStrict && depth !== 'first';
		const used = isOpaque(prepared) ? null : usedVariables(contentOf(prepared));
		const shared = prepared.request.context ?? {};
		const known = new Set(isOurs ? ['email', 'name', 'email_reason', ...fields] : ['email']);
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
			const missing = isStrict
				? missingVariables(context, used, shared).filter((name) => !known.has(name))
				: [];
			const text = noValueText(missing, to);
			const finding = missing.length === 0 ? null : { to: row.to, code: missingVariable, text };
			return { finding, recipients: [{ to, key }], first };
		};
	}

	async #firstOf({ to, context }: Recipient): Promise<First> {
		const { request, ...prepared } = this.prepared;
		const filled = { ...prepared, request: { ...request, context: { ...request.context, ...context } } };
		// The values of a row concern its message alone, which fails alone.
		const checked = { ...request, to: [to] };
		return { prepared: filled, addressee: await addresseeOf(this.cx, filled, to), checked };
	}

	isBulk(): boolean {
		return this.options.bulk;
	}
}

/** A column that is named unlike a variable would show as `#First Name#` in every message. Throws `UsageError`. */
async function assertNoUnknownColumns(
	cx: CommandContext,
	prepared: Prepared,
	{ header, columns }: OpenTable,
): Promise<void> {
	if (isOpaque(prepared)) return;
	const { subject, text, html } = contentOf(prepared);
	// A default would hide the mistake in every message.
	const [bare = '', ...bodies] = [subject, text ?? '', html ?? ''].map(withoutDefaults);
	const misnamed = misnamedVariables([bare, ...bodies], header, columns);
	if (misnamed.length === 0) return;
	const [bareText = '', bareHtml = ''] = bodies;
	const content = { subject: bare, text: bareText, html: bareHtml };
	const open = openVariables(content, prepared.request.context ?? {});
	const fields = (await fieldsOf(cx)) ?? [];
	// A field takes the place of a column only if that was left out.
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

export async function batchAudience(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<Audience> {
	return new BatchAudience(cx, options, file, await readAttachments(cx, options.attach));
}

class BatchAudience extends RowAudience<RequestRow> {
	readonly unit = 'requests';
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

	protected openRows(input: Parameters<typeof openRequestRows>[1]): Promise<OpenRows<RequestRow>> {
		return openRequestRows(this.cx, input, {
			attachments: namedIn(this.files),
			track: this.options.track,
			onRequest: (request) => {
				this.#hasLinks ||= hasOurLinks(request);
			},
		});
	}

	protected async judging(depth: Depth): Promise<Judge<RequestRow>> {
		const { isOurs, fields } = await this.service();
		const known = new Set<string>([...builtInVariables, ...fields]);
		// A request that is shown is refused by its own complaint.
		const check = depth === 'all' ? await foreseeing(this.cx) : null;
		return async (row) => {
			const refused = (to: string, code: string, text: string) => ({
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
				return refused((isShaped && one.to) || '', one.code, one.error);
			}
			const { send, alike } = one;
			const request = row.request as SendRequest;
			const complaint = check === null ? null : await complaintOf(check(request));
			if (complaint !== null)
				return refused(send.to.map(({ address }) => address).join(', '), 'invalid', complaint);
			const missing = this.isStrict ? missingOf(send).filter((name) => !known.has(name)) : [];
			if (missing.length > 0) return refused('', missingVariable, noValueText(missing));
			const recipients = send.to.map(({ address: to, key }) => ({ to, key: `${key}\n${alike}` }));
			return { finding: null, recipients, first: () => this.#firstOf(request, send) };
		};
	}

	/** The message has the checked values: a number is a text, an address has its form. */
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
		return { prepared, addressee: await addresseeOf(this.cx, prepared, to), checked: request, request };
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

/** Opens the rows that are not staged yet. Null: all are. */
export type Rest = (() => Promise<Pick<OpenRows<unknown>, 'stage' | 'close'>>) | null;

type RowCampaign = Omit<CampaignRun, 'begun' | 'selection' | 'stage'> & { position: number; rows: Rest };

export function rowCampaign(
	cx: CommandContext,
	{ rows, position, ...run }: RowCampaign,
): Omit<CampaignRun, 'begun'> {
	const { place, id, name, of } = run;
	const stage = async () => {
		if (rows !== null) {
			await cx.note(`campaign ${name}: ${position === 0 ? 'staging' : 'going on with'} ${of}`);
			await (await rows()).stage(place.campaigns, { id, position });
		} else if (isLimited(cx))
			// Another run staged them, maybe with another profile.
			for await (const result of eachResult(cx, place.campaigns, id))
				if (result.id !== null) assertAllowed(cx, [result.to]);
		return [];
	};
	return { ...run, selection: null, stage };
}
