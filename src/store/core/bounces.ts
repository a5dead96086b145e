/** Reports on messages that came back: what a report changes for its message and for the recipient. */

import { type EmailKey, emailKey, parseMailbox } from '../../api/address.js';
import type { EventType, MessageState, Uuid } from '../../api/records.js';
import { erasedAddress } from '../../engine/rules/erasure.js';
import type { ReturnedReport } from '../../engine/rules/reported-recipients.js';
import { type Finding, findingsOf, type Recipients } from '../../engine/rules/reported-recipients.js';
import type { RecordedReport, ReportEffect, ReportOutcome } from '../bounces.js';
import type { Operations } from '../operations.js';
import { keepSentAttempt } from './attempts.js';
import { recordEvent } from './events.js';
import { readEnvelope } from './rows.js';
import { reportedSoftBounce } from './soft-bounces.js';
import type { Sql } from './sql.js';
import { stopMail } from './suppressions.js';
import { createTally } from './tally.js';

interface ReturnedRow {
	id: number;
	campaign: Uuid | null;
	to_key: EmailKey;
	state: MessageState;
	envelope: string;
}

/** `recordReport` needs one transaction around it. `foreseeReport` has the same result without writing. */
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

/** The changes by a report: the new facts about each recipient, the message's own recipient first. */
type Assessment =
	| Exclude<ReportOutcome, { kind: 'recorded' }>
	| ({ kind: 'recorded'; message: ReturnedRow; changes: Change[]; isAboutTo: boolean } & RecordedReport);

async function recordReport(sql: Sql, report: ReturnedReport): Promise<ReportOutcome> {
	const assessment = await assess(sql, report);
	if (assessment.kind !== 'recorded') return assessment;
	const { effect, address, message, changes, isAboutTo } = assessment;
	for (const change of changes) await apply(sql, change);
	rememberMail(sql, message, report, effect);
	if (effect === 'complaint') await countComplaint(sql, message, report);
	if (isAboutTo && effect === 'soft_bounce') await reportedSoftBounce(sql, message, report);
	return { kind: 'recorded', effect, address };
}

/** Only reads. */
async function assess(sql: Sql, report: ReturnedReport): Promise<Assessment> {
	if (await isKnownMail(sql, report.sha256)) return { kind: 'known' };
	const message = await findMessage(sql, report);
	if (message === null) return { kind: 'unmatched' };
	// The outcome is recorded in a moment, and would overwrite a state that is written now.
	if (message.state === 'leased') return { kind: 'in_flight' };
	const findings = findingsOf(recipientsOf(message), report);
	if (findings.length === 0) return { kind: 'unmatched' };
	const changes: Change[] = [];
	for (const finding of findings) {
		const effect = await effectOf(sql, { message, report, finding });
		if (effect !== null) changes.push({ message, report, finding, effect });
	}
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

async function isKnownMail(sql: Sql, sha256: string): Promise<boolean> {
	return (await sql.number('SELECT EXISTS (SELECT 1 FROM bounce_reports WHERE sha256 = ?)', sha256)) === 1;
}

function rememberMail(
	sql: Sql,
	message: ReturnedRow,
	{ sha256, at }: ReturnedReport,
	kind: ReportEffect,
): void {
	sql.write(
		'INSERT INTO bounce_reports (sha256, message_id, kind, at) VALUES (?, ?, ?, ?)',
		sha256,
		message.id,
		kind,
		at,
	);
}

async function countComplaint(sql: Sql, { campaign }: ReturnedRow, { at }: ReturnedReport): Promise<void> {
	const tally = await createTally(sql);
	tally.add({ at, campaign, type: 'COMPLAINED', audience: 'all' });
	tally.write();
}

/** Nothing is recorded of an erased person. A message that was never sent cannot have come back. */
async function findMessage(sql: Sql, { message }: ReturnedReport): Promise<ReturnedRow | null> {
	const row = await sql.get<ReturnedRow>(
		`SELECT m.id, s.campaign, m.to_key, m.state, s.envelope
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

/** The effect of a finding; null where the same was known of this recipient. Of a copy only its address is known. */
async function effectOf(sql: Sql, { message, report, finding }: Application): Promise<ReportEffect | null> {
	if (report.kind === 'complaint')
		return finding.isTo && (await wasReported(sql, message, 'complaint')) ? null : 'complaint';
	const effect = finding.hard ? 'hard_bounce' : 'soft_bounce';
	if (!finding.isTo) return effect;
	const isKnown =
		(await hasEvent(sql, message, 'HARDBOUNCED')) ||
		(!finding.hard && (await hasEvent(sql, message, 'SOFTBOUNCED')));
	return isKnown ? null : effect;
}

async function apply(sql: Sql, change: Change): Promise<void> {
	const { report, finding } = change;
	if (report.kind === 'complaint') await stop(sql, change, 'COMPLAINED');
	else if (finding.isTo) await bounce(sql, change);
	// The message's state is that of its `to`: a finding about a copy changes only the address.
	else if (finding.hard) await stop(sql, change, 'HARDBOUNCED');
}

async function stop(
	sql: Sql,
	{ report, finding }: Change,
	reason: 'COMPLAINED' | 'HARDBOUNCED',
): Promise<void> {
	const { address } = finding;
	const source = reason === 'COMPLAINED' ? 'COMPLAINT' : 'BOUNCE';
	await stopMail(sql, { address, list_id: null, reason, source, now: report.at });
}

async function wasReported(sql: Sql, message: ReturnedRow, kind: ReportEffect): Promise<boolean> {
	return (
		(await sql.number(
			// bounce_reports_of_message
			'SELECT EXISTS (SELECT 1 FROM bounce_reports WHERE message_id = ? AND kind = ?)',
			message.id,
			kind,
		)) === 1
	);
}

async function bounce(sql: Sql, change: Change): Promise<void> {
	if (change.effect === 'hard_bounce') {
		const from: MessageState[] = ['sent', 'uncertain', 'failed', 'queued', 'deferred'];
		await setState(sql, change, { to: 'bounced', from });
		await record(sql, change, 'HARDBOUNCED');
	} else {
		await setState(sql, change, { to: 'failed', from: ['sent', 'uncertain'] });
		await record(sql, change, 'SOFTBOUNCED');
	}
}

async function hasEvent(sql: Sql, message: ReturnedRow, type: EventType): Promise<boolean> {
	return (
		(await sql.number(
			'SELECT EXISTS (SELECT 1 FROM message_firsts WHERE message_id = ? AND type = ?)',
			message.id,
			type,
		)) === 1
	);
}

async function setState(
	sql: Sql,
	{ message, finding }: Application,
	{ to, from }: { to: MessageState; from: readonly MessageState[] },
): Promise<void> {
	if (!from.includes(message.state)) return;
	await keepSentAttempt(sql, message.id);
	sql.write(
		'UPDATE messages SET state = ?, wake_at = NULL, last_reply = coalesce(?, last_reply) WHERE id = ?',
		to,
		lastReply(finding),
		message.id,
	);
}

/** The reply with its code once, where the text has none of its own; null without either. */
function lastReply({ smtp_code: code, diagnostic: text }: Finding): string | null {
	if (code === null || text === null) return text ?? code;
	return new RegExp(`(?:^|\\D)${code.replaceAll('.', '\\.')}(?!\\d)`).test(text) ? text : `${code} ${text}`;
}

async function record(
	sql: Sql,
	{ report, finding }: Application,
	type: 'HARDBOUNCED' | 'SOFTBOUNCED',
): Promise<void> {
	const tally = await createTally(sql);
	await recordEvent(sql, tally, {
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
