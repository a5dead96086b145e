/** `send --csv`: one message a row of a table, whose columns are its variables. */
import type { MailingSpec, Recipient } from '../../../api/capabilities.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import type { ExitCode } from '../../exit.js';
import { assertAllowed } from './allowed.js';
import { beginJob } from './begin.js';
import { assertCanDeliver } from './deliver.js';
import type { TableSending } from './dry-table.js';
import { runJob } from './job.js';
import { openJob } from './open.js';
import type { SendOptions } from './options.js';
import { type Addressee, assertAcceptable, compose, showPreview, wantsPreview } from './preview.js';
import { prepare, specOf, withContext } from './request.js';
import { assertRowOptions, rowJob } from './rows.js';
import { type OpenRows, openTableRows, sourceName } from './source.js';
import { sendTrial, trialSubject } from './trial.js';
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
		const sending = { prepared, table, file, options };
		if (cx.dryRun) return await dryRun(cx, sending);
		if (wantsPreview(options)) return await preview(cx, sending).then(() => undefined);
		if (options.testTo !== undefined) return await sendTest(cx, sending, options.testTo);
		return await begin(cx, sending);
	} finally {
		await table.close();
	}
}

async function begin(
	cx: CommandContext,
	{ prepared, table, file, options }: TableSending,
): Promise<ExitCode> {
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

async function dryRun(cx: CommandContext, sending: TableSending): Promise<ExitCode> {
	return (await import('./dry-table.js')).dryRunTable(cx, sending);
}

/** `--preview` and `--eml`: the first row's message. */
async function preview(cx: CommandContext, { prepared, table, file, options }: TableSending): Promise<void> {
	const first = await firstOf(table, file);
	const filled = withContext(prepared, first);
	await assertAcceptable(cx, { ...filled.request, to: [first.to] });
	const composed = await compose(cx, filled, addresseeOf(first));
	await showPreview(cx, composed, options);
}

/** The first row with an address; what else is wrong with it is for the message to show. */
async function firstOf(table: OpenRows<Recipient>, file: string): Promise<Recipient> {
	const { parseAddress } = await import('../../../api/address.js');
	for await (const row of table.rows)
		if (row.refused === undefined && parseAddress(row.to) !== null) return row;
	throw new UsageError(`${sourceName(file)} has no row that could be sent to`);
}

function addresseeOf({ to }: Recipient): Addressee {
	return { to, subscriber: null, email_reason: null };
}

/** To an address of one's own: with the first row's variables, under no mailing. */
async function sendTest(
	cx: CommandContext,
	{ prepared, table, file, options }: TableSending,
	to: string,
): Promise<ExitCode> {
	assertAllowed(cx, [to]);
	await assertCanDeliver(cx, options);
	const first = await firstOf(table, file);
	const filled = withContext(prepared, first);
	const subject = await trialSubject(cx, prepared, () => compose(cx, filled, addresseeOf(first)));
	const request = { ...filled.request, type: 'TRANSACTIONAL' as const, to: [to] };
	return sendTrial(cx, { request, subject, asFor: first.to, options });
}
