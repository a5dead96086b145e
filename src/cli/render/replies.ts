import type { CommonReply } from '../../api/campaigns.js';
import { clean } from './clean.js';
import { numberText } from './units.js';

export function replyText({ state, reply, count }: CommonReply): string {
	return `${numberText(count)} ${state}: ${clean(reply)}`;
}
