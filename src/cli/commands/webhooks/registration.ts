/** The temporary webhooks of `webhooks listen --register`: made, removed, and found again when a run was killed. */

import { connect } from 'node:net';
import type { Api } from '../../../api/api.js';
import { withoutSecrets } from '../../../api/quote.js';
import type { Webhook, WebhookType } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { maybeCreated } from '../../verbs/changing.js';
import { walk } from '../../verbs/listing.js';
import { explained } from '../../verbs/refusals.js';
import { orNull } from '../../verbs/resolve.js';
import { urlHint } from './targets.js';

/** Tells these webhooks from those of people. */
const mark = 'mailctl-listen';
const marked = new RegExp(`^http://127\\.0\\.0\\.1:(\\d{1,5})/${mark}$`);

/** Where a temporary webhook leads that is given no URL; `receiverUrl` ends with a slash. */
export function temporaryUrl(receiverUrl: string): string {
	return `${receiverUrl}${mark}`;
}

/** Creates a webhook of each type; `made` has those created, also when a later one is refused. */
export async function register(
	cx: CommandContext,
	{ url, types, made }: { url: string; types: readonly WebhookType[]; made: Webhook[] },
): Promise<void> {
	const api = await cx.api();
	for (const type of types) {
		const creation = api.webhooks.create({ url, type });
		const creating = explained(creation, { input: { url, type }, hint: await urlHint(cx) });
		made.push(await maybeCreated(creating, unclearWebhook({ url })));
	}
	const which = made.map(({ id, type }) => `${id} (${type})`).join(', ');
	await cx.note(`registered ${made.length === 1 ? 'webhook' : 'webhooks'} ${which}`);
}

/** Several may have one URL, so to create it again makes another one. */
export function unclearWebhook({ url }: { url: string }) {
	return {
		what: `the webhook to ${withoutSecrets(url)}`,
		look: mailctl('webhooks', 'list'),
		isUnique: false,
	};
}

/** A webhook that was deleted meanwhile is no error. */
export async function unregister(
	cx: Pick<CommandContext, 'warn'>,
	api: { webhooks: Pick<Api['webhooks'], 'delete'> },
	made: readonly Pick<Webhook, 'id'>[],
): Promise<void> {
	for (const { id } of made) {
		const removal = orNull(api.webhooks.delete(id).then(() => true));
		const command = mailctl('webhooks', 'delete', String(id));
		await removal.catch(() => cx.warn(`webhook ${id} is left`, command));
	}
}

/**
 * Names the webhooks left by killed runs. It deletes none: this machine alone can be checked for a listener, and
 * the webhooks may mean another. `ownPort` is listened on by this run, so by no other.
 */
export async function nameLeftovers(cx: CommandContext, ownPort: string): Promise<void> {
	const { webhooks } = await cx.api();
	const left: number[] = [];
	for await (const { id, url } of walk(webhooks, {}, { signal: cx.signal })) {
		const port = marked.exec(url)?.[1];
		if (port === undefined) continue;
		if (port === ownPort || !(await isListenedOn(Number(port)))) left.push(id);
	}
	if (left.length === 0) return;
	const which = left.length === 1 ? `webhook ${left[0]} seems` : `webhooks ${left.join(', ')} seem`;
	await cx.hint([`${which} left by a killed listen: `, mailctl('webhooks', 'delete', ...left.map(String))]);
}

const probeMs = 500;

/** Whether a program on this machine accepts connections there; without an answer in time it might. */
function isListenedOn(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const socket = connect({ port, host: '127.0.0.1', timeout: probeMs });
		const end = (isTaken: boolean) => {
			socket.destroy();
			resolve(isTaken);
		};
		socket.once('connect', () => end(true));
		socket.once('timeout', () => end(true));
		socket.once('error', () => end(false));
	});
}
