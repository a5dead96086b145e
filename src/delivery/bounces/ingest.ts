/** Takes a mail that came back into the database: reads it, finds its message, and has the store record the rest. */
import { setTimeout as delay } from 'node:timers/promises';
import { emailKey } from '../../api/address.js';
import type { Clock } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { RecordedReport, ReportedAddress, ReportOutcome, ReturnedReport } from '../../store/bounces.js';
import { matchMessage } from './match.js';
import { type ReadMail, readMail } from './read-mail.js';
import type { DeliveryReport, FeedbackReport } from './report.js';
import type { Verp } from './verp.js';

/**
 * What became of a mail. `bounce`, `complaint`: recorded. `duplicate`: said before, nothing changed. `notice`: a delay, a
 * receipt, feedback that is no complaint. `unmatched`: about no message of ours, or about nobody it went to.
 * `in_flight`: its message is in a worker's hands; to be brought again.
 */
export type Ingested =
	| 'bounce'
	| 'complaint'
	| 'duplicate'
	| 'notice'
	| 'auto_reply'
	| 'unmatched'
	| 'not_report'
	| 'in_flight';

/** A mail as it arrived. */
export interface ReturnedMail {
	bytes: Buffer;
	/** The message whose signed return path it was taken for; null when nobody said what it was taken for. */
	returnPath: Uuid | null;
}

export interface IngestOptions {
	/** Records; or says what recording would come to. */
	record(report: ReturnedReport): Promise<ReportOutcome>;
	/** Null where no bounce address is set. */
	verp: Verp | null;
	clock: Clock;
	/** Reads a mail; at once, in this thread, when absent. */
	read?: (bytes: Buffer) => Promise<ReadMail>;
	/** Told of each mail that was recorded, what it came to. */
	onRecorded?: (recorded: RecordedReport) => void;
	/** Waits so many milliseconds. */
	sleep?: (ms: number) => Promise<void>;
}

/** A message's outcome is recorded within a moment of its sending, unless its worker was killed. */
const waitsForOutcome = 20;
const waitMs = 250;

/** Rejects when the store or the reader does: nothing was recorded then, and the same mail may be brought again. */
export async function ingestMail(mail: ReturnedMail, options: IngestOptions): Promise<Ingested> {
	const { report, sha256 } =
		options.read === undefined ? readMail(mail.bytes) : await options.read(mail.bytes);
	switch (report.kind) {
		case 'auto_reply':
			return 'auto_reply';
		case 'not_a_report':
			return 'not_report';
		case 'delivery_notice':
		case 'feedback':
			return 'notice';
		case 'bounce':
		case 'complaint':
			return recordReport({ ...mail, report, sha256 }, options);
		default:
			return report satisfies never;
	}
}

async function recordReport(
	{ report, sha256, ...mail }: ReturnedMail & { report: DeliveryReport | FeedbackReport; sha256: string },
	{ record, onRecorded, verp, clock, sleep = delay }: IngestOptions,
): Promise<Ingested> {
	const matched = matchMessage(report, { ...mail, verp });
	if (matched === null) return 'unmatched';
	const returned: ReturnedReport = {
		...matched,
		sha256,
		at: clock.now(),
		kind: report.kind === 'complaint' ? 'complaint' : 'bounce',
		recipients: 'feedback_type' in report ? report.recipients.map(complaining) : failed(report),
	};
	for (let tries = 0; tries <= waitsForOutcome; tries++) {
		if (tries > 0) await sleep(waitMs);
		const outcome = await record(returned);
		if (outcome.kind === 'recorded') onRecorded?.(outcome);
		if (outcome.kind !== 'in_flight') return verdictOf(outcome);
	}
	return 'in_flight';
}

function verdictOf(outcome: Exclude<ReportOutcome, { kind: 'in_flight' }>): Ingested {
	if (outcome.kind === 'known') return 'duplicate';
	if (outcome.kind === 'unmatched') return 'unmatched';
	return outcome.effect === 'complaint' ? 'complaint' : 'bounce';
}

function complaining(address: string): ReportedAddress {
	return { addresses: [emailKey(address)], hard: false, smtp_code: null, diagnostic: null };
}

function failed({ recipients }: DeliveryReport): ReportedAddress[] {
	return recipients
		.filter(({ action }) => action === 'failed')
		.map(({ address, original_address, hard, reply_code, status, diagnostic }) => ({
			addresses: [...new Set([address, original_address ?? address].map(emailKey))],
			hard,
			smtp_code: reply_code === null ? status : String(reply_code),
			diagnostic,
		}));
}
