/** Records how deliveries went: state, attempt, figures, suppression and subscriber, for those still leased. */
import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { effectOf, type OutcomeEffect, replyLine } from '../../engine/rules/outcomes.js';
import type { DeliveryOutcome, Reply, Settlement } from '../queue.js';
import { countEvent, softBounce } from './counting.js';
import { createTally, type Tally } from './figures.js';
import type { Sql } from './sql.js';
import { deactivate, suppress } from './suppressions.js';

interface LeasedRow {
	id: number;
	to_key: EmailKey;
	submission_seq: number;
	attempts: number;
	due_at: Micros;
}

/** One answer a settlement, in their order. A lease that somebody else took since changes nothing. */
export function settle(sql: Sql, settlements: readonly Settlement[]): ('recorded' | 'lost_lease')[] {
	const group: Group = {
		sql,
		tally: createTally(sql),
		campaigns: new Map(),
		// subscribers_soft_bouncing: next to nobody is in it, and mostly nobody at all.
		hasSoftBouncing: sql.number('SELECT EXISTS (SELECT 1 FROM subscribers WHERE soft_bounces > 0)') === 1,
	};
	const answers = settlements.map((settlement) => settleOne(group, settlement));
	group.tally.write();
	return answers;
}

interface Group {
	sql: Sql;
	tally: Tally;
	/** By submission: a group is of a few. */
	campaigns: Map<number, Uuid | null>;
	hasSoftBouncing: boolean;
}

function settleOne(group: Group, settlement: Settlement): 'recorded' | 'lost_lease' {
	const { outcome, at } = settlement;
	if (outcome.kind === 'sent') return settleSent(group, settlement, outcome.reply);
	const { sql } = group;
	const row = sql.get<LeasedRow>(
		`SELECT id, to_key, submission_seq, attempts, due_at
		FROM messages
		WHERE uuid = ? AND fence = ? AND state = 'leased'`,
		settlement.message,
		settlement.fence,
	);
	if (row === undefined) return 'lost_lease';
	const effect = effectOf(outcome, row);
	writeState(sql, row, effect);
	if (effect.reply !== null) {
		writeAttempt(sql, { id: row.id, number: row.attempts + 1, kind: outcome.kind, at, reply: effect.reply });
	}
	count(group, row, effect, at);
	return 'recorded';
}

/** What nearly all outcomes are, in two statements: it finds, checks and writes the message at once. */
function settleSent(
	group: Group,
	{ message, fence, at }: Settlement,
	reply: Reply,
): 'recorded' | 'lost_lease' {
	const { sql, tally } = group;
	const [row] = sql.tuples<[id: number, attempts: number, submission: number, to_key: EmailKey]>(
		`UPDATE messages
		SET state = 'sent', wake_at = NULL, lease_owner = NULL, attempts = attempts + 1, sent_at = ?, last_reply = ?
		WHERE uuid = ? AND fence = ? AND state = 'leased'
		RETURNING id, attempts, submission_seq, to_key`,
		at,
		replyLine(reply),
		message,
		fence,
	);
	if (row === undefined) return 'lost_lease';
	const [id, number, submission, address] = row;
	writeAttempt(sql, { id, number, kind: 'sent', at, reply });
	tally.add({ at, campaign: campaignOf(group, submission), type: 'SENT', audience: 'all' });
	if (group.hasSoftBouncing) {
		sql.run(
			`UPDATE subscribers
			SET soft_bounces = 0, soft_bounced_since = NULL
			WHERE email_key = ? AND soft_bounces > 0`,
			address,
		);
	}
	return 'recorded';
}

function campaignOf({ sql, campaigns }: Group, submission: number): Uuid | null {
	const known = campaigns.get(submission);
	if (known !== undefined) return known;
	const row = sql.get<{ campaign: Uuid | null }>(
		'SELECT campaign FROM submissions WHERE seq = ?',
		submission,
	);
	const campaign = row?.campaign ?? null;
	campaigns.set(submission, campaign);
	return campaign;
}

function writeState(sql: Sql, row: LeasedRow, effect: OutcomeEffect): void {
	sql.run(
		`UPDATE messages
		SET state = ?, due_at = coalesce(?, due_at), wake_at = ?, lease_owner = NULL,
			attempts = attempts + ?, last_reply = coalesce(?, last_reply)
		WHERE id = ?`,
		effect.state,
		effect.due_at,
		effect.due_at,
		effect.reply === null ? 0 : 1,
		effect.reply === null ? null : replyLine(effect.reply),
		row.id,
	);
}

interface Attempt {
	/** The message's. */
	id: number;
	/** The first is 1. */
	number: number;
	kind: DeliveryOutcome['kind'];
	at: Micros;
	reply: Reply;
}

function writeAttempt(sql: Sql, { id, number, kind, at, reply }: Attempt): void {
	sql.run(
		`INSERT INTO attempts (message_id, number, at, outcome, phase, code, enhanced, text)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		id,
		number,
		at,
		kind,
		reply.phase,
		reply.code,
		reply.enhanced,
		reply.text,
	);
}

function count(group: Group, row: LeasedRow, effect: OutcomeEffect, at: Micros): void {
	const { sql, tally } = group;
	const address = row.to_key;
	if (effect.event !== null) {
		const bounce = { type: effect.event, at, link: null, machine: false, ...saidOf(effect.reply) };
		const message = { id: row.id, campaign: campaignOf(group, row.submission_seq) };
		const isFirst = countEvent(sql, tally, message, bounce);
		if (isFirst && effect.event === 'SOFTBOUNCED') {
			softBounce(sql, address, at);
			group.hasSoftBouncing = true;
		}
	}
	if (effect.suppresses) {
		suppress(sql, { address, reason: 'HARDBOUNCED', source: 'DELIVERY', now: at });
		deactivate(sql, { address, list_id: null, subscriber_id: null }, 'HARDBOUNCED');
	}
}

/** What a notification of the bounce tells of the reply. */
function saidOf(reply: Reply | null): { smtp_code: string | null; diagnostic: string | null } {
	if (reply === null) return { smtp_code: null, diagnostic: null };
	const code = reply.enhanced ?? reply.code;
	return { smtp_code: code === null ? null : String(code), diagnostic: replyLine(reply) };
}
