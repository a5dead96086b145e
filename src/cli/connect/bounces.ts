import { setTimeout as delay } from 'node:timers/promises';
import { foreseeReports, type Ingested, ingestMail, readReport } from '../../delivery/bounces/ingest.js';
import { isMbox, mailsIn, openMailbox, type StoredMail } from '../../delivery/bounces/mailbox.js';
import type { Place } from '../../delivery/bounces/mime.js';
import type { Report, ReportedRecipient, ReturnedMessage } from '../../delivery/bounces/report.js';
import { fileStream } from '../../tables/source.js';
import { type LocalParts, openVerp } from './parts.js';

export interface IngestRequest {
	from: { path: string } | { stream: AsyncIterable<Buffer> };
	dryRun: boolean;
	signal: AbortSignal;
	onRecorded: (recorded: RecordedBounce) => void;
	onUnreadable: (file: string, code: string) => void;
}

/** `in_flight` counts bounces of messages that a worker is still sending. `unreadable` files stay in place. */
const counted = [
	...(['read', 'bounces', 'complaints', 'duplicates', 'notices', 'auto_replies'] as const),
	...(['unmatched', 'not_reports', 'in_flight', 'unreadable'] as const),
];

export type IngestCounts = Record<(typeof counted)[number], number>;

export interface RecordedBounce {
	effect: 'hard_bounce' | 'soft_bounce' | 'complaint';
	address: string;
}

export type { Place, Report, ReportedRecipient, ReturnedMessage };

export type Explained = { kind: 'mail'; report: Report } | { kind: 'mbox'; reports: Report[] };

export async function explainFile(bytes: Buffer): Promise<Explained> {
	if (!isMbox(bytes)) return { kind: 'mail', report: readReport(bytes) };
	const reports: Report[] = [];
	for await (const mail of mailsIn(whole(bytes))) reports.push(readReport(mail.bytes));
	return { kind: 'mbox', reports };
}

async function* whole(bytes: Buffer): AsyncGenerator<Buffer> {
	yield bytes;
}

const groupSize = 100;
const groupBytes = 16 * 1024 * 1024;

const countOf: Readonly<Record<Ingested, Exclude<keyof IngestCounts, 'read' | 'unreadable'>>> = {
	bounce: 'bounces',
	complaint: 'complaints',
	duplicate: 'duplicates',
	notice: 'notices',
	auto_reply: 'auto_replies',
	unmatched: 'unmatched',
	not_report: 'not_reports',
	in_flight: 'in_flight',
};

export async function ingestBounces(
	{ store, clock }: Pick<LocalParts, 'store' | 'clock'>,
	{ from, dryRun, signal, onRecorded, onUnreadable }: IngestRequest,
): Promise<IngestCounts> {
	const options = {
		verp: await openVerp({ store, clock }),
		clock,
		record: dryRun ? foreseeReports(store.reads) : store.writes.recordReport,
		onRecorded,
		// A dry run does not wait for a worker that is still sending the bounced message.
		sleep: (ms: number) => (dryRun ? Promise.resolve() : delay(ms, undefined, { signal })),
	};
	const counts = Object.fromEntries(counted.map((name) => [name, 0])) as IngestCounts;
	const take = async ({ bytes, done }: StoredMail) => {
		const ingested = await ingestMail({ bytes, returnPath: null }, options);
		// A mail that counts as in flight stays in the mailbox, so that the next run reads it again.
		if (!dryRun && ingested !== 'in_flight') await done();
		counts.read += 1;
		counts[countOf[ingested]] += 1;
	};
	const unreadable = (file: string, code: string) => {
		counts.unreadable += 1;
		onUnreadable(file, code);
	};
	const streamOf = (path: string) => fileStream(path, signal);
	const mails =
		'path' in from ? openMailbox(from.path, { onUnreadable: unreadable, streamOf }) : mailsIn(from.stream);
	for await (const group of inGroups(mails)) {
		signal.throwIfAborted();
		await Promise.all(group.map(take));
	}
	return counts;
}

async function* inGroups(mails: AsyncIterable<StoredMail>): AsyncGenerator<StoredMail[]> {
	let group: StoredMail[] = [];
	let size = 0;
	for await (const mail of mails) {
		group.push(mail);
		size += mail.bytes.length;
		if (group.length < groupSize && size < groupBytes) continue;
		yield group;
		group = [];
		size = 0;
	}
	if (group.length > 0) yield group;
}
