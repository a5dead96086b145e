/** What a person may do to a message, by its state: the part of the state table that no worker walks. */
import type { MessageState } from '../../api/records.js';

/** `cancel`: it is not sent any more. `retry`: it is due now. */
export type Action = 'cancel' | 'retry';

/** `to` may be the state it has: what was wanted is so already, or only its time changes. */
export type ActionRule = { kind: 'to'; state: MessageState } | { kind: 'refused'; why: string };

const inHands = refused('is in a worker’s hands at the moment');

/**
 * Only `uncertain` of the final states is left again, and only by hand: nobody but a person can find out whether it
 * arrived. What failed or bounced was refused by a server, and is counted so: who wants it sent sends it anew.
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
		staged: refused('waits for the release of its mailing'),
		leased: inHands,
		sent: refused('is sent'),
		bounced: refused('has bounced'),
		failed: refused('has failed for good'),
		canceled: refused('was canceled'),
	},
};

/** Pure. `from` is the state as it is seen, which for a mailing’s message its mailing may decide. */
export function ruleOf(action: Action, from: MessageState): ActionRule {
	return rules[action][from];
}

function to(state: MessageState): ActionRule {
	return { kind: 'to', state };
}

function refused(why: string): ActionRule {
	return { kind: 'refused', why };
}
