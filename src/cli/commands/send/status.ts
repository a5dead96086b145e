/** `send status` and `send cancel`: jobs, where they stand, and their end. */
import type { MailingStatus, Mailings } from '../../../api/capabilities.js';
import type { Mailing } from '../../../api/mailings.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { listOptions, listRows } from '../../listing.js';
import { type Columns, column } from '../../render/columns.js';
import { shellWord } from '../../shell-word.js';
import { type Walk, walk } from '../../walk.js';
import { countOf, outcomesOf, progressOf } from './counts.js';
import { findJob } from './find.js';
import { describe, documentOf } from './job.js';
import { mailingPlace } from './place.js';

const columns: Columns<JobRecord> = [
	column('job', 'JOB', { isName: true, isWhole: true }),
	column('state', 'STATE'),
	column('recipients', 'RECIPIENTS', { align: 'right', isCount: true }),
	{ key: 'sent', header: 'SENT', align: 'right', isCount: true, value: ({ messages }) => messages.sent ?? 0 },
	column('date_created', 'CREATED'),
	column('subject', 'SUBJECT'),
	{ key: 'source', header: 'SOURCE', wide: true, value: ({ source }) => source?.['path'] ?? null },
	column('list_id', 'LIST', { wide: true, align: 'right' }),
	column('type', 'TYPE', { wide: true }),
	column('campaign_unique_id', 'CAMPAIGN', { wide: true }),
];

export const sendStatus = command({
	name: 'status',
	summary: 'where a job stands, or all jobs',
	args: [
		{ name: 'job', summary: 'its name, as send printed it; without it all jobs are listed', optional: true },
	],
	options: { limit: listOptions.limit, all: listOptions.all },
	columns,
	output:
		'{"job", "campaign_unique_id", "state": "staged"|"released"|"canceled", "recipients" (before suppression), "staged", ' +
		'"suppressed", "rejected" (left out, no recipients), "messages": {"sent": 2, "queued": 1, …}, "rows" (read), "is_complete", ' +
		'"type", "subject", "list_id", "source", "date_created"}; without a name an array of these',
	exits: [3],
	examples: ['mailctl send status', 'mailctl send status november'],
	run: async (cx, { args, options }) => {
		const { mailings } = await mailingPlace(cx);
		if (args.job !== undefined) {
			if (options.limit !== undefined || options.all)
				throw new UsageError('--limit and --all are for the list of all jobs');
			return show(cx, mailings, await findJob(cx, mailings, args.job));
		}
		const rows = (limit: number | undefined) => jobs(cx, mailings, limit);
		await listRows(cx, { limit: options.limit, all: options.all }, { columns, rows });
	},
});

export const sendCancel = command({
	name: 'cancel',
	summary: 'drop a job that is staged, or what a released one has not sent',
	args: [{ name: 'job', summary: 'its name, as send printed it' }],
	writes: true,
	severity: 'mild',
	output: 'the job, as send status shows it',
	exits: [3],
	examples: ['mailctl send cancel november --yes'],
	run: async (cx, { args }) => {
		const { mailings } = await mailingPlace(cx);
		const mailing = await findJob(cx, mailings, args.job);
		const what = await consequence(mailings, mailing);
		if (cx.dryRun) return cx.wouldDo(what, { job: args.job, state: mailing.state });
		const { messages } = await mailings.status(mailing.id, { signal: cx.signal });
		if (mailing.state === 'released' && openOf(messages) === 0) {
			await cx.note(`nothing to cancel: ${progressOf(outcomesOf(messages), null)}`);
			return show(cx, mailings, mailing);
		}
		if (mailing.state !== 'canceled') {
			await cx.confirm({ kind: 'mild', what });
			await mailings.cancel(mailing.id, { signal: cx.signal });
		}
		await show(cx, mailings, mailing);
	},
});

/** A job as both forms of `send status` tell it. */
type JobRecord = ReturnType<typeof recordOf>;

function recordOf(mailing: Mailing, status: MailingStatus) {
	const { position, is_complete, type, subject, list_id, source, date_created } = mailing;
	const opened = { type, subject, list_id, source, date_created };
	return { ...documentOf(status), rows: position, is_complete, ...opened };
}

/** Each is asked for its messages when it is shown, not before. */
function jobs(cx: CommandContext, mailings: Mailings, limit: number | undefined): Walk<JobRecord> {
	const { signal } = cx;
	const all = walk(mailings, {}, { signal, limit });
	async function* records(): AsyncGenerator<JobRecord> {
		for await (const mailing of all) yield recordOf(mailing, await mailings.status(mailing.id, { signal }));
	}
	return { [Symbol.asyncIterator]: records, count: all.count };
}

async function consequence(mailings: Mailings, { id, key, state, counts }: Mailing): Promise<string> {
	if (state !== 'released')
		return `drop the job "${key}" and its ${countOf(counts.staged, 'staged message')}`;
	const { queued = 0, deferred = 0 } = (await mailings.status(id)).messages;
	return `cancel the ${countOf(queued + deferred, 'message')} of the job "${key}" not sent yet`;
}

/** What is being sent cannot be called back, but may still come back to the queue. */
function openOf({ staged = 0, queued = 0, deferred = 0, leased = 0 }: MailingStatus['messages']): number {
	return staged + queued + deferred + leased;
}

async function show(cx: CommandContext, mailings: Mailings, mailing: Mailing): Promise<void> {
	const status = await mailings.status(mailing.id, { signal: cx.signal });
	await cx.out.document(recordOf(mailing, status), sentenceFor(status));
	if (status.state === 'staged') await cx.hint(`mailctl send resume ${shellWord(status.key)}`);
}

function sentenceFor({ key, state, counts, messages }: MailingStatus): string {
	const shown = Object.entries(messages).filter(([name]) => state !== 'canceled' || !ofCanceled.has(name));
	const parts = shown.map(([name, count]) => `${count.toLocaleString('en-US')} ${name}`);
	if (state === 'canceled') return [canceledOf(key, messages), ...parts].join(', ');
	return [`${state}: ${describe(counts)}`, parts.join(', ')].filter((part) => part !== '').join('; ');
}

const ofCanceled: ReadonlySet<string> = new Set(['canceled', 'sent', 'leased', 'queued', 'staged']);

/** `2,277 canceled; 57,558 had been sent, 165 are being sent`. */
function canceledOf(key: string, messages: MailingStatus['messages']): string {
	const { canceled = 0, sent = 0, leased = 0 } = messages;
	if (canceled + sent + leased === 0) return `the job "${key}" is dropped; nothing of it was sent`;
	const number = (count: number) => count.toLocaleString('en-US');
	const left = leased > 0 ? `, ${number(leased)} are being sent` : '';
	return `${number(canceled)} canceled; ${number(sent)} had been sent${left}`;
}
