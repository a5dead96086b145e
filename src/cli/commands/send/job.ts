/** A mailing as a job: staged, checked, shown, released in one stroke, delivered. What its rows are is the caller's. */
import type { AcceptCounts, MailingStatus } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/delivery-counts.js';
import type { MailingDelivery, MailingPlace } from '../../../jobs/mailing-place.js';
import type { CommandContext } from '../../context.js';
import { CliError, Declined, UsageError } from '../../errors.js';
import { classify, type ExitCode, exits } from '../../exit.js';
import { isMachine } from '../../globals.js';
import { shellWord } from '../../shell-word.js';
import { concludeDelivery } from './conclude.js';
import { countOf, outcomesOf, progressOf, sentenceOf, waitingOf } from './counts.js';
import { parseRate } from './deliver.js';
import { assertExpected } from './expected.js';
import { cannotBeSent, listed, shownFindings } from './findings.js';
import { saysHowToRelease } from './goes-on.js';
import type { SendOptions } from './options.js';
import { releaseOnce } from './release.js';
import type { ResultsHow } from './results.js';

/** What a job may be told, whether it begins or goes on. */
export type JobOptions = Pick<
	SendOptions,
	| 'expectCount'
	| 'maxRecipients'
	| 'skipInvalid'
	| 'sample'
	| 'results'
	| 'wait'
	| 'waitTimeout'
	| 'rate'
	| 'connections'
	| 'retryUnknown'
>;

/** One job: where it is kept, what it is called, and what is particular to the kind of its rows. */
export interface Job {
	place: MailingPlace;
	id: string;
	name: string;
	/** Nobody can come back to it: what was staged goes when nothing is released. */
	isMadeUp: boolean;
	options: JobOptions;
	/** What the recipients are of: `list 1 "Readers"`, `people.csv`. */
	of: string;
	/** What it is called where it is counted: `the list`, `people.csv`. */
	counted: string;
	/** What they read; null where each message has a subject of its own. */
	subject: string | null;
	/** Puts what is not staged yet. */
	stage(): Promise<void>;
	/** Results have a line for who is left out too: rows of a file do, those of a list do not. */
	hasRejectLines: boolean;
	/** What cannot be sent to, a line each, the first of them. */
	findings(most: number): Promise<readonly string[]>;
	/** A variable without a value is among all of those. */
	lacksValues(): Promise<boolean>;
	/** The first addresses. */
	sample(most: number): Promise<readonly string[]>;
	/** What became of each of them, as far as it is known. */
	writeResults(path: string, how: ResultsHow): Promise<void>;
	/** What the sender should know before he agrees. */
	warn(): Promise<void>;
	/** Nobody was found. */
	nobody: string;
}

/** In a script both are wanted, so that neither a habit nor a grown list sends by itself. */
export function assertConsent(cx: CommandContext, { expectCount }: JobOptions, what: string): void {
	if (cx.canAsk) return;
	if (cx.globals.yes === true && expectCount !== undefined) return;
	throw new UsageError(`sending to ${what} needs consent`, {
		hint: 'add --yes --expect-count N, N being the recipients you expect',
	});
}

/** From wherever the job stands to the end. */
export async function runJob(cx: CommandContext, job: Job): Promise<ExitCode> {
	const { place, id, name } = job;
	const { state } = await place.mailings.status(id);
	if (state === 'canceled') throw new UsageError(`the job "${name}" was canceled; give another name`);
	if (state === 'released') return goOn(cx, job);
	await release(cx, job);
	return deliver(cx, job, null);
}

/** What earlier runs sent is told apart from what this one sends. */
async function goOn(cx: CommandContext, job: Job): Promise<ExitCode> {
	const { place, id, name, options } = job;
	const status = await place.mailings.status(id);
	const before = outcomesOf(status.messages);
	if (!isFinished(status.messages)) {
		await cx.note(`the job "${name}" is released already: going on with it`);
		return deliver(cx, job, before);
	}
	if (options.results !== undefined) await job.writeResults(options.results, { isDropped: false });
	const sentence = `the job "${name}" is finished: ${progressOf(before, null)}`;
	await cx.out.document(documentOf(status));
	const outcome = { kind: 'settled', reason: null, counts: before, warnings: [] } as const;
	return codeOf(
		await concludeDelivery(cx, outcome, { waiting: 0, job: { job: name, sentence } }),
		status.counts,
	);
}

/** Nothing of it waits to be sent, as what is deferred does, and nothing is to be decided about what is uncertain. */
function isFinished(messages: MailingStatus['messages']): boolean {
	const { deferred = 0, uncertain = 0 } = messages;
	return waitingOf(messages) + deferred + uncertain === 0;
}

/** Stages and checks; whatever speaks against it ends here, with nothing released. */
async function release(cx: CommandContext, job: Job): Promise<void> {
	try {
		await releaseOnce(job, await stage(cx, job));
	} catch (error) {
		// What may be on its way is not called back by somebody who only lost an answer.
		if (error instanceof CliError && error.exit === exits.uncertain) throw error;
		// A name that was made up is of no use to anybody: what was staged under it goes.
		const isDropped = job.isMadeUp || error instanceof Declined;
		if (isDropped) await drop(cx, job);
		if (cx.signal.aborted)
			await cx.hint(
				isDropped
					? `nothing was sent, and "${job.name}" is dropped; a job with a name of its own (--job) can be gone on with`
					: saysHowToRelease(job.name),
			);
		throw error;
	}
}

/** How many are staged, once nothing speaks against sending to them. */
async function stage(cx: CommandContext, job: Job): Promise<number> {
	const { place, id, options } = job;
	await job.stage();
	// Whoever interrupted does not want what comes next.
	cx.signal.throwIfAborted();
	// A job that was staged before goes on with what is there: its counts are those of all that was added.
	const { counts } = await place.mailings.status(id);
	const found = recipientsOf(counts);
	if (found + counts.rejected === 0 && options.expectCount !== 0) throw new UsageError(job.nobody);
	await assertFindings(cx, job, counts);
	assertExpected({ found, counted: job.counted, options });
	await agree(cx, job, counts);
	cx.signal.throwIfAborted();
	return counts.staged;
}

/** The error that led here is the one to tell: a second one only gets a line. */
async function drop(cx: CommandContext, { place, id, name }: Job): Promise<void> {
	await place.mailings.cancel(id).catch(() => cx.warn(`what was staged as "${name}" could not be dropped`));
}

async function assertFindings(cx: CommandContext, job: Job, { rejected }: AcceptCounts): Promise<void> {
	if (rejected === 0) return;
	const { isMadeUp, options } = job;
	const lines = await job.findings(isMachine(cx.out.format) ? rejected : shownFindings);
	const findings = { rejected, lines };
	if (options.skipInvalid) {
		for (const line of listed(findings)) await cx.warn(`left out: ${line}`);
		return;
	}
	if (options.results !== undefined) await job.writeResults(options.results, { isDropped: isMadeUp });
	const all = rejected > lines.length ? whereAllAre(cx, job, rejected) : '';
	const lacksValues = await job.lacksValues();
	throw cannotBeSent(
		{ ...findings, lacksValues },
		`mend them${all}${isMadeUp ? '' : ' and give another --job'}`,
	);
}

/** So many of a list are kept to be told of. */
const mostOfList = 100;

function whereAllAre(cx: CommandContext, { hasRejectLines, options }: Job, rejected: number): string {
	if (hasRejectLines) return options.results === undefined ? ' (--results FILE has all of them)' : '';
	if (isMachine(cx.out.format)) return '';
	return ` (-o json has ${rejected > mostOfList ? `the first ${mostOfList}` : 'all'} of them)`;
}

async function agree(cx: CommandContext, job: Job, counts: AcceptCounts): Promise<void> {
	const { options, of, subject } = job;
	await cx.note(`${describe(counts)} of ${of}`);
	await job.warn();
	if (options.expectCount !== undefined && cx.globals.yes === true) return;
	const shown = await job.sample(options.sample);
	// One a line: a terminal would break them anywhere.
	if (shown.length > 0) await cx.note(['first of them:', ...shown.map((to) => `  ${to}`)].join('\n'));
	const what = subject === null ? 'send' : `send "${subject}"`;
	await cx.confirm({ kind: 'mild', what: `${what} to ${countOf(counts.staged, 'recipient')}` });
}

/** `before`: what earlier runs came to; null when this is the first. */
async function deliver(cx: CommandContext, job: Job, before: DeliveryCounts | null): Promise<ExitCode> {
	const { place, id, name, options } = job;
	const { counts } = await place.mailings.status(id);
	await cx.note(`job ${name}, campaign ${id}`);
	const outcome = await place.deliver(id, deliveryOf(cx, job, counts)).catch(async (error: unknown) => {
		await leaveResults(cx, job);
		throw error;
	});
	const after = await place.mailings.status(id);
	if (outcome?.kind === 'stopped') await leaveResults(cx, job);
	else if (options.results !== undefined) await job.writeResults(options.results, { isDropped: false });
	await cx.out.document(documentOf(after), `released: ${describe(counts)}`);
	if (outcome === null) return codeOf(exits.done, counts);
	const all = outcomesOf(after.messages);
	// Of one look, as what waits is: whoever sends may have gone on since the delivery was last looked at.
	const sentence = before === null ? sentenceOf(all) : progressOf(all, before);
	const end = { waiting: waitingOf(after.messages), job: { job: name, rate: options.rate, sentence } };
	return codeOf(await concludeDelivery(cx, { ...outcome, counts: all }, end), counts);
}

function deliveryOf(cx: CommandContext, { name, options }: Job, { staged }: AcceptCounts): MailingDelivery {
	return {
		job: name,
		total: staged,
		signal: cx.signal,
		stallMs: options.waitTimeout,
		waits: options.wait !== false,
		...(options.rate !== undefined && { rate: parseRate(options.rate) }),
		...(options.connections !== undefined && { connections: options.connections }),
		...(options.retryUnknown && { retriesUnknown: true }),
	};
}

/** What is known when it ends early; the end itself is what is told, whatever becomes of this. */
async function leaveResults(cx: CommandContext, { name, options, writeResults }: Job): Promise<void> {
	if (options.results === undefined) return;
	try {
		await writeResults(options.results, { isDropped: false });
	} catch (error) {
		await cx.warn(`--results: ${options.results} is not written: ${classify(error).message}`);
		await cx.hint(`mailctl send resume ${shellWord(name)} --results ${shellWord(options.results)} writes it`);
	}
}

/** Who was left out was not sent to, however well the rest went. */
function codeOf(code: ExitCode, { rejected }: AcceptCounts): ExitCode {
	return code === exits.done && rejected > 0 ? exits.partly : code;
}

/** What machines are told of a job. */
export function documentOf({ id, key, counts, messages, state }: MailingStatus) {
	return { job: key, campaign_unique_id: id, state, recipients: recipientsOf(counts), ...counts, messages };
}

/** `3 recipients, 1 of them suppressed, 2 left out`. */
export function describe(counts: AcceptCounts): string {
	const { suppressed, rejected } = counts;
	const parts = [countOf(recipientsOf(counts), 'recipient')];
	if (suppressed > 0) parts.push(`${suppressed.toLocaleString('en-US')} of them suppressed`);
	if (rejected > 0) parts.push(`${rejected.toLocaleString('en-US')} left out`);
	return parts.join(', ');
}

/** Whom a message is meant for: suppression comes later, and who is left out is no recipient. */
export function recipientsOf({ staged, suppressed }: AcceptCounts): number {
	return staged + suppressed;
}
