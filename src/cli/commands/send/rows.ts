/** Campaigns whose rows come from a file: `send --csv` and `send --batch`, begun now or gone on with. */

import type { Campaigns, Recipient, RequestRow } from '../../../api/campaigns.js';
import type { Session } from '../../../api/capabilities.js';
import { isRecord } from '../../../api/json.js';
import type { CampaignSink } from '../../../jobs/campaigns.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { assertAllowed } from './audience.js';
import { warnOfLinks } from './lint.js';
import type { CampaignPlace } from './place.js';
import type { CampaignRun, RunOptions } from './release.js';
import { eachResult, firstAddresses, readFindings, writeRowResults } from './results.js';
import type { OpenRows } from './source.js';

/** Rows of either kind, with what differs between the kinds. */
export type CampaignRows =
	| { kind: 'csv'; open: OpenRows<Recipient> }
	| { kind: 'batch'; open: OpenRows<RequestRow> };

/** What is known of a campaign before any row is read. */
interface RowCampaign {
	place: CampaignPlace;
	session: Session;
	name: string;
	/** What the rows are called: the file's name, or standard input. */
	of: string;
	/** See `Unreleased`. */
	source: string | undefined;
	subject: string | null;
	bulk: boolean;
	/** Of send requests, each of which says for itself: any of those staged by this run has links of ours. */
	hasLinks?: () => boolean;
	options: RunOptions;
	/** The rows from the first on; null: all of them are staged. */
	rows: (() => Promise<CampaignRows>) | null;
}

export function rowCampaign(cx: CommandContext, row: RowCampaign): Omit<CampaignRun, 'begun'> {
	const { place, session, name, of, source, subject, bulk, options } = row;
	const { id } = session;
	return {
		place,
		id,
		name,
		source,
		options,
		of,
		where: of,
		subject,
		stage: () => stage(cx, row),
		hasRejectLines: true,
		findings: (into) => readFindings(cx, { campaigns: place.campaigns, id }, into),
		sample: (most) => firstAddresses(cx, place.campaigns, id, most),
		writeResults: (path, how) => writeRowResults(cx, { place, id }, path, how),
		warn: () => warnOfLinks(cx, { bulk: row.hasLinks?.() ?? bulk }),
		noRecipients: `${of} has no rows; nothing was sent`,
	};
}

/** A request has up to a thousand recipients, and a batch is one transaction. */
const requestBytes = 512 * 1024;

async function stage(cx: CommandContext, { place, session, name, of, rows }: RowCampaign): Promise<void> {
	const { id } = session;
	if (rows === null) return assertStagedAllowed(cx, place.campaigns, id);
	await cx.note(
		session.position === 0 ? `campaign ${name}: staging ${of}` : `campaign ${name}: going on with ${of}`,
	);
	const { stageRows } = await import('../../../jobs/campaigns.js');
	const opened = await rows();
	const progress = cx.progress('staging', null, session.position);
	const how = { session, signal: cx.signal, onProgress: (count: number) => progress.update(count, '') };
	const { campaigns } = place;
	try {
		if (opened.kind === 'csv') {
			const sink = sinkOf(campaigns, id, (first, recipients: readonly Recipient[]) =>
				campaigns.put(id, { first, recipients }),
			);
			await stageRows({ ...how, sink, rows: allowed(cx, opened.open.rows, addressesOfRecipient) });
		} else {
			const sink = sinkOf(campaigns, id, (first, requests: readonly RequestRow[]) =>
				campaigns.putRequests(id, { first, requests }),
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
async function assertStagedAllowed(cx: CommandContext, campaigns: Campaigns, id: string): Promise<void> {
	if (cx.settings.profile.allowRecipients === undefined) return;
	for await (const result of eachResult(cx, campaigns, id))
		if (result.id !== null) assertAllowed(cx, [result.to]);
}

function sinkOf<Row>(
	campaigns: CampaignPlace['campaigns'],
	id: string,
	put: CampaignSink<Row>['put'],
): CampaignSink<Row> {
	return { put, complete: (position) => campaigns.complete(id, { position }) };
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

/** The recipients of a request, copies too; a wrong shape has none here, and is a finding later. */
export function addressesOfRequest({ request }: RequestRow): string[] {
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
			hint: `a test mail to yourself: ${flag} FILE --test-to ADDRESS`,
		});
	if (options.cc.length + options.bcc.length > 0)
		throw new UsageError(`--cc and --bcc do not go with ${flag}`);
	if (options.idempotencyKey !== undefined)
		throw new UsageError(`--idempotency-key does not go with ${flag}; --campaign NAME plays that part`);
}
