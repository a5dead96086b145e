/** `send resume JOB`: goes on from wherever the job was broken off. */
import { basename } from 'node:path';
import type { Mailing } from '../../../api/mailings.js';
import type { List } from '../../../api/records.js';
import type { MailingPlace } from '../../../jobs/mailing-place.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import type { ExitCode } from '../../exit.js';
import { shellWord } from '../../shell-word.js';
import { assertListAllowed } from './allowed.js';
import { assertCanDeliver, parseRate } from './deliver.js';
import { findJob } from './find.js';
import { assertHonoured } from './honoured.js';
import { assertConsent, type Job, type JobOptions, runJob } from './job.js';
import { listJob } from './list.js';
import { sendOptions } from './options.js';
import { mailingPlace } from './place.js';
import { assertResults } from './results-place.js';
import { type JobRows, rowJob } from './rows.js';
import { keptColumns, openRequestRows, openTableRows } from './source.js';

export const sendResume = command({
	name: 'resume',
	summary: 'go on with a job that was broken off',
	description:
		'What was staged stays staged and what was sent is not sent again. A job that was not released yet is checked ' +
		'and released first, which needs consent as it did at the beginning. Rows that are not staged yet are read from ' +
		'the same file, and from no other one. The rate of the earlier run is not kept: give --rate again.',
	args: [{ name: 'job', summary: 'its name, as send printed it' }],
	options: {
		source: {
			kind: 'text',
			placeholder: 'FILE',
			summary: 'where its file is now, if it was moved before all rows were staged',
		},
		expectCount: sendOptions.expectCount,
		maxRecipients: sendOptions.maxRecipients,
		skipInvalid: sendOptions.skipInvalid,
		sample: sendOptions.sample,
		rate: sendOptions.rate,
		connections: sendOptions.connections,
		wait: sendOptions.wait,
		waitTimeout: sendOptions.waitTimeout,
		results: sendOptions.results,
		retryUnknown: sendOptions.retryUnknown,
	},
	writes: true,
	output: 'the job and its counts',
	exits: [3, 6, 9, 12, 13],
	examples: ['mailctl send resume november', 'mailctl send resume november --results november.csv'],
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		if (options.rate !== undefined) parseRate(options.rate);
		await assertHonoured(cx, { ...options, isJob: true });
		const place = await mailingPlace(cx);
		const mailing = await findJob(cx, place.mailings, args.job);
		if (mailing.state === 'canceled') throw new UsageError(`the job "${args.job}" was canceled`);
		const what = `go on with the job "${args.job}", which is ${mailing.state}`;
		if (cx.dryRun) return cx.wouldDo(what, { job: args.job, state: mailing.state }).then(() => undefined);
		const job = await jobOf(cx, place, mailing, options);
		if (mailing.state === 'staged') assertConsent(cx, options, job.of);
		await assertCanDeliver(cx, options);
		const read = [options.source, mailing.source?.['path']];
		await assertResults(options.results, {
			inputs: read.filter((path) => path !== undefined),
			mailing: async () => mailing.id,
		});
		return runJob(cx, { ...job, isMadeUp: false });
	},
});

async function jobOf(
	cx: CommandContext,
	place: MailingPlace,
	mailing: Mailing,
	options: JobOptions & { source: string | undefined },
): Promise<Omit<Job, 'isMadeUp'>> {
	const { id, key: name, list_id, source, position } = mailing;
	const subject = mailing.subject ?? '';
	const bulk = mailing.type === 'BULK';
	if (source === null && list_id !== null && position === 0) {
		const list = await listOf(cx, mailing, list_id);
		return listJob(cx, { place, id, name, list, subject, bulk, options });
	}
	const known = { place, session: { id, position }, name, of: nameOf(mailing), bulk, options };
	const rows =
		mailing.is_complete || mailing.state !== 'staged' ? null : await rowsOf(cx, mailing, options.source);
	return rowJob(cx, { ...known, subject: mailing.requests ? null : subject, rows });
}

/** Once it is released the list may be gone: its name is all that is wanted of it then. */
async function listOf(
	cx: CommandContext,
	{ state }: Mailing,
	id: number,
): Promise<Pick<List, 'id' | 'name'>> {
	const api = await cx.api();
	if (state !== 'staged') return { id, name: await api.lists.get(id).then(nameOfList, () => '') };
	const list = await api.lists.get(id, { signal: cx.signal });
	await assertListAllowed(cx, list);
	return list;
}

function nameOfList({ name }: List): string {
	return name;
}

function nameOf({ source, key }: Mailing): string {
	const path = source?.['path'];
	return path === undefined ? `the job "${key}"` : basename(path);
}

/** The rest of the rows: from the very file the job was begun with, so that it never reaches other people. */
async function rowsOf(
	cx: CommandContext,
	{ key, source, position }: Mailing,
	moved: string | undefined,
): Promise<() => Promise<JobRows>> {
	const path = moved ?? source?.['path'];
	if (source === null || path === undefined || source['sha256'] === undefined)
		throw cannotGoOn(key, position);
	const { surveySource } = await import('../../tabular/source.js');
	const { sha256 } = await surveySource(path, cx.signal);
	if (sha256 !== source['sha256']) throw otherFile(key, path);
	if (source['kind'] === 'batch')
		return async () => ({ kind: 'batch', open: await openRequestRows(cx, path) });
	return async () => ({ kind: 'csv', open: await openTableRows(cx, path, { columns: keptColumns(source) }) });
}

function cannotGoOn(name: string, position: number): UsageError {
	return new UsageError(
		`the job "${name}" was broken off after ${position.toLocaleString('en-US')} rows, and where they came from cannot be read again; nothing was sent`,
		{ hint: `mailctl send cancel ${shellWord(name)}, then send it again under another name` },
	);
}

function otherFile(name: string, path: string): UsageError {
	return new UsageError(`${path} is not the file the job "${name}" was begun with; nothing was sent`, {
		hint: `--source FILE where that is, or mailctl send cancel ${shellWord(name)}`,
	});
}
