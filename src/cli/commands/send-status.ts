/** `send status` and `send cancel`: jobs, where they stand, and their end. */
import type { Mailings } from '../../api/capabilities.js';
import type { Mailing } from '../../api/mailings.js';
import { command } from '../command.js';
import type { CommandContext } from '../context.js';
import { UsageError } from '../errors.js';
import { listOptions, listRows } from '../listing.js';
import { type Columns, column } from '../render/columns.js';
import { walk } from '../walk.js';
import { findJob } from './send-find.js';
import { describe, documentOf } from './send-job.js';
import { mailingPlace } from './send-place.js';

const columns: Columns<Mailing> = [
	column('key', 'JOB', { isName: true, isWhole: true }),
	column('state', 'STATE'),
	{ key: 'recipients', header: 'RECIPIENTS', align: 'right', value: ({ counts }) => counts.staged },
	column('subject', 'SUBJECT'),
	{ key: 'source', header: 'SOURCE', wide: true, value: ({ source }) => source?.['path'] ?? null },
	column('list_id', 'LIST', { wide: true, align: 'right' }),
	column('type', 'TYPE', { wide: true }),
	column('id', 'CAMPAIGN', { wide: true }),
	column('date_created', 'CREATED', { wide: true }),
];

export const sendStatus = command({
	name: 'status',
	summary: 'where a job stands, or all jobs',
	args: [
		{ name: 'job', summary: 'its name, as send printed it; without it all jobs are listed', optional: true },
	],
	options: { limit: listOptions.limit, all: listOptions.all },
	columns,
	output: 'the job, its counts and its messages by state; without a name an array of jobs',
	exits: [3],
	examples: ['mailctl send status', 'mailctl send status november'],
	run: async (cx, { args, options }) => {
		const { mailings } = await mailingPlace(cx);
		if (args.job !== undefined) {
			if (options.limit !== undefined || options.all)
				throw new UsageError('--limit and --all are for the list of all jobs');
			return show(cx, mailings, await findJob(cx, mailings, args.job));
		}
		const rows = (limit: number | undefined) => walk(mailings, {}, { signal: cx.signal, limit });
		await listRows(cx, { limit: options.limit, all: options.all }, { columns, rows });
	},
});

export const sendCancel = command({
	name: 'cancel',
	summary: 'drop a job that is staged, or what a released one has not sent',
	args: [{ name: 'job', summary: 'its name, as send printed it' }],
	writes: true,
	severity: 'mild',
	output: 'the job, its counts and its messages by state',
	exits: [3],
	examples: ['mailctl send cancel november --yes'],
	run: async (cx, { args }) => {
		const { mailings } = await mailingPlace(cx);
		const mailing = await findJob(cx, mailings, args.job);
		const what = await consequence(mailings, mailing);
		if (cx.dryRun) return cx.wouldDo(what, { job: args.job, state: mailing.state });
		if (mailing.state !== 'canceled') {
			await cx.confirm({ kind: 'mild', what });
			await mailings.cancel(mailing.id, { signal: cx.signal });
		}
		await show(cx, mailings, mailing);
	},
});

async function consequence(mailings: Mailings, { id, key, state, counts }: Mailing): Promise<string> {
	if (state !== 'released')
		return `drop the job "${key}" and its ${counts.staged.toLocaleString('en-US')} staged messages`;
	const { queued = 0, deferred = 0 } = (await mailings.status(id)).messages;
	return `cancel the ${(queued + deferred).toLocaleString('en-US')} messages of the job "${key}" that are not sent yet`;
}

async function show(
	cx: CommandContext,
	mailings: Mailings,
	{ id, is_complete, position }: Mailing,
): Promise<void> {
	const status = await mailings.status(id, { signal: cx.signal });
	const parts = Object.entries(status.messages).map(([state, count]) => `${state} ${count}`);
	const sentence = `${status.state}: ${describe(status.counts)}${parts.length === 0 ? '' : `; ${parts.join(', ')}`}`;
	await cx.out.document({ ...documentOf(status), rows: position, is_complete }, sentence);
	if (status.state === 'staged') await cx.hint(`mailctl send resume ${status.key}`);
}
