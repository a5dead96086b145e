/** A webhook as its verbs find it, show it without its secrets, and say that it is stopped. */

import type { StoppedWebhook } from '../../../api/deliveries.js';
import type { WebhookInput } from '../../../api/inputs.js';
import { withoutPassword, withoutSecrets } from '../../../api/quote.js';
import type { Webhook } from '../../../api/records.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type Column, type Columns, column } from '../../render/columns.js';
import { counted } from '../../render/units.js';
import type { Refused } from '../../verbs/refusals.js';
import { isRecordId, missing, orNull } from '../../verbs/resolve.js';

export const hookArg = {
	name: 'id',
	summary: 'the id of a webhook',
	of: 'webhook',
	ask: 'Which webhook:',
} as const;

export const hookColumns: Columns<Webhook> = [
	column('id', 'ID', { align: 'right' }),
	column('type', 'TYPE'),
	column('url', 'URL'),
	column('is_auth_enabled', 'AUTH'),
	column('login', 'LOGIN', { wide: true }),
	column('date_created', 'CREATED', { time: 'text', wide: true }),
];

/** Exit 3 for an unknown one. */
export async function findWebhook(cx: CommandContext, text: string): Promise<Webhook> {
	const { webhooks } = await cx.api();
	const hook = await orNull(webhooks.get(idOf(text), { signal: cx.signal }));
	if (hook === null) throw missing('webhook', text, mailctl('webhooks', 'list'));
	return hook;
}

/** Throws `UsageError`. */
export function idOf(text: string): number {
	if (isRecordId(text)) return Number(text);
	throw new UsageError(`"${text}" is no id of a webhook`, { hint: mailctl('webhooks', 'list') });
}

export type Stopped = ReadonlyMap<number, StoppedWebhook>;

/** null: this deployment does not say. */
export async function readStopped(cx: CommandContext): Promise<Stopped | null> {
	const { deliveries } = (await (await cx.api()).capabilities()).ext;
	const stopped = deliveries && (await orNull(deliveries.stopped({ signal: cx.signal })));
	return stopped ? new Map(stopped.map((one) => [one.webhook_id, one])) : null;
}

/** Beside the wire's own columns: the record in JSON stays the service document's. */
export function stateColumn(stopped: Stopped): Column<Webhook> {
	const value = ({ id }: Webhook) => (stopped.has(id) ? 'stopped' : 'active');
	return { key: 'state', header: 'STATE', wide: true, value };
}

/** A stopped webhook gets no new notifications: only those due before are still available. */
export async function warnOfStopped(cx: CommandContext, found: readonly StoppedWebhook[]): Promise<void> {
	for (const { webhook_id, date_stopped, waiting } of found) {
		const id = String(webhook_id);
		const rest =
			waiting === 0 ? '' : `; from before ${counted(waiting, 'notification waits', 'notifications wait')}`;
		await cx.warn(
			`webhook ${id} is stopped, its target answered 410: it misses what happens since ${cx.times.moment(date_stopped)}${rest}`,
			[mailctl('webhooks', 'replay', id, '--failed'), ' goes on with it'],
			[mailctl('webhooks', 'update', id, '--url', 'URL'), ' leads it elsewhere'],
		);
	}
}

export async function urlHint(cx: CommandContext): Promise<(refused: Refused) => Hint | undefined> {
	const allow = await allowPrivateTargets(cx);
	return ({ path, code }) => {
		if (path !== 'url') return undefined;
		if (code === 'private_target') return [allow, ' allows them'];
		return 'a URL of http or https: https://hooks.example.com/in';
	};
}

/** The command that lets notifications go to private addresses, on the database that this call is about. */
export async function allowPrivateTargets(cx: CommandContext): Promise<Hint> {
	const words = ['engine', 'settings', 'set', 'allow_private_webhooks', 'true'];
	if ((await cx.connection()).local !== null) return mailctl(...words);
	return [mailctl('--db', 'DATABASE', ...words), ', on the database that the deployment serves,'];
}

/** Several may have one URL, so to create it again makes another one. */
export function unclearWebhook({ url }: { url: string }) {
	return {
		what: `the webhook to ${withoutSecrets(url)}`,
		look: mailctl('webhooks', 'list'),
		isUnique: false,
	};
}

/** The password is null, which the type of the wire does not have. */
export function mask(cx: CommandContext, hook: Webhook): Webhook {
	return { ...hook, url: maskUrl(cx, hook.url), password: null } as object as Webhook;
}

export function maskInput(cx: CommandContext, { url, ...input }: Partial<WebhookInput>): object {
	return {
		...(url !== undefined && { url: maskUrl(cx, url) }),
		...input,
		...('password' in input && { password: null }),
	};
}

/** A password is shown nowhere; what else in a URL is a secret, to programs, which know a webhook by its URL. */
function maskUrl({ out }: CommandContext, url: string): string {
	const isForPeople = ['table', 'wide', 'markdown'].includes(out.format);
	return isForPeople ? withoutSecrets(url) : withoutPassword(url);
}

export function hasSecret(cx: CommandContext, { url, password }: Webhook): boolean {
	return password !== '' || maskUrl(cx, url) !== url;
}
