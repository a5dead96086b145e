/**
 * Cancels and retries messages. Canceling a leased message clears its `lease_owner`. The worker then returns the
 * message, unless the worker has already sent it.
 */
import type { Micros } from '../../../api/datetime.js';
import type { MessageState, Uuid } from '../../../api/records.js';
import { ruleOf } from '../../../engine/rules/outcomes.js';
import { erasedAddress } from '../../../engine/rules/subscribers.js';
import type { Operations } from '../../operations.js';
import { forgetCompositions } from '../attempts.js';
import { seenRows, seenState } from '../campaigns/rows.js';
import { createTally } from '../figures/tally.js';
import { joinedMessages, type Sql } from '../sql.js';

interface ActedOn {
	id: number;
	lane: number;
	to_key: string;
	state: MessageState;
	campaign_state: string | null;
	dropped_at: Micros | null;
	sent_at: Micros | null;
	tag: string | null;
	campaign: Uuid | null;
}

export function createMessageActions(sql: Sql) {
	return {
		changeMessage: async ({ id, action, now, ...seen }) => {
			const own = seenRows('s.owner', seen);
			const message = await sql.get<ActedOn>(
				`SELECT m.id, m.lane, m.to_key, ${seenState} AS state, g.state AS campaign_state, c.dropped_at,
					m.sent_at, s.tag, s.campaign
				FROM ${joinedMessages}
				JOIN contents c ON c.sha256 = s.content_sha256
				WHERE m.uuid = ? AND ${own.where}`,
				[id, ...own.values],
			);
			if (message === undefined) return { kind: 'not_found' };
			const rule = ruleOf(action, message.state);
			if (rule.kind === 'refused') return rule;
			if (action === 'cancel') cancelMessage(sql, message.id, null);
			else {
				const why = whyFinal(message);
				if (why !== null) return { kind: 'refused', why };
				await forgetSending(sql, message);
				makeDue(sql, message, rule.state, now);
			}
			return { kind: 'changed' };
		},
	} satisfies Partial<Operations>;
}

function whyFinal({ to_key, campaign_state, dropped_at }: ActedOn): string | null {
	if (to_key === erasedAddress) return 'went to a person who was erased';
	if (campaign_state === 'canceled') return 'belongs to a canceled campaign';
	return dropped_at === null ? null : 'has no text any more: keep_bodies deleted it';
}

/** Removes the earlier sending from the figures, so that the figures count a retried message once. */
async function forgetSending(sql: Sql, { id, sent_at, tag, campaign }: ActedOn): Promise<void> {
	if (sent_at === null) return;
	const bounced = await sql.get<{ soft: Micros | null; hard: Micros | null }>(
		`SELECT min(CASE type WHEN 'SOFTBOUNCED' THEN first_at END) AS soft,
			min(CASE type WHEN 'HARDBOUNCED' THEN first_at END) AS hard
		FROM message_firsts
		WHERE message_id = ?`,
		[id],
	);
	const before = { tag, campaign, sent: sent_at, soft: null, hard: null, ...bounced };
	const tally = await createTally(sql);
	tally.add({ at: sent_at, campaign, type: 'SENT', audience: 'all', by: -1 });
	tally.moveBounced(before, { ...before, sent: null });
	tally.write();
	sql.write('UPDATE messages SET sent_at = NULL WHERE id = ?', [id]);
}

function makeDue(sql: Sql, { id, lane }: ActedOn, state: MessageState, now: Micros): void {
	const { least } = sql.dialect;
	sql.write(
		`UPDATE messages
		SET state = ?, due_at = ${least}(due_at, ?), wake_at = ${least}(coalesce(wake_at, ?), ?)
		WHERE id = ?`,
		[state, now, now, now, id],
	);
	forgetCompositions(sql, { id });
	if (lane > 0) sql.write('UPDATE campaigns SET has_open_work = 1 WHERE seq = ?', [lane]);
}

const cancelWaiting = `UPDATE messages
	SET lease_owner = NULL,
		state = CASE WHEN state = 'leased' AND wake_at > ? THEN state ELSE 'canceled' END,
		wake_at = CASE WHEN state = 'leased' AND wake_at > ? THEN wake_at END`;
const cancelDeleted = `${cancelWaiting}, last_reply = 'not sent: the subscriber was deleted'`;
const isBulk = `submission_seq IN (SELECT seq FROM submissions WHERE type = 'BULK')`;

/** Reads the whole queue, because an index would slow down every send. */
export function cancelWaitingOfList(sql: Sql, list_id: number): void {
	const cancel = `${cancelDeleted} WHERE wake_at IS NOT NULL AND list_id = ? AND +${isBulk}`;
	sql.write(cancel, [0, 0, list_id]);
}

export function cancelWaitingOfSubscriber(sql: Sql, person: { id: number; email_key: string }): void {
	const cancel = `${cancelDeleted}
		WHERE to_key = ? AND wake_at IS NOT NULL AND subscriber_id = ? AND +${isBulk}`;
	sql.write(cancel, [0, 0, person.email_key, person.id]);
}

export function cancelUnlessSent(sql: Sql, ids: readonly number[], now: Micros): void {
	if (ids.length === 0) return;
	const cancel = `${cancelWaiting} WHERE ${sql.dialect.oneOf('id')} AND wake_at IS NOT NULL`;
	sql.write(cancel, [now, now, JSON.stringify(ids)]);
}

/** Cancels messages whose lease has ended, because no worker will return them. */
export function cancelLost(sql: Sql, lane: number, now: Micros): void {
	// Uses the index messages_due (lane, wake_at).
	const isLost = "lane = ? AND wake_at IS NOT NULL AND wake_at <= ? AND state = 'leased'";
	sql.write(`${cancelWaiting} WHERE ${isLost}`, [now, now, lane, now]);
}

export function cancelMessage(sql: Sql, id: number, why: string | null): void {
	sql.write(
		`UPDATE messages
		SET state = 'canceled', wake_at = NULL, lease_owner = NULL, last_reply = coalesce(?, last_reply)
		WHERE id = ?`,
		[why, id],
	);
}
