/** `send --csv`: one message a row of a table, whose columns are its variables. */
import type { MailingSpec, Recipient } from '../../../api/capabilities.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import type { ExitCode } from '../../exit.js';
import { assertAllowed } from './allowed.js';
import { beginJob } from './begin.js';
import { countOf } from './counts.js';
import { assertCanDeliver } from './deliver.js';
import { assertExpected } from './expected.js';
import { runJob } from './job.js';
import { openJob } from './open.js';
import type { SendOptions } from './options.js';
import { assertAcceptable, compose, showDryRun, showPreview, wantsPreview } from './preview.js';
import { isOpaque, type Prepared, prepare, specOf } from './request.js';
import { assertRowOptions, rowJob } from './rows.js';
import { type OpenRows, type OpenTable, openTableRows, sourceName } from './source.js';
import { sendTrial } from './trial.js';
import { assertNamed } from './variables.js';

export async function sendToTable(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<ExitCode | undefined> {
	assertRowOptions(options, '--csv');
	const prepared = await prepare(cx, options);
	const table = await openTableRows(cx, file, { map: options.map });
	try {
		if (options.strictVars ?? true) await assertNamed(cx, prepared, table);
		if (wantsPreview(options) || cx.dryRun) return await preview(cx, { prepared, table, file, options });
		if (options.testTo !== undefined)
			return await sendTest(cx, { prepared, table, file, options }, options.testTo);
		return await begin(cx, { prepared, table, file, options });
	} finally {
		await table.close();
	}
}

interface Sending {
	prepared: Prepared;
	table: OpenTable;
	file: string;
	options: SendOptions;
}

async function begin(cx: CommandContext, { prepared, table, file, options }: Sending): Promise<ExitCode> {
	const of = sourceName(file);
	const { place, name, isMadeUp } = await beginJob(cx, options, of);
	const spec: MailingSpec = {
		...specOf(prepared),
		source: table.source,
		// A column that is missing shows as #name# in every message: nobody means that.
		strict_vars: options.strictVars ?? true,
	};
	const session = await openJob(cx, place, { name, spec });
	const subject = prepared.template?.name ?? prepared.request.subject ?? '';
	const { bulk } = options;
	const rows = async () => ({ kind: 'csv' as const, open: table });
	const job = rowJob(cx, { place, session, name, of, subject, bulk, options, rows });
	return runJob(cx, { ...job, isMadeUp });
}

/** `--preview`, `--eml` and `--dry-run`: the first row's message; a dry run reads the whole table besides. */
async function preview(cx: CommandContext, { prepared, table, file, options }: Sending): Promise<undefined> {
	const { first, counts } = await survey(table, cx.dryRun ? 'all' : 'first');
	if (first === null) throw new UsageError(`${sourceName(file)} has no row that could be sent to`);
	const filled = withContext(prepared, first);
	await assertAcceptable(cx, { ...filled.request, to: [first.to] });
	if (cx.dryRun) assertExpected({ found: counts.recipients, counted: sourceName(file), options });
	const what = (subject: string) =>
		`send ${subject} to the ${countOf(counts.recipients, 'recipient')} of ${sourceName(file)}`;
	const plan = { ...counts, send: prepared.request };
	if (isOpaque(prepared) && !wantsPreview(options))
		return cx.wouldDo(what(`template ${prepared.request.template_unique_id}`), plan).then(() => undefined);
	const addressee = { to: first.to, subscriber: null, email_reason: null };
	const composed = await compose(cx, filled, addressee);
	if (wantsPreview(options)) return showPreview(cx, composed, options).then(() => undefined);
	await showDryRun(cx, composed, what(`"${composed.subject}"`), plan);
}

/** What the rows are as far as their addresses tell; the service looks at the rest. */
interface Counts {
	rows: number;
	recipients: number;
	duplicates: number;
	rejected: number;
}

async function survey(
	table: OpenRows<Recipient>,
	how: 'first' | 'all',
): Promise<{ first: Recipient | null; counts: Counts }> {
	const [{ parseAddress }, { AddressSet }] = await Promise.all([
		import('../../../api/address.js'),
		import('../../../jobs/foreign/address-set.js'),
	]);
	const counts: Counts = { rows: 0, recipients: 0, duplicates: 0, rejected: 0 };
	const seen = new AddressSet();
	let first: Recipient | null = null;
	for await (const row of table.rows) {
		counts.rows += 1;
		const address = row.refused === undefined ? parseAddress(row.to) : null;
		if (address === null) counts.rejected += 1;
		else if (seen.add(address.key)) counts.recipients += 1;
		else counts.duplicates += 1;
		if (address === null) continue;
		first ??= row;
		if (how === 'first') break;
	}
	return { first, counts };
}

/** To an address of one's own: with the first row's variables, under no mailing. */
async function sendTest(
	cx: CommandContext,
	{ prepared, table, file, options }: Sending,
	to: string,
): Promise<ExitCode> {
	assertAllowed(cx, [to]);
	await assertCanDeliver(cx, options);
	const { first } = await survey(table, 'first');
	if (first === null) throw new UsageError(`${sourceName(file)} has no row that could be sent to`);
	const filled = withContext(prepared, first);
	const addressee = { to: first.to, subscriber: null, email_reason: null };
	const subject = isOpaque(prepared)
		? `template ${prepared.request.template_unique_id}`
		: `"${(await compose(cx, filled, addressee)).subject}"`;
	const request = { ...filled.request, type: 'TRANSACTIONAL' as const, to: [to] };
	return sendTrial(cx, { request, subject, asFor: first.to, options });
}

function withContext({ request, template }: Prepared, { context }: Recipient): Prepared {
	return { request: { ...request, context: { ...request.context, ...context } }, template };
}
