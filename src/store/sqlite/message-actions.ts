/** What a person does to one message: cancels it, or has it tried now. */
import type { Micros } from '../../api/datetime.js';
import type { MessageState } from '../../api/records.js';
import { erasedAddress } from '../../engine/rules/erasure.js';
import { ruleOf } from '../../engine/rules/message-actions.js';
import { seenState } from './messages.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';
import { cancelMessage } from './waiting.js';

interface ActedOn {
	id: number;
	lane: number;
	to_key: string;
	state: MessageState;
	mailing_state: string | null;
}

/** Looks and changes in one transaction of the caller, by the state that is seen. */
export function createMessageActions(sql: Sql): Pick<Operations, 'changeMessage'> {
	return {
		changeMessage: ({ id, action, now }) => {
			const message = sql.get<ActedOn>(
				`SELECT m.id, m.lane, m.to_key, ${seenState} AS state, g.state AS mailing_state
				FROM messages m
				JOIN submissions s ON s.seq = m.submission_seq
				LEFT JOIN mailings g ON g.seq = s.mailing_seq
				WHERE m.uuid = ?`,
				id,
			);
			if (message === undefined) return { kind: 'not_found' };
			const rule = ruleOf(action, message.state);
			if (rule.kind === 'refused') return rule;
			if (action === 'cancel') cancelMessage(sql, message.id, null);
			else if (message.to_key === erasedAddress)
				return { kind: 'refused', why: 'went to somebody who was erased' };
			else if (message.mailing_state === 'canceled')
				return { kind: 'refused', why: 'is of a mailing that was canceled' };
			else makeDue(sql, message, { state: rule.state, now });
			return { kind: 'changed' };
		},
	};
}

/** One that is due already keeps its place. */
function makeDue(
	sql: Sql,
	{ id, lane }: ActedOn,
	{ state, now }: { state: MessageState; now: Micros },
): void {
	sql.run(
		`UPDATE messages
		SET state = ?, due_at = min(due_at, ?), wake_at = min(coalesce(wake_at, ?), ?)
		WHERE id = ?`,
		state,
		now,
		now,
		now,
		id,
	);
	// A mailing that was through has left the index of those that a lease looks at.
	if (lane > 0) sql.run('UPDATE mailings SET has_open_work = 1 WHERE seq = ?', lane);
}
