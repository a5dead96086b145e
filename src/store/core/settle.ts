/**
 * Records how deliveries ended: state, attempt, figures, suppression and subscriber, for messages still leased. The
 * outcome of a call that got no answer is uncertain.
 */

import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Reply } from '../../engine/rules/outcomes.js';
import { effectOf, type OutcomeEffect, replyLine } from '../../engine/rules/outcomes.js';
import type { Operations } from '../operations.js';
import type { Settlement } from '../queue.js';
import { writeAttempts } from './attempts.js';
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
export async function settle(sql: Sql, settlements: readonly Settlement[]): Promise<Answer[]> {
	const sent = settlements.filter(isSent);
	const [tally, softBouncing, rows] = await sql.together([
		() => createTally(sql),
		// subscribers_soft_bouncing: it holds few subscribers, and mostly none. In its order, or a database that has not
		// counted yet may read the whole table.
		() =>
			sql.number(
				`SELECT count(*)
				FROM (SELECT email_key FROM subscribers WHERE soft_bounces > 0 ORDER BY email_key LIMIT 1) s`,
			),
		() => writeSent(sql, sent),
	]);
	const group: Group = { sql, tally, campaigns: new Map() };
	await countSent(group, rows, softBouncing === 1);
	const answers = new Map<Settlement, Answer>(
		sent.map((settlement, at) => [settlement, rows[at] ? 'recorded' : 'lost_lease']),
	);
	// Each may change what the next one finds: two bounces of an address.
	for (const settlement of settlements)
		if (!answers.has(settlement)) answers.set(settlement, await settleOne(group, settlement));
	tally.write();
	return settlements.map((settlement) => answers.get(settlement) ?? 'lost_lease');
}

type Answer = 'recorded' | 'lost_lease';
type Sent = Settlement & { outcome: { kind: 'sent' } };

function isSent(settlement: Settlement): settlement is Sent {
	return settlement.outcome.kind === 'sent';
}

interface Group {
	sql: Sql;
	tally: Tally;
	/** By submission: a group has few of them. */
	campaigns: Map<number, Uuid | null>;
}

async function settleOne(group: Group, settlement: Settlement): Promise<Answer> {
	const { outcome, at } = settlement;
	const { sql } = group;
	const row = await sql.get<LeasedRow>(
		`SELECT id, to_key, submission_seq, attempts, due_at
		FROM messages
		WHERE uuid = ? AND fence = ? AND state = 'leased'
		${sql.dialect.lockRows('messages')}`,
		settlement.message,
		settlement.fence,
	);
	if (row === undefined) return 'lost_lease';
	const effect = effectOf(outcome, row);
	writeState(sql, row, effect);
	// Given back by a live worker.
	if (outcome.kind === 'released') forgetCompositions(sql, { id: row.id, fence: settlement.fence });
	if (effect.reply !== null) {
		const { id, attempts } = row;
		writeAttempts(sql, [{ id, number: attempts + 1, kind: outcome.kind, at, reply: effect.reply }]);
	}
	if (!isCall(effect.reply)) await count(group, row, effect, at);
	return 'recorded';
}

/** A service counts what it took, and its text is the last reply. */
function isCall(reply: Reply | null): boolean {
	return reply?.phase === 'call';
}

/** Nearly all outcomes: their attempts and figures. */
async function countSent(
	group: Group,
	rows: readonly (SentRow | null)[],
	hasSoftBouncing: boolean,
): Promise<void> {
	const { sql, tally } = group;
	// A service counts what it took.
	const counted = rows.filter((row) => row !== null).filter(({ reply }) => !isCall(reply));
	const submissions = [...new Set(counted.map(({ submission }) => submission))];
	await sql.together(submissions.map((submission) => async () => await campaignOf(group, submission)));
	writeAttempts(
		sql,
		counted.map(({ id, number, at, reply }) => ({ id, number, kind: 'sent', at, reply })),
	);
	if (hasSoftBouncing) for (const { address } of counted) endSoftBounces(sql, address);
	for (const { at, submission } of counted)
		tally.add({ at, campaign: await campaignOf(group, submission), type: 'SENT', audience: 'all' });
}

interface SentRow {
	/** The message's. */
	id: number;
	/** Of this attempt. */
	number: number;
	submission: number;
	address: EmailKey;
	at: Micros;
	reply: Reply;
}

/** Finds, checks and writes the messages at once. Null: the lease is another worker's by now. */
async function writeSent(sql: Sql, settlements: readonly Sent[]): Promise<(SentRow | null)[]> {
	if (settlements.length === 0) return [];
	const columns = { message: 'TEXT', at_fence: 'BIGINT', at: 'BIGINT', reply: 'TEXT' } as const;
	const rows = await sql.tuples<
		[uuid: Uuid, fence: number, id: number, number: number, submission: number, address: EmailKey]
	>(
		`UPDATE messages
		SET state = 'sent', wake_at = NULL, lease_owner = NULL, attempts = attempts + 1, sent_at = sent.at, last_reply = sent.reply
		FROM ${sql.dialect.table(columns, 'sent')}
		WHERE uuid = sent.message AND fence = sent.at_fence AND state = 'leased'
		RETURNING uuid, fence, id, attempts, submission_seq, to_key`,
		JSON.stringify(
			settlements
				.map(({ message, fence, at, outcome }) => ({
					...{ message, at_fence: fence, at, reply: replyLine(outcome.reply) },
				}))
				.toSorted(byMessage),
		),
	);
	const found = new Map(rows.map((row) => [row[0], row]));
	return settlements.map(({ message, fence, at, outcome: { reply } }) => {
		const row = found.get(message);
		if (row === undefined || row[1] !== fence) return null;
		// An outcome is recorded once.
		found.delete(message);
		const [, , id, number, submission, address] = row;
		return { id, number, submission, address, at, reply };
	});
}

function endSoftBounces(sql: Sql, address: EmailKey): void {
	sql.write(
		`UPDATE subscribers
		SET soft_bounces = 0, soft_bounced_since = NULL
		WHERE email_key = ? AND soft_bounces > 0`,
		address,
	);
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

function writeState(sql: Sql, row: LeasedRow, effect: OutcomeEffect): void {
	sql.write(
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

async function count(group: Group, row: LeasedRow, effect: OutcomeEffect, at: Micros): Promise<void> {
	const { sql, tally } = group;
	const address = row.to_key;
	if (effect.event !== null || effect.suppresses) sql.alone();
	if (effect.event !== null) {
		const bounce = { type: effect.event, at, link: null, machine: false, ...saidOf(effect.reply) };
		const message = { id: row.id, campaign: await campaignOf(group, row.submission_seq), to_key: address };
		const isFirst = await countEvent(sql, tally, message, bounce);
		if (isFirst && effect.event === 'SOFTBOUNCED') await softBounce(sql, address, at);
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

/** Leased messages by their fences, as a table for a statement. */
export const fenceColumns = { message: 'TEXT', at_fence: 'BIGINT' } as const;

/** The value that is bound for such a table. */
export function fencesAsJson(fences: readonly { message: Uuid; fence: number }[]): string {
	return JSON.stringify(
		fences.map(({ message, fence }) => ({ message, at_fence: fence })).toSorted(byMessage),
	);
}

/** The order in which rows of messages are locked. */
function byMessage(one: { message: Uuid }, other: { message: Uuid }): number {
	return one.message < other.message ? -1 : 1;
}

/**
 * Calls of a send API. A call cannot be taken back, so a message whose worker ended during one may have been sent. Each
 * in one transaction of the caller.
 */
export function createCalls(sql: Sql) {
	return {
		setCalling: async ({ fences, isCalling }) => {
			sql.write(
				`UPDATE messages
				SET called = ${isCalling ? 'fence' : 'NULL'}
				FROM ${sql.dialect.table(fenceColumns, 'held')}
				WHERE uuid = held.message AND fence = held.at_fence AND state = 'leased'`,
				fencesAsJson(fences),
			);
		},
		retryUncertain: async ({ campaign, isAgain, now }) => {
			const row = await sql.get<{ seq: number }>('SELECT seq FROM campaigns WHERE id = ?', campaign);
			if (row === undefined) return;
			if (isAgain) await queueUncertain(sql, row.seq, now);
			else leaveUncertain(sql, row.seq);
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
	if (changes > 0) sql.write('UPDATE campaigns SET has_open_work = 1 WHERE seq = ?', lane);
}

/** Uses messages_due. A message that waits after an attempt was to be sent again by a run that did not reach it. */
function leaveUncertain(sql: Sql, lane: number): void {
	sql.write(
		`UPDATE messages
		SET state = 'uncertain', wake_at = NULL
		WHERE lane = ? AND wake_at IS NOT NULL AND attempts > 0 AND state IN ('queued', 'deferred')`,
		lane,
	);
}
