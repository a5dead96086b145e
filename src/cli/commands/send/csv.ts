/** `send --csv`: one message a row of a table, whose columns are its variables. */

import { parseAddress } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import type { CampaignSource } from '../../../api/campaigns.js';
import type { CampaignSpec, Recipient } from '../../../api/capabilities.js';
import { invalid } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/fields.js';
import { withoutDefaults } from '../../../api/variables.js';
import type { Person } from '../../../engine/rules/meta.js';
import { parseRecipient } from '../../../engine/rules/recipient-rows.js';
import { isVariableName, type Misnamed, misnamedVariables } from '../../../jobs/campaign-columns.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { counted, numberText } from '../../render/counted.js';
import { uploadAttachments } from './attach.js';
import {
	assertAllowed,
	assertFindings,
	type Finding,
	lacking,
	lacks,
	metBefore,
	mostFindings,
	requestFor,
	Survey,
	sharedBy,
	showPlan,
} from './audience.js';
import { type Beginning, beginCampaign, foreseeCampaign, openCampaign } from './begin.js';
import { assertCanDeliver, warnOfLinks } from './deliver.js';
import { readFieldValues } from './field-values.js';
import { linted, warnOfContent } from './lint.js';
import type { SendOptions } from './options.js';
import {
	type Addressee,
	addresseeOf,
	assertAcceptable,
	compose,
	sendTrial,
	showPreview,
	wantsPreview,
} from './preview.js';
import { isShown, notAmong, shownKey } from './preview-as.js';
import { assertExpected } from './report.js';
import {
	contentOf,
	isOpaque,
	missingVariables,
	openVariables,
	type Prepared,
	prepare,
	specOf,
	withContext,
} from './request.js';
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
		if (strict) await assertNamed(cx, prepared, table);
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
	const { key: name, isMadeUp } = session;
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
	return runCampaign(cx, { ...campaign, warn, isMadeUp });
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
	const found = await surveyed(cx, sending);
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

/** The table is read to its end. Throws `UsageError` for an address the profile may not write to. */
async function surveyed(cx: CommandContext, sending: TableSending): Promise<Survey<Recipient>> {
	const found = new Survey<Recipient>(mostFindings(cx));
	const check = await checker(cx, sending);
	const key = shownKey(sending.options);
	for await (const row of sending.table.rows) {
		if (row.refused === undefined) assertAllowed(cx, [row.to]);
		found.read += 1;
		const finding = check(row);
		if (finding === null) found.add(row, 1, isShown(key, row.to));
		else found.reject(finding, row);
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
	const open = (shared.used ?? []).filter((name) => !given.includes(name) && !isBuiltIn(name));
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

function isBuiltIn(name: string): boolean {
	return builtInVariables.some((builtIn) => builtIn === name);
}

/** How many rows can be sent to, and the message of the first; nothing is written. */
export async function lookAtTable(
	cx: CommandContext,
	asked: Omit<TableSending, 'table'>,
): Promise<{ count: number; look: { prepared: Prepared; addressee: Addressee } | null }> {
	return withTable(cx, asked, glance(cx, asked.file, '--csv'), async (sending) => {
		const { first, recipients: count } = await surveyed(cx, sending);
		if (first === null) return { count, look: null };
		const prepared = withContext(sending.prepared, first);
		return { count, look: { prepared, addressee: await addresseeOf(cx, prepared, first.to) } };
	});
}

/** `--preview` and `--eml`: the first row's message. */
async function preview(cx: CommandContext, sending: TableSending): Promise<void> {
	const { prepared, options } = sending;
	const first = await firstOf(sending);
	const filled = withContext(prepared, first);
	await assertAcceptable(cx, { ...filled.request, to: [first.to] });
	await warnOfContent(cx, prepared);
	await showPreview(cx, await composeFor(cx, prepared, first), options);
}

async function composeFor(cx: CommandContext, prepared: Prepared, row: Recipient) {
	const filled = withContext(prepared, row);
	return compose(cx, filled, await addresseeOf(cx, filled, row.to));
}

/** The first row with an address; what else is wrong with it is for the message to show. */
async function firstOf({ table, file, options }: TableSending): Promise<Recipient> {
	const key = shownKey(options);
	for await (const row of table.rows)
		if (row.refused === undefined && parseAddress(row.to) !== null && isShown(key, row.to)) return row;
	if (key !== null) throw notAmong(options, `the rows of ${sourceName(file)}`);
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

/**
 * A column whose name is no variable's would show as `#First Name#` in every message. Throws `UsageError` naming each;
 * what only the service knows to say is not looked at.
 */
async function assertNamed(
	cx: CommandContext,
	prepared: Prepared,
	{ header, columns }: Pick<OpenTable, 'header' | 'columns'>,
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
	// With a table its columns are what counts: a field stands for one only where that was to be left out.
	const refused = misnamed.filter(
		({ written, variable }) =>
			!isVariableName(written) || (variable === null ? missing : open).includes(written),
	);
	const [first] = refused;
	if (first === undefined) return;
	throw new UsageError('the message names columns by what is no variable of theirs; nothing was sent', {
		details: refused.map(sayMisnamed),
		hint: `a variable is named with letters A to Z, digits and _: ${wayOut(first)}; --no-strict-vars leaves it as it is`,
	});
}

function sayMisnamed({ written, column, variable }: Misnamed): string {
	if (variable === null) return `#${written}#: the column "${column}" gives no variable`;
	return `#${written}#: the column "${column}" is #${variable}#`;
}

function wayOut({ column, variable }: Misnamed): string {
	return variable === null ? `--map "${column}=x" and #x# in the message` : `write #${variable}#`;
}
