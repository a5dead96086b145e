/** Records how deliveries went: state, attempt, figures, suppression and subscriber, for those still leased. */
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { effectOf, type OutcomeEffect, replyLine } from '../../engine/rules/outcomes.js';
import type { Settlement } from '../queue.js';
import { countEvent, softBounce } from './counting.js';
import { createTally, type Tally } from './figures.js';
import type { Sql } from './sql.js';
import { deactivate, suppress } from './suppressions.js';

interface LeasedRow {
	id: number;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	attempts: number;
	due_at: Micros;
	campaign: Uuid | null;
}

/** One answer a settlement, in their order. A lease that somebody else took since changes nothing. */
export function settle(sql: Sql, settlements: readonly Settlement[]): ('recorded' | 'lost_lease')[] {
	const tally = createTally(sql);
	const answers = settlements.map((settlement) => settleOne(sql, tally, settlement));
	tally.write();
	return answers;
}

function settleOne(sql: Sql, tally: Tally, { message, fence, at, outcome }: Settlement) {
	const row = sql.get<LeasedRow>(
		`SELECT m.id, m.to_key, m.list_id, m.subscriber_id, m.attempts, m.due_at, s.campaign
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.uuid = ? AND m.fence = ? AND m.state = 'leased'`,
		message,
		fence,
	);
	if (row === undefined) return 'lost_lease';
	const effect = effectOf(outcome, row);
	writeState(sql, row, effect, at);
	if (effect.reply !== null) writeAttempt(sql, row, { kind: outcome.kind, at, reply: effect.reply });
	count(sql, tally, row, effect, at);
	return 'recorded';
}

function writeState(sql: Sql, row: LeasedRow, effect: OutcomeEffect, at: Micros): void {
	sql.run(
		`UPDATE messages
		SET state = ?, due_at = coalesce(?, due_at), wake_at = ?, lease_owner = NULL,
			attempts = attempts + ?, sent_at = ?, last_reply = coalesce(?, last_reply)
		WHERE id = ?`,
		effect.state,
		effect.due_at,
		effect.due_at,
		effect.reply === null ? 0 : 1,
		effect.event === 'SENT' ? at : null,
		effect.reply === null ? null : replyLine(effect.reply),
		row.id,
	);
}

function writeAttempt(
	sql: Sql,
	row: LeasedRow,
	{ kind, at, reply }: { kind: string; at: Micros; reply: NonNullable<OutcomeEffect['reply']> },
): void {
	sql.run(
		`INSERT INTO attempts (message_id, number, at, outcome, phase, code, enhanced, text)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		row.id,
		row.attempts + 1,
		at,
		kind,
		reply.phase,
		reply.code,
		reply.enhanced,
		reply.text,
	);
}

function count(sql: Sql, tally: Tally, row: LeasedRow, effect: OutcomeEffect, at: Micros): void {
	const address = row.to_key;
	if (effect.event === 'SENT') {
		tally.add({ at, campaign: row.campaign, type: 'SENT', audience: 'all' });
		// subscribers_soft_bouncing: next to nobody is in it.
		sql.run(
			`UPDATE subscribers
			SET soft_bounces = 0, soft_bounced_since = NULL
			WHERE email_key = ? AND soft_bounces > 0`,
			address,
		);
	} else if (effect.event !== null) {
		const bounce = { type: effect.event, at, link: null, machine: false };
		const isFirst = countEvent(sql, tally, { id: row.id, campaign: row.campaign }, bounce);
		if (isFirst && effect.event === 'SOFTBOUNCED') softBounce(sql, address, at);
	}
	if (effect.suppresses) {
		suppress(sql, { address, reason: 'HARDBOUNCED', source: 'delivery', now: at });
		deactivate(sql, { address, list_id: null, subscriber_id: null }, 'HARDBOUNCED');
	}
}
