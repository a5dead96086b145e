/** What the verbs of webhooks share: finding one. */
import type { Webhook } from '../../../api/records.js';
import type { CommandContext } from '../../context.js';
import { idOf } from './test.js';

/** The webhook of that id; exit 3 when there is none. */
export async function findWebhook(cx: CommandContext, text: string): Promise<Webhook> {
	const { missing, orNull } = await import('../../resolve.js');
	const api = await cx.api();
	const hook = await orNull(api.webhooks.get(idOf(text), { signal: cx.signal }));
	if (hook === null) throw missing('webhook', text, 'mailctl webhooks list');
	return hook;
}
