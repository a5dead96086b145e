/** Shared by the verbs of webhooks: finding one. */

import type { Webhook } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { idOf } from './test.js';

/** The webhook of that id; exit 3 for an unknown one. */
export async function findWebhook(cx: CommandContext, text: string): Promise<Webhook> {
	const { missing, orNull } = await import('../../verbs/resolve.js');
	const api = await cx.api();
	const hook = await orNull(api.webhooks.get(idOf(text), { signal: cx.signal }));
	if (hook === null) throw missing('webhook', text, mailctl('webhooks', 'list'));
	return hook;
}
