import { type EmailKey, emailKey, parseMailbox } from '../../api/address.js';
import type { MessageState, Uuid } from '../../api/records.js';
import type { ReturnedReport } from '../../engine/rules/reported-recipients.js';
import { type Finding, findingsOf, type Recipients } from '../../engine/rules/reported-recipients.js';
import { erasedAddress } from '../../engine/rules/subscription.js';
import type { Operations } from '../operations.js';
import type { RecordedReport, ReportEffect, ReportOutcome, TrackedEvent } from '../store.js';
import { keepAttempt, type SentMessage } from './attempts.js';
import { recordEvents } from './events.js';
import { createTally } from './figures/tally.js';
import { readRecipients, reportedSoftBounce, type Stop } from './recipients.js';
import { readEnvelope } from './rows.js';
import { exists, type Sql } from './sql.js';

interface ReturnedRow extends SentMessage {
	campaign: Uuid | null;
	to_key: EmailKey;
	state: MessageState;
	envelope: string;
}

export function createBounces(sql: Sql) {
	return {
		recordReport: (report) => recordReport(sql, report),
		foreseeReport: async (report) => {
			const foreseen = await assess(sql, report);
			if (foreseen.kind !== 'recorded') return foreseen;
			const { effect, address } = foreseen;
			return { kind: 'recorded', effect, address };
		},
	} satisfies Partial<Operations>;
}

type Assessment =
	| Exclude<ReportOutcome, { kind: 'recorded' }>
	| ({ kind: 'recorded'; message: ReturnedRow; changes: Change[]; isAboutTo: boolean } & RecordedReport);

async function recordReport(sql: Sql, report: ReturnedReport): Promise<ReportOutcome> {
	const assessment = await assess(sql, report);
	if (assessment.kind !== 'recorded') return assessment;
	const { effect, address, message, changes, isAboutTo } = assessment;
	rememberMail(sql, message, report, effect);
	await sql.together([
		() => stopCopies(sql, changes),
		() => bounceMessage(sql, changes),
		async () => {
			if (effect === 'complaint') await countComplaint(sql, message, report);
		},
	]);
	if (isAboutTo && effect === 'soft_bounce' && !changes[0]?.finding.uncounted)
		await reportedSoftBounce(sql, message, report);
	return { kind: 'recorded', effect, address };
}

async function assess(sql: Sql, report: ReturnedReport): Promise<Assessment> {
	const [isKnown, message, told] = await sql.together([
		() => exists(sql, 'SELECT 1 FROM bounce_reports WHERE sha256 = ?', [report.sha256]),
		() => findMessage(sql, report),
		() => toldBefore(sql, report),
	]);
	if (isKnown) return { kind: 'known' };
	if (message === null) return { kind: 'unmatched' };
	// The outcome is recorded in a moment, and would overwrite a state that is written now.
	if (message.state === 'leased') return { kind: 'in_flight' };
	const findings = findingsOf(recipientsOf(message), report);
	if (findings.length === 0) return { kind: 'unmatched' };
	const changes = findings.flatMap((finding): Change[] => {
		const effect = effectOf(told, { report, finding });
		return effect === null ? [] : [{ message, report, finding, effect }];
	});
	const [first] = changes;
	if (first === undefined) return { kind: 'known' };
	const { effect, finding } = first;
	return {
		kind: 'recorded',
		effect,
		address: finding.address,
		message,
		changes,
		isAboutTo: findings[0]?.isTo === true,
	};
}

async function toldBefore(sql: Sql, { message }: ReturnedReport): Promise<ReadonlySet<string>> {
	const rows = await sql.all<{ told: string }>(
		// bounce_reports_of_message
		`SELECT f.type AS told
		FROM messages m
		JOIN message_firsts f ON f.message_id = m.id
		WHERE m.uuid = ? AND f.type IN ('SOFTBOUNCED', 'HARDBOUNCED')
		UNION
		SELECT r.kind
		FROM messages m
		JOIN bounce_reports r ON r.message_id = m.id
		WHERE m.uuid = ? AND r.kind = 'complaint'`,
		[message, message],
	);
	return new Set(rows.map(({ told }) => told));
}

function rememberMail(
	sql: Sql,
	message: ReturnedRow,
	{ sha256, at }: ReturnedReport,
	kind: ReportEffect,
): void {
	sql.write('INSERT INTO bounce_reports (sha256, message_id, kind, at) VALUES (?, ?, ?, ?)', [
		sha256,
		message.id,
		kind,
		at,
	]);
}

async function countComplaint(sql: Sql, { campaign }: ReturnedRow, { at }: ReturnedReport): Promise<void> {
	const tally = await createTally(sql);
	tally.add({ at, campaign, type: 'COMPLAINED', audience: 'all' });
	tally.write();
}

/** Nothing is recorded of an erased person. A message that was never sent cannot have come back. */
async function findMessage(sql: Sql, { message }: ReturnedReport): Promise<ReturnedRow | null> {
	const row = await sql.get<ReturnedRow>(
		`SELECT m.id, s.campaign, m.to_key, m.state, s.envelope, m.attempts, m.sent_at, m.last_reply, g.courier
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE m.uuid = ? AND m.fence > 0`,
		[message],
	);
	return row === undefined || row.to_key === erasedAddress ? null : row;
}

function recipientsOf({ to_key, envelope }: ReturnedRow): Recipients {
	const { cc, bcc } = readEnvelope(envelope);
	const copies = [...cc, ...bcc].map((text) => parseMailbox(text)?.key ?? emailKey(text));
	return { to: to_key, copies: [...new Set(copies)].filter((key) => key !== to_key) };
}

interface Application {
	message: ReturnedRow;
	report: ReturnedReport;
	finding: Finding;
}

interface Change extends Application {
	effect: ReportEffect;
}

/** The effect of a finding; null where the same was known of this recipient. Of a copy only its address is known. */
function effectOf(
	told: ReadonlySet<string>,
	{ report, finding }: Omit<Application, 'message'>,
): ReportEffect | null {
	if (report.kind === 'complaint') return finding.isTo && told.has('complaint') ? null : 'complaint';
	const effect = finding.hard ? 'hard_bounce' : 'soft_bounce';
	if (!finding.isTo) return effect;
	const isKnown = told.has('HARDBOUNCED') || (!finding.hard && told.has('SOFTBOUNCED'));
	return isKnown ? null : effect;
}

/** Complaints, and hard bounces of copies, which change only an address: the message's state is that of its `to`. */
async function stopCopies(sql: Sql, changes: readonly Change[]): Promise<void> {
	const stops = changes.flatMap(({ report, finding: { address, hard, isTo } }): Stop[] => {
		const of = { address, list_id: null, now: report.at };
		if (report.kind === 'complaint') return [{ ...of, reason: 'COMPLAINED', source: 'COMPLAINT' }];
		return hard && !isTo ? [{ ...of, reason: 'HARDBOUNCED', source: 'BOUNCE' }] : [];
	});
	const recipients = await readRecipients(
		sql,
		stops.map(({ address }) => address),
	);
	for (const stop of stops) recipients.stop(stop);
	recipients.write();
}

async function bounceMessage(sql: Sql, changes: readonly Change[]): Promise<void> {
	const events: TrackedEvent[] = [];
	for (const change of changes) {
		const { report, finding, effect } = change;
		if (report.kind === 'complaint' || !finding.isTo) continue;
		const isHard = effect === 'hard_bounce';
		if (isHard) setState(sql, change, { to: 'bounced', from: mayBounce });
		else setState(sql, change, { to: 'failed', from: ['sent', 'uncertain'] });
		if (finding.uncounted) continue;
		events.push({
			...{ message: report.message, type: isHard ? 'HARDBOUNCED' : 'SOFTBOUNCED', at: report.at },
			...{ link: null, machine: false, ip: null, user_agent: null, url: null },
			...{ smtp_code: finding.smtp_code, diagnostic: finding.diagnostic },
		});
	}
	await recordEvents(sql, events);
}

const mayBounce: readonly MessageState[] = ['sent', 'uncertain', 'failed', 'queued', 'deferred'];

function setState(
	sql: Sql,
	{ message, finding }: Application,
	{ to, from }: { to: MessageState; from: readonly MessageState[] },
): void {
	if (!from.includes(message.state)) return;
	keepAttempt(sql, message);
	sql.write(
		'UPDATE messages SET state = ?, wake_at = NULL, last_reply = coalesce(?, last_reply) WHERE id = ?',
		[to, lastReply(finding), message.id],
	);
}

/** The reply with its code once, where the text has none of its own; null without either. */
function lastReply({ smtp_code: code, diagnostic: text }: Finding): string | null {
	if (code === null || text === null) return text ?? code;
	return new RegExp(`(?:^|\\D)${code.replaceAll('.', '\\.')}(?!\\d)`).test(text) ? text : `${code} ${text}`;
}
