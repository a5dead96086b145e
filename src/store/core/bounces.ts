import { type EmailKey, emailKey, parseMailbox } from '../../api/address.js';
import type { MessageState, Uuid } from '../../api/records.js';
import { type Finding, findingsOf, type ReturnedReport } from '../../engine/rules/outcomes.js';
import { erasedAddress } from '../../engine/rules/subscribers.js';
import type { Operations } from '../operations.js';
import type { RecordedReport, ReportEffect, ReportOutcome, TrackedEvent } from '../store.js';
import { keepAttempt, type SentMessage } from './attempts.js';
import { noVisit, recordEvents } from './events.js';
import { createTally } from './figures/tally.js';
import { readRecipients, reportedSoftBounce, type Stop } from './recipients.js';
import { column, exists, insertInto, joinedMessages, readEnvelope, type Sql } from './sql.js';

interface ReturnedRow extends SentMessage {
	campaign: Uuid | null;
	to_key: EmailKey;
	state: MessageState;
	envelope: string;
}

interface Change {
	finding: Finding;
	effect: ReportEffect;
}

export function createBounces(sql: Sql) {
	return {
		recordEvents: ({ events }) => recordEvents(sql, events),
		recordReport: async (report) => {
			const assessment = await assess(sql, report);
			if (assessment.kind !== 'recorded') return assessment;
			const { effect, address, message, changes, isAboutTo } = assessment;
			const { sha256, at } = report;
			insertInto(sql, 'bounce_reports', { sha256, message_id: message.id, kind: effect, at });
			await sql.together([
				() => stopCopies(sql, report, changes),
				() => bounceMessage(sql, message, report, changes),
				async () => {
					if (effect !== 'complaint') return;
					const tally = await createTally(sql);
					tally.add({ at, campaign: message.campaign, type: 'COMPLAINED', audience: 'all' });
					tally.write();
				},
			]);
			if (isAboutTo && effect === 'soft_bounce' && !changes[0]?.finding.uncounted)
				await reportedSoftBounce(sql, message, report);
			return { kind: 'recorded', effect, address };
		},
		foreseeReport: async (report) => {
			const foreseen = await assess(sql, report);
			if (foreseen.kind !== 'recorded') return foreseen;
			return { kind: 'recorded', effect: foreseen.effect, address: foreseen.address };
		},
	} satisfies Partial<Operations>;
}

type Assessment =
	| Exclude<ReportOutcome, { kind: 'recorded' }>
	| ({ kind: 'recorded'; message: ReturnedRow; changes: Change[]; isAboutTo: boolean } & RecordedReport);

async function assess(sql: Sql, report: ReturnedReport): Promise<Assessment> {
	const [isKnown, message, told] = await sql.together([
		() => exists(sql, 'SELECT 1 FROM bounce_reports WHERE sha256 = ?', [report.sha256]),
		() => findMessage(sql, report),
		() => toldBefore(sql, report),
	]);
	if (isKnown) return { kind: 'known' };
	if (message === null) return { kind: 'unmatched' };
	// The worker that leased the message will soon record its outcome, which would overwrite a state written now.
	if (message.state === 'leased') return { kind: 'in_flight' };
	const { cc, bcc } = readEnvelope(message.envelope);
	const copies = new Set([...cc, ...bcc].map((text) => parseMailbox(text)?.key ?? emailKey(text)));
	copies.delete(message.to_key);
	const findings = findingsOf({ to: message.to_key, copies: [...copies] }, report);
	if (findings.length === 0) return { kind: 'unmatched' };
	const changes = findings.flatMap((finding): Change[] => {
		const effect = effectOf(told, report, finding);
		return effect === null ? [] : [{ finding, effect }];
	});
	const [first] = changes;
	if (first === undefined) return { kind: 'known' };
	const { effect, finding } = first;
	const isAboutTo = findings[0]?.isTo === true;
	return { kind: 'recorded', effect, address: finding.address, message, changes, isAboutTo };
}

async function toldBefore(sql: Sql, { message }: ReturnedReport): Promise<ReadonlySet<string>> {
	const told = await column<string>(
		sql,
		`SELECT f.type
		FROM messages m
		JOIN message_firsts f ON f.message_id = m.id
		WHERE m.uuid = ? AND f.type IN ('SOFTBOUNCED', 'HARDBOUNCED')
		UNION
		SELECT r.kind
		FROM messages m
		JOIN bounce_reports r ON r.message_id = m.id
		-- A complaint from someone who got a copy must not hide a later complaint from the recipient.
		JOIN suppressions p ON p.email_key = m.to_key AND p.reason = 'COMPLAINED'
		WHERE m.uuid = ? AND r.kind = 'complaint'`,
		[message, message],
	);
	return new Set(told);
}

/** `fence` 0: no worker ever leased the message. */
async function findMessage(sql: Sql, { message }: ReturnedReport): Promise<ReturnedRow | null> {
	const row = await sql.get<ReturnedRow>(
		`SELECT m.id, s.campaign, m.to_key, m.state, s.envelope, m.attempts, m.sent_at, m.last_reply, g.courier
		FROM ${joinedMessages}
		WHERE m.uuid = ? AND m.fence > 0`,
		[message],
	);
	return row === undefined || row.to_key === erasedAddress ? null : row;
}

/** Returns null if this bounce or complaint of `to` is known, or if a soft bounce of `to` follows a hard one. */
function effectOf(
	told: ReadonlySet<string>,
	report: ReturnedReport,
	{ isTo, hard }: Finding,
): ReportEffect | null {
	if (report.kind === 'complaint') return isTo && told.has('complaint') ? null : 'complaint';
	const isKnown = isTo && (told.has('HARDBOUNCED') || (!hard && told.has('SOFTBOUNCED')));
	if (isKnown) return null;
	return hard ? 'hard_bounce' : 'soft_bounce';
}

/** Suppresses addresses that complained, and Cc and Bcc addresses that bounced hard. `recordEvents` handles `to`. */
async function stopCopies(
	sql: Sql,
	{ kind, at: now }: ReturnedReport,
	changes: readonly Change[],
): Promise<void> {
	const stops = changes.flatMap(({ finding: { address, hard, isTo } }): Stop[] => {
		if (kind === 'complaint')
			return [{ address, list_id: null, reason: 'COMPLAINED', source: 'COMPLAINT', now }];
		return hard && !isTo ? [{ address, list_id: null, reason: 'HARDBOUNCED', source: 'BOUNCE', now }] : [];
	});
	const addresses = stops.map(({ address }) => address);
	const recipients = await readRecipients(sql, addresses);
	for (const stop of stops) recipients.stop(stop);
	recipients.write();
}

const mayBounce: readonly MessageState[] = ['sent', 'uncertain', 'failed', 'queued', 'deferred'];

async function bounceMessage(
	sql: Sql,
	message: ReturnedRow,
	{ kind, at, message: uuid }: ReturnedReport,
	changes: readonly Change[],
): Promise<void> {
	const events: TrackedEvent[] = [];
	for (const { finding, effect } of changes) {
		if (kind === 'complaint' || !finding.isTo) continue;
		const { smtp_code, diagnostic, uncounted } = finding;
		const isHard = effect === 'hard_bounce';
		if ((isHard ? mayBounce : ['sent', 'uncertain']).includes(message.state)) {
			keepAttempt(sql, message);
			sql.write(
				'UPDATE messages SET state = ?, wake_at = NULL, last_reply = coalesce(?, last_reply) WHERE id = ?',
				[isHard ? 'bounced' : 'failed', lastReply(finding), message.id],
			);
		}
		if (uncounted) continue;
		events.push({
			...{ ...noVisit, message: uuid, at, smtp_code, diagnostic },
			type: isHard ? 'HARDBOUNCED' : 'SOFTBOUNCED',
		});
	}
	await recordEvents(sql, events);
}

function lastReply({ smtp_code: code, diagnostic: text }: Finding): string | null {
	if (code === null || text === null) return text ?? code;
	return new RegExp(`(?:^|\\D)${code.replaceAll('.', '\\.')}(?!\\d)`).test(text) ? text : `${code} ${text}`;
}
