/** `send --list`: staged beside the data, checked, shown, released in one stroke, delivered. */
import { randomBytes } from 'node:crypto';
import {
	type AcceptCounts,
	type Ack,
	type MailingSpec,
	type MailingStatus,
	type Mailings,
	need,
} from '../../api/capabilities.js';
import { ApiError } from '../../api/errors.js';
import type { List } from '../../api/records.js';
import type { CommandContext } from '../context.js';
import { CliError, Declined, UsageError } from '../errors.js';
import { type ExitCode, exits } from '../exit.js';
import { explained } from '../refusals.js';
import { resolveList } from '../resolve.js';
import { walk } from '../walk.js';
import { assertAllowed, assertListAllowed } from './send-allowed.js';
import { assertCanDeliver, concludeDelivery, deliverNow, warnOfLinks } from './send-deliver.js';
import { sendHint } from './send-hints.js';
import type { SendOptions } from './send-options.js';
import { wantsPreview } from './send-preview.js';
import { type Prepared, prepare } from './send-request.js';
import { previewList, sendTest } from './send-trial.js';

export async function sendToList(
	cx: CommandContext,
	options: SendOptions,
	text: string,
): Promise<ExitCode | undefined> {
	assertOptions(options);
	const list = await resolveList(await cx.api(), text, { signal: cx.signal });
	const prepared = await prepare(cx, options);
	if (wantsPreview(options) || cx.dryRun) return previewList(cx, { prepared, list, options });
	if (options.testTo !== undefined) {
		assertAllowed(cx, [options.testTo]);
		return sendTest(cx, { prepared, list, options }, options.testTo);
	}
	const mailings = await need(await cx.api(), 'mailings');
	await assertListAllowed(cx, list);
	assertConsent(cx, options);
	await assertCanDeliver(cx, options);
	if (options.results !== undefined)
		await (await import('./send-results.js')).assertWritable(options.results);
	const job = options.job ?? `send-${randomBytes(6).toString('hex')}`;
	const spec = specOf(prepared, list, options);
	const { id } = await explained(mailings.open(job, spec), { input: spec, hint: sendHint });
	const before = await mailings.status(id);
	if (before.state === 'canceled') throw new UsageError(`the job "${job}" was canceled; give another name`);
	if (before.state === 'staged') await release(cx, mailings, { id, job, list, prepared, options });
	else await cx.note(`the job "${job}" is released already: going on with it`);
	return deliver(cx, mailings, { id, job, options });
}

interface Staging {
	id: string;
	job: string;
	list: List;
	prepared: Prepared;
	options: SendOptions;
}

/** Stages and checks; whatever speaks against it ends here, with nothing released. */
async function release(cx: CommandContext, mailings: Mailings, staging: Staging): Promise<void> {
	try {
		await releaseOnce(mailings, staging, await stage(cx, mailings, staging));
	} catch (error) {
		// What may be on its way is not called back by somebody who only lost an answer.
		if (error instanceof CliError && error.exit === exits.uncertain) throw error;
		// A name that was made up is of no use to anybody: what was staged under it goes.
		if (staging.options.job === undefined || error instanceof Declined) await drop(cx, mailings, staging);
		throw error;
	}
}

/** How many are staged, once nothing speaks against sending to them. */
async function stage(cx: CommandContext, mailings: Mailings, staging: Staging): Promise<number> {
	const { id, list, options } = staging;
	const { rejects } = await mailings.addList(id, list.id, { signal: cx.signal });
	// Whoever interrupted does not want what comes next.
	cx.signal.throwIfAborted();
	// A job that was staged before goes on with what is there: its counts are those of all that was added.
	const { counts } = await mailings.status(id);
	const found = totalOf(counts);
	if (found === 0 && options.expectCount !== 0) {
		throw new UsageError(`list ${list.id} "${list.name}" has no active subscribers; nothing was sent`);
	}
	await assertFindings(cx, { counts, rejects }, options);
	if (options.maxRecipients !== undefined && found > options.maxRecipients) {
		throw new UsageError(
			`${found} recipients are more than --max-recipients ${options.maxRecipients}; nothing was released`,
		);
	}
	if (options.expectCount !== undefined && options.expectCount !== found) {
		throw new UsageError(
			`the list has ${found} recipients, not ${options.expectCount}; nothing was released`,
			{
				hint: `--expect-count ${found} if that is right`,
			},
		);
	}
	await agree(cx, staging, counts);
	cx.signal.throwIfAborted();
	return counts.staged;
}

/** The error that led here is the one to tell: a second one only gets a line. */
async function drop(cx: CommandContext, mailings: Mailings, { id, job }: Staging): Promise<void> {
	await mailings.cancel(id).catch(() => cx.warn(`what was staged as "${job}" could not be dropped`));
}

/** A release that nobody answered may have happened; only the mailing itself can tell. */
async function releaseOnce(mailings: Mailings, { id, job }: Staging, staged: number): Promise<void> {
	try {
		await mailings.release(id, { expect_count: staged });
	} catch (error) {
		if (!(error instanceof ApiError) || !error.unanswered) throw error;
		const state = await mailings.status(id).then(
			(status) => status.state,
			() => null,
		);
		if (state === 'released') return;
		throw new CliError(
			'uncertain',
			exits.uncertain,
			`the mailing may or may not be released: ${error.message}`,
			{
				hint: `run it again with --job ${job}: nobody gets it twice`,
				cause: error,
			},
		);
	}
}

async function assertFindings(
	cx: CommandContext,
	{ counts, rejects }: Pick<Ack<AcceptCounts>, 'counts' | 'rejects'>,
	options: SendOptions,
): Promise<void> {
	if (counts.rejected === 0) return;
	const lines = rejects.map(({ error }) => error);
	const more = counts.rejected > lines.length ? [`and ${counts.rejected - lines.length} more`] : [];
	if (!options.skipInvalid) {
		throw new UsageError(
			`${counts.rejected} recipients cannot be sent to as they are; nothing was released`,
			{
				details: [...lines, ...more],
				hint: `mend them${options.job === undefined ? '' : ' and give another --job'}, or give --skip-invalid, or --no-strict-vars for missing variables`,
			},
		);
	}
	for (const line of [...lines, ...more]) await cx.warn(`left out: ${line}`);
}

async function agree(
	cx: CommandContext,
	{ list, prepared, options }: Staging,
	counts: AcceptCounts,
): Promise<void> {
	await cx.note(`${describe(counts)} of list ${list.id} "${list.name}"`);
	await warnOfLinks(cx, options);
	if (options.expectCount !== undefined && cx.globals.yes === true) return;
	const api = await cx.api();
	const shown: string[] = [];
	for await (const { email } of walk(
		api.subscribers(list.id),
		{ is_active: true },
		{ signal: cx.signal, limit: options.sample },
	))
		shown.push(email);
	if (shown.length > 0) await cx.note(`first of them: ${shown.join(', ')}`);
	const subject = prepared.template?.name ?? prepared.request.subject ?? '';
	await cx.confirm({
		kind: 'mild',
		what: `send "${subject}" to ${counts.staged.toLocaleString('en-US')} recipients`,
	});
}

/** In a script both are wanted, so that neither a habit nor a grown list sends by itself. */
function assertConsent(cx: CommandContext, options: SendOptions): void {
	if (cx.canAsk) return;
	if (cx.globals.yes === true && options.expectCount !== undefined) return;
	throw new UsageError('sending to a list needs consent', {
		hint: 'add --yes --expect-count N, N being the recipients you expect',
	});
}

async function deliver(
	cx: CommandContext,
	mailings: Mailings,
	{ id, job, options }: { id: string; job: string; options: SendOptions },
): Promise<ExitCode> {
	const { counts } = await mailings.status(id);
	await cx.note(`job ${job}, campaign ${id}`);
	const summary = await deliverNow(cx, { mailing: id }, counts.staged, options);
	const after = await mailings.status(id);
	if (options.results !== undefined) {
		const { writeResults } = await import('./send-results.js');
		await writeResults(cx, options.results, { campaign: id });
	}
	await cx.out.document(documentOf(job, after), `released: ${describe(counts)}`);
	const code = await concludeDelivery(cx, summary);
	return code === exits.done && counts.rejected > 0 ? exits.partly : code;
}

function documentOf(job: string, { id, counts, messages, state }: MailingStatus) {
	return { job, campaign_unique_id: id, state, recipients: totalOf(counts), ...counts, messages };
}

function describe({ staged, suppressed, rejected }: AcceptCounts): string {
	const parts = [`${staged.toLocaleString('en-US')} recipients`];
	if (suppressed > 0) parts.push(`${suppressed} suppressed`);
	if (rejected > 0) parts.push(`${rejected} left out`);
	return parts.join(', ');
}

function totalOf({ staged, suppressed, rejected }: AcceptCounts): number {
	return staged + suppressed + rejected;
}

/** The list is in it, so that a job's name cannot go on with another list. */
function specOf({ request }: Prepared, list: List, options: SendOptions): MailingSpec {
	const { cc, bcc, from, type, ...rest } = request;
	return {
		...rest,
		list_id: list.id,
		from: typeof from === 'string' ? from : (from[0] ?? ''),
		type: type ?? 'TRANSACTIONAL',
		strict_vars: options.strictVars ?? options.bulk,
	};
}

function assertOptions(options: SendOptions): void {
	if (options.to.length > 0)
		throw new UsageError('--to and --list both name recipients; give one', {
			hint: 'a trial to yourself: --list LIST --test-to you@example.com',
		});
	if (options.cc.length + options.bcc.length > 0)
		throw new UsageError('--cc and --bcc do not go with --list: a copy of every message is never meant');
	if (options.idempotencyKey !== undefined)
		throw new UsageError('--idempotency-key does not go with --list; --job NAME plays that part');
}
