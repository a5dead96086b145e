/** What the verbs of webhooks share: finding one, and what to do about a refused URL. */
import type { Webhook } from '../../api/records.js';
import type { CommandContext } from '../context.js';
import type { Refused } from '../refusals.js';
import { idOf } from './webhooks-test.js';

/** The webhook of that id; exit 3 when there is none. */
export async function findWebhook(cx: CommandContext, text: string): Promise<Webhook> {
	const { missing, orNull } = await import('../resolve.js');
	const api = await cx.api();
	const hook = await orNull(api.webhooks.get(idOf(text), { signal: cx.signal }));
	if (hook === null) throw missing('webhook', text, 'mailctl webhooks list');
	return hook;
}

/** What to do about a URL that the service does not take. */
export function urlHint({ path, message }: Refused): string | undefined {
	if (path !== 'url') return undefined;
	if (/private|loopback|reserved/.test(message))
		return 'mailctl engine settings set allow_private_webhooks true allows them on this database';
	return 'a URL of http or https: https://hooks.example.com/in';
}
