/**
 * Records how deliveries ended: state, attempt, figures, suppression and subscriber, for messages still leased. The
 * outcome of a call that got no answer is uncertain.
 */

import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { DeliveryOutcome, Reply } from '../../engine/rules/outcomes.js';
import { effectOf, type OutcomeEffect, replyLine } from '../../engine/rules/outcomes.js';
import type { Operations } from '../operations.js';
import type { Settlement } from '../queue.js';
import { forgetCompositions } from './compositions.js';
import { countEvent } from './events.js';
import { softBounce } from './soft-bounces.js';
import type { Sql } from './sql.js';
import { stopMail } from './suppressions.js';
import { createTally, type Tally } from './tally.js';

interface LeasedRow {
	id: number;
	to_key: EmailKey;
	submission_seq: number;
	attempts: number;
	due_at: Micros;
}

/**
 * One answer for each settlement, in their order. A settlement changes nothing when another worker has taken the lease
 * since.
 */
export async function settle(
	sql: Sql,
	settlements: readonly Settlement[],
): Promise<('recorded' | 'lost_lease')[]> {
	const group: Group = {
		sql,
		tally: await createTally(sql),
		campaigns: new Map(),
		// subscribers_soft_bouncing: it holds few subscribers, and mostly none.
		hasSoftBouncing:
			(await sql.number('SELECT EXISTS (SELECT 1 FROM subscribers WHERE soft_bounces > 0)')) === 1,
	};
	const answers: ('recorded' | 'lost_lease')[] = [];
	for (const settlement of settlements) answers.push(await settleOne(group, settlement));
	await group.tally.write();
	return answers;
}

interface Group {
	sql: Sql;
	tally: Tally;
	/** By submission: a group has few of them. */
	campaigns: Map<number, Uuid | null>;
	hasSoftBouncing: boolean;
}

async function settleOne(group: Group, settlement: Settlement): Promise<'recorded' | 'lost_lease'> {
	const { outcome, at } = settlement;
	if (outcome.kind === 'sent') return await settleSent(group, settlement, outcome.reply);
	const { sql } = group;
	const row = await sql.get<LeasedRow>(
		`SELECT id, to_key, submission_seq, attempts, due_at
		FROM messages
		WHERE uuid = ? AND fence = ? AND state = 'leased'`,
		settlement.message,
		settlement.fence,
	);
	if (row === undefined) return 'lost_lease';
	const effect = effectOf(outcome, row);
	await writeState(sql, row, effect);
	// Given back by a live worker.
	if (outcome.kind === 'released') await forgetCompositions(sql, { id: row.id, fence: settlement.fence });
	if (effect.reply !== null) {
		await writeAttempt(sql, {
			id: row.id,
			number: row.attempts + 1,
			kind: outcome.kind,
			at,
			reply: effect.reply,
		});
	}
	if (!isCall(effect.reply)) await count(group, row, effect, at);
	return 'recorded';
}

/** A service counts what it took, and its text is the last reply. */
function isCall(reply: Reply | null): boolean {
	return reply?.phase === 'call';
}

/** Nearly all outcomes, in two statements: finds, checks and writes the message at once. */
async function settleSent(
	group: Group,
	{ message, fence, at }: Settlement,
	reply: Reply,
): Promise<'recorded' | 'lost_lease'> {
	const { sql, tally } = group;
	const [row] = await sql.tuples<[id: number, attempts: number, submission: number, to_key: EmailKey]>(
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
	if (isCall(reply)) return 'recorded';
	const [id, number, submission, address] = row;
	await writeAttempt(sql, { id, number, kind: 'sent', at, reply });
	tally.add({ at, campaign: await campaignOf(group, submission), type: 'SENT', audience: 'all' });
	if (group.hasSoftBouncing) {
		await sql.run(
			`UPDATE subscribers
			SET soft_bounces = 0, soft_bounced_since = NULL
			WHERE email_key = ? AND soft_bounces > 0`,
			address,
		);
	}
	return 'recorded';
}

async function campaignOf({ sql, campaigns }: Group, submission: number): Promise<Uuid | null> {
	const known = campaigns.get(submission);
	if (known !== undefined) return known;
	const row = await sql.get<{ campaign: Uuid | null }>(
		'SELECT campaign FROM submissions WHERE seq = ?',
		submission,
	);
	const campaign = row?.campaign ?? null;
	campaigns.set(submission, campaign);
	return campaign;
}

async function writeState(sql: Sql, row: LeasedRow, effect: OutcomeEffect): Promise<void> {
	await sql.run(
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

async function writeAttempt(sql: Sql, { id, number, kind, at, reply }: Attempt): Promise<void> {
	await sql.run(
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

async function count(group: Group, row: LeasedRow, effect: OutcomeEffect, at: Micros): Promise<void> {
	const { sql, tally } = group;
	const address = row.to_key;
	if (effect.event !== null) {
		const bounce = { type: effect.event, at, link: null, machine: false, ...saidOf(effect.reply) };
		const message = { id: row.id, campaign: await campaignOf(group, row.submission_seq), to_key: address };
		const isFirst = await countEvent(sql, tally, message, bounce);
		if (isFirst && effect.event === 'SOFTBOUNCED') {
			await softBounce(sql, address, at);
			group.hasSoftBouncing = true;
		}
	}
	if (effect.suppresses) {
		await stopMail(sql, { address, list_id: null, reason: 'HARDBOUNCED', source: 'DELIVERY', now: at });
	}
}

/** The part of the reply that a webhook delivery of the bounce contains. */
function saidOf(reply: Reply | null): { smtp_code: string | null; diagnostic: string | null } {
	if (reply === null) return { smtp_code: null, diagnostic: null };
	const code = reply.enhanced ?? reply.code;
	return { smtp_code: code === null ? null : String(code), diagnostic: replyLine(reply) };
}

/**
 * Calls of a send API. A call cannot be taken back, so a message whose worker ended during one may have been sent. Each
 * in one transaction of the caller.
 */
export function createCalls(sql: Sql) {
	return {
		setCalling: async ({ fences, isCalling }) => {
			for (const { message, fence } of fences)
				await sql.run(
					"UPDATE messages SET called = ? WHERE uuid = ? AND fence = ? AND state = 'leased'",
					isCalling ? fence : null,
					message,
					fence,
				);
		},
		retryUncertain: async ({ campaign, isAgain, now }) => {
			const row = await sql.get<{ seq: number }>('SELECT seq FROM campaigns WHERE id = ?', campaign);
			if (row === undefined) return;
			if (isAgain) await queueUncertain(sql, row.seq, now);
			else await leaveUncertain(sql, row.seq);
		},
	} satisfies Partial<Operations>;
}

/** Waiting messages keep their order, and the uncertain ones join them. */
async function queueUncertain(sql: Sql, lane: number, now: Micros): Promise<void> {
	const { changes } = await sql.run(
		// messages_uncertain (lane)
		`UPDATE messages SET state = 'queued', wake_at = ${sql.dialect.least}(due_at, ?) WHERE lane = ? AND state = 'uncertain'`,
		now,
		lane,
	);
	if (changes > 0) await sql.run('UPDATE campaigns SET has_open_work = 1 WHERE seq = ?', lane);
}

/** Uses messages_due. A message that waits after an attempt was to be sent again by a run that did not reach it. */
async function leaveUncertain(sql: Sql, lane: number): Promise<void> {
	await sql.run(
		`UPDATE messages
		SET state = 'uncertain', wake_at = NULL
		WHERE lane = ? AND wake_at IS NOT NULL AND attempts > 0 AND state IN ('queued', 'deferred')`,
		lane,
	);
}

/** The outcome for a message whose lease was lost during a call. */
export function lostCall({ uuid, fence }: { uuid: string; fence: number }, at: Micros): Settlement {
	const text = 'the command was ended before the service answered';
	const reply = { phase: 'call', code: null, enhanced: 'interrupted', text } as const;
	return { message: uuid, fence, at, outcome: { kind: 'uncertain', reply } };
}

/**
 * For the only process of a lane: messages that others have leased there are due now, and uncertain where a call was
 * under way. `owner` null: any owner.
 */
export async function loseLeases(
	sql: Sql,
	{ lane, owner, now }: { lane: number; owner: string | null; now: Micros },
): Promise<void> {
	const leased = await sql.all<{ id: number; uuid: string; fence: number; called: number | null }>(
		// messages_due (lane, wake_at): a lease ends in the future, a wait in this index does not.
		`SELECT id, uuid, fence, called
		FROM messages ${sql.dialect.using('messages_due')}
		WHERE lane = ? AND wake_at IS NOT NULL AND wake_at > ? AND state = 'leased' AND lease_owner IS DISTINCT FROM ?`,
		lane,
		now,
		owner,
	);
	await settle(
		sql,
		leased.filter(({ called, fence }) => called === fence).map((row) => lostCall(row, now)),
	);
	for (const { id, called, fence } of leased)
		if (called !== fence) await sql.run('UPDATE messages SET wake_at = ? WHERE id = ?', now, id);
}
