/** A mailing as a job: staged, checked, shown, released in one stroke, delivered. What its rows are is the caller's. */
import type { AcceptCounts, MailingStatus } from '../../api/capabilities.js';
import type { MailingPlace } from '../../jobs/mailing-place.js';
import type { CommandContext } from '../context.js';
import { CliError, Declined, UsageError } from '../errors.js';
import { type ExitCode, exits } from '../exit.js';
import { concludeDelivery, parseRate } from './send-deliver.js';
import type { SendOptions } from './send-options.js';
import { releaseOnce } from './send-release.js';
import type { ResultsHow } from './send-results.js';

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
	/** Rejected recipients, a line each; it need not list all. */
	findings(): Promise<readonly string[]>;
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
	const before = await place.mailings.status(id);
	if (before.state === 'canceled') throw new UsageError(`the job "${name}" was canceled; give another name`);
	if (before.state === 'staged') await release(cx, job);
	else await cx.note(`the job "${name}" is released already: going on with it`);
	return deliver(cx, job);
}

/** Stages and checks; whatever speaks against it ends here, with nothing released. */
async function release(cx: CommandContext, job: Job): Promise<void> {
	try {
		await releaseOnce(job, await stage(cx, job));
	} catch (error) {
		// What may be on its way is not called back by somebody who only lost an answer.
		if (error instanceof CliError && error.exit === exits.uncertain) throw error;
		// A name that was made up is of no use to anybody: what was staged under it goes.
		if (job.isMadeUp || error instanceof Declined) await drop(cx, job);
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
	const found = totalOf(counts);
	if (found === 0 && options.expectCount !== 0) throw new UsageError(job.nobody);
	await assertFindings(cx, job, counts);
	if (options.maxRecipients !== undefined && found > options.maxRecipients) {
		throw new UsageError(
			`${found} recipients are more than --max-recipients ${options.maxRecipients}; nothing was released`,
		);
	}
	if (options.expectCount !== undefined && options.expectCount !== found) {
		throw new UsageError(
			`${job.counted} has ${found} recipients, not ${options.expectCount}; nothing was released`,
			{ hint: `--expect-count ${found} if that is right` },
		);
	}
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
	const lines = await job.findings();
	const more = rejected > lines.length ? [`and ${rejected - lines.length} more`] : [];
	if (options.skipInvalid) {
		for (const line of [...lines, ...more]) await cx.warn(`left out: ${line}`);
		return;
	}
	if (options.results !== undefined) await job.writeResults(options.results, { isDropped: isMadeUp });
	throw new UsageError(`${rejected} recipients cannot be sent to as they are; nothing was released`, {
		details: [...lines, ...more],
		hint: `mend them${isMadeUp ? '' : ' and give another --job'}, or give --skip-invalid, or --no-strict-vars for missing variables`,
	});
}

async function agree(cx: CommandContext, job: Job, counts: AcceptCounts): Promise<void> {
	const { options, of, subject } = job;
	await cx.note(`${describe(counts)} of ${of}`);
	await job.warn();
	if (options.expectCount !== undefined && cx.globals.yes === true) return;
	const shown = await job.sample(options.sample);
	if (shown.length > 0) await cx.note(`first of them: ${shown.join(', ')}`);
	const what = subject === null ? 'send' : `send "${subject}"`;
	await cx.confirm({ kind: 'mild', what: `${what} to ${counts.staged.toLocaleString('en-US')} recipients` });
}

async function deliver(cx: CommandContext, job: Job): Promise<ExitCode> {
	const { place, id, name, options } = job;
	const { counts } = await place.mailings.status(id);
	await cx.note(`job ${name}, campaign ${id}`);
	const outcome = await place.deliver(id, {
		total: counts.staged,
		signal: cx.signal,
		stallMs: options.waitTimeout,
		waits: options.wait !== false,
		...(options.rate !== undefined && { rate: parseRate(options.rate) }),
		...(options.connections !== undefined && { connections: options.connections }),
		...(options.retryUnknown && { retriesUnknown: true }),
	});
	const after = await place.mailings.status(id);
	if (options.results !== undefined) await job.writeResults(options.results, { isDropped: false });
	await cx.out.document(documentOf(after), `released: ${describe(counts)}`);
	const code = await concludeDelivery(cx, outcome);
	return code === exits.done && counts.rejected > 0 ? exits.partly : code;
}

/** What machines are told of a job. */
export function documentOf({ id, key, counts, messages, state }: MailingStatus) {
	return { job: key, campaign_unique_id: id, state, recipients: totalOf(counts), ...counts, messages };
}

/** `2 recipients, 1 suppressed`. */
export function describe({ staged, suppressed, rejected }: AcceptCounts): string {
	const parts = [`${staged.toLocaleString('en-US')} recipients`];
	if (suppressed > 0) parts.push(`${suppressed} suppressed`);
	if (rejected > 0) parts.push(`${rejected} left out`);
	return parts.join(', ');
}

function totalOf({ staged, suppressed, rejected }: AcceptCounts): number {
	return staged + suppressed + rejected;
}
