/** Reports on messages that came back: what one changes for its message and for whoever it was sent to. */
import { type EmailKey, emailKey, parseMailbox } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { EventType, MessageState } from '../../api/records.js';
import { type Finding, findingsOf, type Recipients } from '../../engine/rules/bounces.js';
import { erasedAddress } from '../../engine/rules/erasure.js';
import { isSoftBounceLimit } from '../../engine/rules/subscription.js';
import type { RecordedReport, ReportEffect, ReportOutcome, ReturnedReport } from '../bounces.js';
import { recordEvent } from './events.js';
import { createTally } from './figures.js';
import type { Sql } from './sql.js';
import { readEnvelope } from './stored-json.js';
import { deactivate, suppress } from './suppressions.js';
import type { Operations } from './sync.js';

interface ReturnedRow {
	id: number;
	to_key: EmailKey;
	state: MessageState;
	envelope: string;
}

/** `recordReport` needs one transaction around it; `foreseeReport` comes to the same without writing. */
export function createBounces(sql: Sql): Pick<Operations, 'recordReport' | 'foreseeReport'> {
	return {
		recordReport: (report) => recordReport(sql, report),
		foreseeReport: (report) => {
			const foreseen = assess(sql, report);
			if (foreseen.kind !== 'recorded') return foreseen;
			const { effect, address } = foreseen;
			return { kind: 'recorded', effect, address };
		},
	};
}

/** What a report would change: of each recipient what was not known, the message's own first. */
type Assessment =
	| Exclude<ReportOutcome, { kind: 'recorded' }>
	| ({ kind: 'recorded'; message: ReturnedRow; changes: Change[]; isAboutTo: boolean } & RecordedReport);

function recordReport(sql: Sql, report: ReturnedReport): ReportOutcome {
	const assessment = assess(sql, report);
	if (assessment.kind !== 'recorded') return assessment;
	const { effect, address, message, changes, isAboutTo } = assessment;
	for (const change of changes) apply(sql, change);
	rememberMail(sql, message, report, effect);
	if (isAboutTo && effect === 'soft_bounce') endRun(sql, message, report);
	return { kind: 'recorded', effect, address };
}

/** Reads alone. */
function assess(sql: Sql, report: ReturnedReport): Assessment {
	if (isKnownMail(sql, report.sha256)) return { kind: 'known' };
	const message = findMessage(sql, report);
	if (message === null) return { kind: 'unmatched' };
	// What it came to is recorded in a moment, and would be lost to a state that is written now.
	if (message.state === 'leased') return { kind: 'in_flight' };
	const findings = findingsOf(recipientsOf(message), report);
	if (findings.length === 0) return { kind: 'unmatched' };
	const changes = findings.flatMap((finding) => {
		const effect = effectOf(sql, { message, report, finding });
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

function isKnownMail(sql: Sql, sha256: string): boolean {
	return sql.number('SELECT EXISTS (SELECT 1 FROM bounce_reports WHERE sha256 = ?)', sha256) === 1;
}

function rememberMail(
	sql: Sql,
	message: ReturnedRow,
	{ sha256, at }: ReturnedReport,
	kind: ReportEffect,
): void {
	sql.run(
		'INSERT INTO bounce_reports (sha256, message_id, kind, at) VALUES (?, ?, ?, ?)',
		sha256,
		message.id,
		kind,
		at,
	);
}

/** Of an erased person nothing is recorded any more; a message that was never sent cannot have come back. */
function findMessage(sql: Sql, { message }: ReturnedReport): ReturnedRow | null {
	const row = sql.get<ReturnedRow>(
		`SELECT m.id, m.to_key, m.state, s.envelope
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.uuid = ? AND m.fence > 0`,
		message,
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

/** What it comes to; null where the same was known of this recipient. Of a copy nothing is known but its address. */
function effectOf(sql: Sql, { message, report, finding }: Application): ReportEffect | null {
	if (report.kind === 'complaint')
		return finding.isTo && wasReported(sql, message, 'complaint') ? null : 'complaint';
	const effect = finding.hard ? 'hard_bounce' : 'soft_bounce';
	if (!finding.isTo) return effect;
	const isKnown =
		hasEvent(sql, message, 'HARDBOUNCED') || (!finding.hard && hasEvent(sql, message, 'SOFTBOUNCED'));
	return isKnown ? null : effect;
}

function apply(sql: Sql, change: Change): void {
	const { report, finding } = change;
	if (report.kind === 'complaint') stop(sql, change, 'COMPLAINED');
	else if (finding.isTo) bounce(sql, change);
	// The message's fate is its `to`'s: of a copy only the address is told.
	else if (finding.hard) stop(sql, change, 'HARDBOUNCED');
}

function stop(sql: Sql, { report, finding }: Change, reason: 'COMPLAINED' | 'HARDBOUNCED'): void {
	const { address } = finding;
	const source = reason === 'COMPLAINED' ? 'COMPLAINT' : 'BOUNCE';
	suppress(sql, { address, reason, source, now: report.at });
	deactivate(sql, { address, list_id: null, subscriber_id: null }, reason);
}

function wasReported(sql: Sql, message: ReturnedRow, kind: ReportEffect): boolean {
	return (
		sql.number(
			// bounce_reports_of_message
			'SELECT EXISTS (SELECT 1 FROM bounce_reports WHERE message_id = ? AND kind = ?)',
			message.id,
			kind,
		) === 1
	);
}

function bounce(sql: Sql, change: Change): void {
	if (change.effect === 'hard_bounce') {
		const from: MessageState[] = ['sent', 'uncertain', 'failed', 'queued', 'deferred'];
		setState(sql, change, { to: 'bounced', from });
		record(sql, change, 'HARDBOUNCED');
	} else {
		setState(sql, change, { to: 'failed', from: ['sent', 'uncertain'] });
		record(sql, change, 'SOFTBOUNCED');
	}
}

function hasEvent(sql: Sql, message: ReturnedRow, type: EventType): boolean {
	return (
		sql.number(
			'SELECT EXISTS (SELECT 1 FROM message_firsts WHERE message_id = ? AND type = ?)',
			message.id,
			type,
		) === 1
	);
}

function setState(
	sql: Sql,
	{ message, finding }: Application,
	{ to, from }: { to: MessageState; from: readonly MessageState[] },
): void {
	if (!from.includes(message.state)) return;
	sql.run(
		'UPDATE messages SET state = ?, wake_at = NULL, last_reply = coalesce(?, last_reply) WHERE id = ?',
		to,
		lastReply(finding),
		message.id,
	);
}

/** The code once, where the text has none of its own; null for neither. */
function lastReply({ smtp_code: code, diagnostic: text }: Finding): string | null {
	if (code === null || text === null) return text ?? code;
	return new RegExp(`(?:^|\\D)${code.replaceAll('.', '\\.')}(?!\\d)`).test(text) ? text : `${code} ${text}`;
}

function record(sql: Sql, { report, finding }: Application, type: 'HARDBOUNCED' | 'SOFTBOUNCED'): void {
	const tally = createTally(sql);
	recordEvent(sql, tally, {
		message: report.message,
		type,
		at: report.at,
		link: null,
		machine: false,
		ip: null,
		user_agent: null,
		url: null,
		smtp_code: finding.smtp_code,
		diagnostic: finding.diagnostic,
	});
	tally.write();
}

/**
 * Soft bounces in a row, told by reports: each of these messages was taken by the next server first, so the count that
 * a sending ends says nothing here. The row is that of the messages to this address up to this one, back to the last
 * that arrived, or that was one too many before.
 */
function endRun(sql: Sql, { id, to_key }: ReturnedRow, { sha256, at }: ReturnedReport): void {
	const run = sql.get<{ count: number; since: Micros | null }>(
		// messages_of_address
		`SELECT count(*) AS count, min(f.first_at) AS since
		FROM messages m
		JOIN message_firsts f ON f.message_id = m.id AND f.type = 'SOFTBOUNCED'
		WHERE m.to_key = ? AND m.id <= ? AND m.id > (
			SELECT coalesce(max(b.id), 0)
			FROM messages b
			WHERE b.to_key = ? AND b.id < ? AND (b.state = 'sent' OR EXISTS (
				SELECT 1 FROM bounce_reports r WHERE r.message_id = b.id AND r.ends_run = 1
			))
		)`,
		to_key,
		id,
		to_key,
		id,
	);
	if (run === undefined || !isSoftBounceLimit({ count: run.count, since: run.since ?? at }, at)) return;
	const isActive = 'SELECT EXISTS (SELECT 1 FROM subscribers WHERE email_key = ? AND is_active = 1)';
	if (sql.number(isActive, to_key) === 0) return;
	suppress(sql, { address: to_key, reason: 'SOFTBOUNCED', source: 'BOUNCE', now: at });
	deactivate(sql, { address: to_key, list_id: null, subscriber_id: null }, 'SOFTBOUNCED');
	sql.run('UPDATE bounce_reports SET ends_run = 1 WHERE sha256 = ?', sha256);
}
