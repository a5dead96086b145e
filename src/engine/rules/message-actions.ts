/** Actions of a person on a message, by its state: the transitions of the state table that no worker makes. */
import type { MessageState } from '../../api/records.js';

/** `cancel`: it is not sent any more. `retry`: it is due now. */
export type Action = 'cancel' | 'retry';

/** `to` may be the current state: the action is done already, or only the time changes. */
export type ActionRule = { kind: 'to'; state: MessageState } | { kind: 'refused'; why: string };

const inHands = refused('is in a worker’s hands at the moment');

/**
 * `uncertain` and `failed` are the final states that can be left, and only by hand: only a person can find out whether a
 * message arrived, or that the cause of a refusal is mended. A bounced one went to a bad address.
 */
const rules: Readonly<Record<Action, Readonly<Record<MessageState, ActionRule>>>> = {
	cancel: {
		staged: to('canceled'),
		queued: to('canceled'),
		deferred: to('canceled'),
		canceled: to('canceled'),
		leased: inHands,
		sent: refused('is sent'),
		bounced: refused('has bounced'),
		failed: refused('has failed'),
		uncertain: refused('may have been sent already'),
	},
	retry: {
		uncertain: to('queued'),
		queued: to('queued'),
		deferred: to('deferred'),
		staged: refused('waits for the release of its campaign'),
		leased: inHands,
		sent: refused('is sent'),
		bounced: refused('has bounced'),
		failed: to('queued'),
		canceled: refused('was canceled'),
	},
};

/** Pure. `from` is the visible state, which the campaign of a message may determine. */
export function ruleOf(action: Action, from: MessageState): ActionRule {
	return rules[action][from];
}

function to(state: MessageState): ActionRule {
	return { kind: 'to', state };
}

function refused(why: string): ActionRule {
	return { kind: 'refused', why };
}
