/** The temporary webhooks of `webhooks listen --register`: made, removed, and found again when a run was killed. */
import { connect } from 'node:net';
import type { Api } from '../../../api/api.js';
import type { Webhook, WebhookType } from '../../../api/records.js';
import type { CommandContext } from '../../context.js';
import { explained } from '../../refusals.js';
import { orNull } from '../../resolve.js';
import { walk } from '../../walk.js';
import { urlHint } from './targets.js';

/** Tells these webhooks from those of people. */
const mark = 'mailctl-listen';
const marked = new RegExp(`^http://127\\.0\\.0\\.1:(\\d{1,5})/${mark}$`);

/** Where a temporary webhook leads that is given no URL; `receiverUrl` ends with a slash. */
export function temporaryUrl(receiverUrl: string): string {
	return `${receiverUrl}${mark}`;
}

/** One of each type; each is in `made` once it is there, also when a later one is refused. */
export async function register(
	cx: CommandContext,
	{ url, types, made }: { url: string; types: readonly WebhookType[]; made: Webhook[] },
): Promise<void> {
	const api = await cx.api();
	for (const type of types) {
		const creation = api.webhooks.create({ url, type });
		made.push(await explained(creation, { input: { url, type }, hint: await urlHint(cx) }));
	}
	const ids = made.map(({ id }) => id).join(', ');
	await cx.note(`registered ${made.length === 1 ? 'webhook' : 'webhooks'} ${ids}`);
}

/** A webhook that somebody deleted meanwhile is gone all the same. */
export async function unregister(cx: CommandContext, api: Api, made: readonly Webhook[]): Promise<void> {
	for (const { id } of made) {
		const removal = orNull(api.webhooks.delete(id).then(() => true));
		await removal.catch(() => cx.warn(`webhook ${id} is left: mailctl webhooks delete ${id}`));
	}
}

/**
 * Names what killed runs have left. Only names it: whether nobody listens is known of this machine alone, and the one
 * the webhooks mean may be another. `ownPort` is listened on by this run, so by no other.
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
	await cx.hint(`${which} left by a killed listen: mailctl webhooks delete ${left.join(' ')}`);
}

const probeMs = 500;

/** Whether somebody on this machine takes connections there; who does not answer in time might. */
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
