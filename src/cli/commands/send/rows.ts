/** Jobs whose rows come from a file: `send --csv` and `send --batch`, begun now or gone on with. */
import type { Mailings, Recipient, Session } from '../../../api/capabilities.js';
import type { RequestRow } from '../../../api/mailings.js';
import { isRecord } from '../../../api/schema/python.js';
import type { MailingPlace } from '../../../jobs/mailing-place.js';
import type { MailingSink } from '../../../jobs/mailings.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { assertAllowed } from './allowed.js';
import { warnOfLinks } from './deliver.js';
import type { Job, JobOptions } from './job.js';
import type { OpenRows } from './source.js';

/** Rows of either kind, with what differs between the kinds. */
export type JobRows =
	| { kind: 'csv'; open: OpenRows<Recipient> }
	| { kind: 'batch'; open: OpenRows<RequestRow> };

/** What is known of a job before any row is read. */
export interface RowJob {
	place: MailingPlace;
	session: Session;
	name: string;
	/** What the rows are called: the file's name, or standard input. */
	of: string;
	subject: string | null;
	bulk: boolean;
	/** Of send requests, each of which says for itself: any of those staged by this run has links of ours. */
	hasLinks?: () => boolean;
	options: JobOptions;
	/** The rows from the first on; null: all of them are staged. */
	rows: (() => Promise<JobRows>) | null;
}

export function rowJob(cx: CommandContext, row: RowJob): Omit<Job, 'isMadeUp'> {
	const { place, session, name, of, subject, bulk, options } = row;
	const { id } = session;
	const results = async () => import('./row-results.js');
	return {
		place,
		id,
		name,
		options,
		of,
		counted: of,
		subject,
		stage: () => stage(cx, row),
		hasRejectLines: true,
		findings: async (most) => (await results()).findingsOf(cx, { mailings: place.mailings, id }, most),
		lacksValues: async () => (await results()).lacksValues(cx, { mailings: place.mailings, id }),
		sample: async (most) => (await results()).firstAddresses(cx, place.mailings, id, most),
		writeResults: async (path, how) =>
			(await results()).writeRowResults(cx, { mailings: place.mailings, id }, path, how),
		warn: () => warnOfLinks(cx, { bulk: row.hasLinks?.() ?? bulk }),
		nobody: `${of} has no rows; nothing was sent`,
	};
}

/** A request has up to a thousand recipients, and a batch is one transaction. */
const requestBytes = 512 * 1024;

async function stage(cx: CommandContext, { place, session, name, of, rows }: RowJob): Promise<void> {
	const { id } = session;
	if (rows === null) return assertStagedAllowed(cx, place.mailings, id);
	await cx.note(session.position === 0 ? `job ${name}: staging ${of}` : `job ${name}: going on with ${of}`);
	const { stageRows } = await import('../../../jobs/mailings.js');
	const opened = await rows();
	const progress = cx.progress('staging', null, session.position);
	const how = { session, signal: cx.signal, onProgress: (count: number) => progress.update(count, '') };
	const { mailings } = place;
	try {
		if (opened.kind === 'csv') {
			const sink = sinkOf(mailings, id, (first, recipients: readonly Recipient[]) =>
				mailings.put(id, { first, recipients }),
			);
			await stageRows({ ...how, sink, rows: allowed(cx, opened.open.rows, addressesOfRecipient) });
		} else {
			const sink = sinkOf(mailings, id, (first, requests: readonly RequestRow[]) =>
				mailings.putRequests(id, { first, requests }),
			);
			const requests = allowed(cx, opened.open.rows, addressesOfRequest);
			await stageRows({ ...how, sink, rows: requests, batchBytes: requestBytes });
		}
	} finally {
		progress.stop();
		await opened.open.close();
	}
}

/** Rows that were staged by another run, of another profile maybe. */
async function assertStagedAllowed(cx: CommandContext, mailings: Mailings, id: string): Promise<void> {
	if (cx.settings.profile.allowRecipients === undefined) return;
	const { eachResult } = await import('./row-results.js');
	for await (const result of eachResult(cx, mailings, id))
		if (result.id !== null) assertAllowed(cx, [result.to]);
}

function sinkOf<Row>(
	mailings: MailingPlace['mailings'],
	id: string,
	put: MailingSink<Row>['put'],
): MailingSink<Row> {
	return { put, complete: (position) => mailings.complete(id, { position }) };
}

/** A profile's `allowRecipients` holds for each row; nothing is released before all were looked at. */
async function* allowed<Row>(
	cx: CommandContext,
	rows: AsyncIterable<Row>,
	addressesOf: (row: Row) => readonly string[],
): AsyncGenerator<Row, void, undefined> {
	const isLimited = cx.settings.profile.allowRecipients !== undefined;
	for await (const row of rows) {
		if (isLimited) assertAllowed(cx, addressesOf(row));
		yield row;
	}
}

function addressesOfRecipient({ to, refused }: Recipient): string[] {
	return refused === undefined ? [to] : [];
}

/** Whatever has the wrong shape is a finding later. */
function addressesOfRequest({ request }: RequestRow): string[] {
	if (!isRecord(request)) return [];
	return ['to', 'cc', 'bcc'].flatMap((key) => {
		const value = request[key];
		const all: unknown[] = Array.isArray(value) ? value : [value];
		return all.filter((one) => typeof one === 'string');
	});
}

/** What does not go with rows of a file. */
export function assertRowOptions(
	options: {
		to: readonly string[];
		cc: readonly string[];
		bcc: readonly string[];
		idempotencyKey?: string | undefined;
	},
	flag: '--csv' | '--batch',
): void {
	if (options.to.length > 0)
		throw new UsageError(`--to and ${flag} both name recipients; give one`, {
			hint: `a trial to yourself: ${flag} FILE --test-to you@example.com`,
		});
	if (options.cc.length + options.bcc.length > 0)
		throw new UsageError(`--cc and --bcc do not go with ${flag}`);
	if (options.idempotencyKey !== undefined)
		throw new UsageError(`--idempotency-key does not go with ${flag}; --job NAME plays that part`);
}
