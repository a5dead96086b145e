/** `send --csv`: one message a row of a table, whose columns are its variables. */

import { parseAddress } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import type { CampaignSource, CampaignSpec, Recipient } from '../../../api/campaigns.js';
import { invalid } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/fields.js';
import type { Person } from '../../../engine/rules/meta.js';
import { parseRecipient } from '../../../engine/rules/recipient-rows.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { isStream } from '../../frame/sources.js';
import { counted, numberText } from '../../render/units.js';
import { uploadAttachments } from './attach.js';
import {
	assertAllowed,
	assertFindings,
	lacking,
	requestFor,
	Survey,
	sharedBy,
	showPlan,
} from './audience.js';
import { type Beginning, beginCampaign, foreseeCampaign, openCampaign } from './begin.js';
import { assertCanDeliver } from './deliver.js';
import { readFieldValues } from './field-values.js';
import {
	type Finding,
	type Found,
	findingsFor,
	lacks,
	metBefore,
	warnOfFindings,
	withNamed,
} from './findings.js';
import { linted, warnOfContent, warnOfLinks } from './lint.js';
import type { SendOptions } from './options.js';
import {
	type Addressee,
	addresseeOf,
	assertAcceptable,
	compose,
	sendTrial,
	wantsPreview,
} from './preview.js';
import { isShown, notAmong, shownKey } from './preview-as.js';
import { countsOf, showPreview } from './preview-output.js';
import { assertExpected } from './report.js';
import { type Prepared, prepare, specOf, withContext } from './request.js';
import { assertRowOptions, rowCampaign } from './rows.js';
import { runCampaign } from './run.js';
import {
	glance,
	type Input,
	known,
	type OpenTable,
	openTableRows,
	placeToTell,
	sourceName,
} from './source.js';
import { assertNoUnknownColumns } from './unknown-columns.js';

/** A table, and what its rows are to be sent. */
interface TableSending {
	prepared: Prepared;
	table: OpenTable;
	file: string;
	options: SendOptions;
}

export async function sendToTable(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<ExitCode | undefined> {
	assertRowOptions(options, '--csv');
	const asked = { prepared: await prepare(cx, options), file, options };
	const { testTo } = options;
	if (testTo !== undefined)
		return withTable(cx, asked, glance(cx, file, '--csv'), (sending) => sendTest(cx, sending, testTo));
	// It reads all that the campaign would, and finds the same encoding.
	if (cx.dryRun) {
		const input = await known(cx, file, '--csv');
		return withTable(cx, asked, input, (sending) => dryRun(cx, sending, input.origin));
	}
	if (wantsPreview(options))
		return withTable(cx, asked, glance(cx, file, '--csv'), (sending) => preview(cx, sending)).then(
			() => undefined,
		);
	const beginning = await beginCampaign(cx, options, sourceName(file));
	const input = await known(cx, file, '--csv');
	return withTable(cx, asked, input, (sending) => begin(cx, sending, beginning, input.origin));
}

async function withTable<T>(
	cx: CommandContext,
	asked: Omit<TableSending, 'table'>,
	input: Input,
	use: (sending: TableSending) => Promise<T>,
): Promise<T> {
	const { prepared, options } = asked;
	const table = await openTableRows(cx, input, { map: options.map, encoding: options.encoding });
	try {
		const strict = options.strictVars ?? true;
		if (strict) await assertNoUnknownColumns(cx, prepared, table);
		const columns = table.columns.variables.map(({ name }) => name);
		return await use({ ...asked, prepared: await linted(cx, prepared, { columns, strict }), table });
	} finally {
		await table.close();
	}
}

async function begin(
	cx: CommandContext,
	sending: TableSending,
	beginning: Beginning,
	origin: CampaignSource,
): Promise<ExitCode> {
	const { prepared, table, file, options } = sending;
	const { place } = beginning;
	await uploadAttachments(cx, prepared.files);
	const session = await openCampaign(cx, beginning, tableSpec(sending, origin));
	const { key: name, begun } = session;
	const of = sourceName(file);
	const subject = prepared.template?.name ?? prepared.request.subject ?? '';
	const { bulk } = options;
	const rows = async () => ({ kind: 'csv' as const, open: table });
	const source = placeToTell(origin);
	const campaign = rowCampaign(cx, { place, session, name, of, source, subject, bulk, options, rows });
	const warn = async () => {
		await warnOfContent(cx, prepared);
		await campaign.warn();
	};
	return runCampaign(cx, { ...campaign, warn, begun });
}

function tableSpec({ prepared, table, options }: TableSending, origin: CampaignSource): CampaignSpec {
	return {
		...specOf(prepared),
		source: { ...origin, ...table.reading },
		// A column that is missing shows as #name# in every message.
		strict_vars: options.strictVars ?? true,
	};
}

/** Ends as the campaign would: `UsageError` for findings, or 9 with `--skip-invalid`. */
async function dryRun(cx: CommandContext, sending: TableSending, origin: CampaignSource): Promise<ExitCode> {
	const { prepared, file, options } = sending;
	const campaign = { options, of: sourceName(file), spec: tableSpec(sending, origin) };
	if (await foreseeCampaign(cx, campaign)) return exits.done;
	const found = await surveyed(cx, sending, (row) => assertRowAllowed(cx, row));
	if (found.first === null && options.previewAs !== undefined)
		throw notAmong(options, `the rows of ${sourceName(file)}`);
	const { first, read: rows, recipients, duplicates, rejected } = found;
	// What the rows say beside it is for the message: it fails alone.
	if (first !== null) await assertAcceptable(cx, { ...prepared.request, to: [first.to] });
	if (rows === 0 && options.expectCount !== 0)
		throw new UsageError(`${sourceName(file)} has no rows; nothing was sent`);
	await assertFindings(cx, found, options);
	assertExpected({ found: recipients, where: sourceName(file), options });
	await warnOfContent(cx, prepared);
	await warnOfLinks(cx, { bulk: options.bulk });
	const leftOut = rejected === 0 ? '' : `, ${numberText(rejected)} left out`;
	const to = `the ${counted(recipients, 'recipient')} of ${sourceName(file)}${leftOut}`;
	await showPlan(cx, {
		prepared,
		options,
		what: (subject) => `send ${subject} to ${to}`,
		plan: { rows, recipients, duplicates, rejected, send: prepared.request },
		first: first && {
			request: () => requestFor(prepared, personOf(addressOf(first), { isOurs: false }), first.context),
			message: () => composeFor(cx, prepared, first),
		},
	});
	return rejected > 0 ? exits.partly : exits.done;
}

/** Throws `UsageError` for an address the profile may not write to. */
function assertRowAllowed(cx: CommandContext, { to, refused }: Recipient): void {
	if (refused === undefined) assertAllowed(cx, [to]);
}

/** The table is read to its end, or until `isEnough`; `watch` sees each row. */
async function surveyed(
	cx: CommandContext,
	sending: TableSending,
	watch: (row: Recipient) => void,
	isEnough = () => false,
): Promise<Survey<Recipient>> {
	const found = new Survey<Recipient>(findingsFor(cx));
	const check = await checker(cx, sending);
	const key = shownKey(sending.options);
	for await (const row of sending.table.rows) {
		watch(row);
		found.read += 1;
		const finding = check(row);
		if (finding === null) found.add(row, 1, isShown(key, row.to));
		else found.reject(finding, row);
		if (isEnough()) break;
	}
	return found;
}

/** What is wrong with a row; null: nothing. An address that comes again is known by 64 bits of a hash. */
async function checker(
	cx: CommandContext,
	{ prepared, table, options }: TableSending,
): Promise<(row: Recipient) => Finding | null> {
	const { ext } = await (await cx.api()).capabilities();
	const isOurs = ext.campaigns !== undefined;
	const isStrict = options.strictVars ?? true;
	const shared = sharedBy(prepared);
	const given = [...Object.keys(shared.context), ...table.columns.variables.map(({ name }) => name)];
	const open = (shared.used ?? []).filter(
		(name) => !given.includes(name) && !builtInVariables.includes(name),
	);
	// Other deployments get all values with the call, which has those of the row alone.
	const hasValue = isStrict && isOurs ? await readFieldValues(cx, open) : () => false;
	const met = new AddressSet();
	return (row) => {
		const parsed = parseRecipient(row);
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
		const checked = parsed.value;
		if (checked.kind === 'rejected') return checked;
		const { to, to_key: key, context } = checked;
		const missing = isStrict ? lacking(personOf(to, { isOurs }), shared, context) : [];
		const lost = missing.filter((name) => !hasValue(key, name));
		if (lost.length > 0) return lacks(to, lost);
		return met.add(key) ? null : metBefore(to);
	};
}

/** What is known of an address in no list: on our own service that there is no name, elsewhere nothing. */
function personOf(email: string, { isOurs }: { isOurs: boolean }): Person {
	const unknown = isOurs ? '' : null;
	return { email, name: unknown, email_reason: unknown, meta: {} };
}

function addressOf({ to }: Recipient): string {
	return parseAddress(to)?.address ?? to;
}

/** How many rows can be sent to, what speaks against the others, and the message of the first; nothing is written. */
export async function lookAtTable(
	cx: CommandContext,
	asked: Omit<TableSending, 'table'>,
): Promise<{ count: number; look: { prepared: Prepared; addressee: Addressee } | null; found: Found }> {
	return withTable(cx, asked, glance(cx, asked.file, '--csv'), async (sending) => {
		let shown: Recipient | null = null;
		const survey = await surveyed(cx, sending, (row) => {
			assertRowAllowed(cx, row);
			shown ??= isLookedAt(row, sending.options) ? row : null;
		});
		const { recipients: count, rejected, findings } = survey;
		const found = { findings, of: count + rejected };
		const first = survey.first ?? shown;
		if (first === null) return { count, look: null, found };
		const prepared = withContext(sending.prepared, first);
		return { count, look: { prepared, addressee: await addresseeOf(cx, prepared, first.to) }, found };
	});
}

/** `--preview` and `--eml`: the first row's message, and what speaks against rows. A pipe is read no further than that row. */
async function preview(cx: CommandContext, sending: TableSending): Promise<void> {
	const { prepared, options, file } = sending;
	const isFirstEnough = await isStream(file);
	let shown: Recipient | null = null;
	const { recipients, rejected, findings } = await surveyed(
		cx,
		sending,
		(row) => {
			shown ??= isLookedAt(row, options) ? row : null;
		},
		() => isFirstEnough && shown !== null,
	);
	const first = assertFound(shown, sending);
	// What the row says beside it is for the message to show.
	await assertAcceptable(cx, { ...prepared.request, to: [first.to] });
	await warnOfContent(cx, prepared);
	const found = { findings, of: recipients + rejected };
	await warnOfFindings(cx, found, options);
	const composed = await composeFor(cx, withNamed(prepared, found), first);
	const counts = async () => countsOf(isFirstEnough ? null : found);
	await showPreview(cx, { composed, prepared, counts }, options);
}

async function composeFor(cx: CommandContext, prepared: Prepared, row: Recipient) {
	const filled = withContext(prepared, row);
	return compose(cx, filled, await addresseeOf(cx, filled, row.to));
}

/** The first row with an address; what else is wrong with it is for the message to show. */
async function firstOf(sending: TableSending): Promise<Recipient> {
	for await (const row of sending.table.rows) if (isLookedAt(row, sending.options)) return row;
	return assertFound(null, sending);
}

function isLookedAt({ to, refused }: Recipient, options: SendOptions): boolean {
	return refused === undefined && parseAddress(to) !== null && isShown(shownKey(options), to);
}

/** Throws `UsageError` without a row to look at. */
function assertFound(
	row: Recipient | null,
	{ file, options }: Pick<TableSending, 'file' | 'options'>,
): Recipient {
	if (row !== null) return row;
	if (shownKey(options) !== null) throw notAmong(options, `the rows of ${sourceName(file)}`);
	throw new UsageError(`${sourceName(file)} has no row that could be sent to`);
}

/** To an address of one's own: with the first row's variables, under no campaign. */
async function sendTest(cx: CommandContext, sending: TableSending, to: string): Promise<ExitCode> {
	const { prepared, options } = sending;
	assertAllowed(cx, [to]);
	await assertCanDeliver(cx, options);
	const first = await firstOf(sending);
	const filled = withContext(prepared, first);
	const addressee = await addresseeOf(cx, filled, first.to);
	return sendTrial(cx, { prepared: filled, addressee, to, options });
}
