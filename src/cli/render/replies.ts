/** Shows the commonest replies to people. */
import type { CommonReply } from '../../api/campaigns.js';
import { clean } from './clean.js';
import { numberText } from './units.js';

/** `200 deferred: 553 5.7.1 Sender address rejected`. */
export function replyText({ state, reply, count }: CommonReply): string {
	return `${numberText(count)} ${state}: ${clean(reply)}`;
}
