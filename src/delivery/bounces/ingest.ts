import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { emailKey } from '../../api/address.js';
import type { Clock } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { ReportedAddress, ReturnedReport } from '../../engine/rules/outcomes.js';
import type { Reads } from '../../store/operations.js';
import type { RecordedReport, ReportOutcome } from '../../store/store.js';
import { autoReplySign, readDisposition } from './auto-reply.js';
import { readDeliveryStatus } from './delivery-status.js';
import { Extract } from './extract.js';
import { readFeedback } from './feedback.js';
import { fieldValue, maxMailBytes, parseMail, parseWithin } from './mime.js';
import { type DeliveryReport, type FeedbackReport, inReturnedOnly, type Report } from './report.js';
import { readSes, readSesMail } from './ses.js';
import { readTextBounce } from './text-bounce.js';
import type { Verp } from './verp.js';

/**
 * `notice`: a delay, a receipt, feedback other than a complaint, or a bounce without a recipient. `unmatched`: the
 * message or the recipient is not known. `in_flight`: a worker is still sending the message, so submit the mail later.
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

export interface ReturnedMail {
	bytes: Buffer;
	returnPath: Uuid | null;
}

export interface IngestOptions {
	record(report: ReturnedReport): Promise<ReportOutcome>;
	verp: Verp | null;
	clock: Clock;
	read?: (bytes: Buffer) => Promise<ReadMail>;
	onRecorded?: (recorded: RecordedReport) => void;
	sleep?: (ms: number) => Promise<void>;
}

/** Limits the waits for the outcome of a message in flight. A killed worker never records an outcome. */
const waitsForOutcome = 20;
const waitMs = 250;

/** Rejects if the store or the reader fails. Nothing is recorded then, so submit the mail again. */
export async function ingestMail(mail: ReturnedMail, options: IngestOptions): Promise<Ingested> {
	const { report, sha256 } =
		options.read === undefined ? readMail(mail.bytes) : await options.read(mail.bytes);
	if (report.kind === 'auto_reply') return 'auto_reply';
	if (report.kind === 'not_a_report') return 'not_report';
	if (report.kind === 'delivery_notice' || report.kind === 'feedback') return 'notice';
	return recordReport({ ...mail, report, sha256 }, options);
}

async function recordReport(
	{ report, sha256, ...mail }: ReturnedMail & { report: DeliveryReport | FeedbackReport; sha256: string },
	{ record, onRecorded, verp, clock, sleep = delay }: IngestOptions,
): Promise<Ingested> {
	const matched = matchMessage(report, { ...mail, verp });
	if (matched === null) return 'unmatched';
	const isComplaint = 'feedback_type' in report;
	const reported = isComplaint ? complaining(report) : failed(report);
	if (!isComplaint && reported.length === 0) return 'notice';
	// A Message-ID is easy to forge. If return paths are signed, a bounce that only has a Message-ID is never hard.
	const isUnsigned = matched.matched === 'message_id' && verp !== null;
	const returned: ReturnedReport = {
		...matched,
		sha256,
		at: clock.now(),
		kind: report.kind === 'complaint' ? 'complaint' : 'bounce',
		recipients: isUnsigned ? reported.map((one) => ({ ...one, hard: false })) : reported,
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
	if (outcome.kind !== 'recorded') return outcome.kind === 'known' ? 'duplicate' : 'unmatched';
	return outcome.effect === 'complaint' ? 'complaint' : 'bounce';
}

function complaining({ recipients }: FeedbackReport): ReportedAddress[] {
	const rest = { hard: false, smtp_code: null, diagnostic: null };
	return recipients.map((address) => ({ addresses: [emailKey(address)], ...rest }));
}

function failed({ recipients }: DeliveryReport): ReportedAddress[] {
	return recipients
		.filter(({ action, form }) => action === 'failed' && form !== inReturnedOnly)
		.map(({ address, original_address, hard, uncounted, reply_code, status, diagnostic }) => ({
			addresses: [...new Set([address, original_address ?? address].map(emailKey))],
			hard,
			...(uncounted && { uncounted }),
			smtp_code: reply_code === null || saysMore(status) ? status : String(reply_code),
			diagnostic,
		}));
}

/** `4.0.0` and `5.0.0` say no more than the reply code (RFC 3463 s.3.1). */
function saysMore(status: string | null): boolean {
	return status !== null && !status.endsWith('.0.0');
}

type Matched = Pick<ReturnedReport, 'message' | 'matched'>;

const messageUuid = /^([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})@/i;

function matchMessage(
	report: Exclude<Report, { kind: 'auto_reply' | 'not_a_report' }>,
	{ bytes, verp, returnPath }: { bytes: Buffer; verp: Verp | null; returnPath: Uuid | null },
): Matched | null {
	const message = returnPath ?? verp?.findIn(bytes.toString('latin1', 0, maxMailBytes)) ?? null;
	if (message !== null) return { message, matched: 'return_path' };
	const uuid = messageUuid.exec(report.returned?.message_id ?? '')?.[1];
	return uuid === undefined ? null : { message: uuid.toLowerCase(), matched: 'message_id' };
}

/** Replaces the store's `recordReport` in a dry run. Counts a report once, even if it occurs twice in the run. */
export function foreseeReports(
	reads: Pick<Reads, 'foreseeReport'>,
): (report: ReturnedReport) => Promise<ReportOutcome> {
	const met = new Set<string>();
	return async (report) => {
		const outcome = await reads.foreseeReport(report);
		if (outcome.kind !== 'recorded') return outcome;
		const keys = [report.sha256, saidOf(report, outcome.effect)];
		const isMet = keys.some((key) => met.has(key));
		for (const key of keys) met.add(key);
		return isMet ? { kind: 'known' } : outcome;
	};
}

function saidOf({ message, recipients }: ReturnedReport, effect: string): string {
	const addresses = recipients.flatMap((one) => one.addresses).sort();
	return JSON.stringify([message, effect, ...addresses]);
}

export interface ReadMail {
	report: Report;
	sha256: string;
}

export function readMail(bytes: Buffer): ReadMail {
	return { report: readReport(bytes), sha256: createHash('sha256').update(bytes).digest('hex') };
}

const opening = /^\uFEFF?\s*\{/;

/** Reads one mail, or the JSON that Amazon SES publishes instead. Never throws; reads at most 4 MiB. */
export function readReport(bytes: Buffer): Report {
	const published = opening.test(bytes.toString('utf8', 0, 100)) ? readSes(bytes) : null;
	return published ?? readExtract(new Extract(parseMail(bytes)));
}

/** A mail is not a text bounce if it has a sign of an automatic reply that bounces never have (`plain`). */
function readExtract(found: Extract): Report {
	const { mail, sender } = found;
	const formal =
		readDeliveryStatus(found) ?? readFeedback(found) ?? readSesMail(mail) ?? readDisposition(found);
	if (formal !== null) return formal;
	const plain = autoReplySign(mail.fields, 'plain');
	const bounce = plain === null ? readTextBounce(found) : null;
	const isJudged = bounce?.recipients.some(({ form }) => form !== inReturnedOnly) ?? false;
	const inner = isJudged ? null : wrappedIn(found);
	if (inner !== null) return readExtract(inner);
	if (bounce !== null) return bounce;
	// A mail from a mail system is never an automatic reply, even if a header field says so.
	const sign = plain ?? (sender === 'system' ? null : autoReplySign(mail.fields));
	if (sign === null)
		return { kind: 'not_a_report', why: 'neither its parts nor its words are those of a report' };
	return { kind: 'auto_reply', why: sign.why, place: { part: '1', type: mail.type, line: sign.line } };
}

function wrappedIn({ mail, sender, subject }: Extract): Extract | null {
	if (sender !== 'system' && sender !== 'role') return null;
	const part = mail.parts.find(({ type }) => type === 'message/rfc822');
	if (part === undefined || part.path.split('.').length > 3) return null;
	const inner = new Extract(parseWithin(part));
	const isSame = (name: string) => fieldValue(inner.mail.fields, name) === fieldValue(mail.fields, name);
	const isReport = inner.mail.type === 'multipart/report' || inner.sender === 'system';
	return isReport && isSame('from') && isSame('message-id') && inner.subject === subject ? inner : null;
}
