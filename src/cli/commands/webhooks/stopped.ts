/** Webhooks without further notifications: a mailctl server lists them, and a hint shows how to resume them. */

import type { StoppedWebhook } from '../../../api/deliveries.js';
import type { Webhook } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import type { Column } from '../../render/columns.js';
import type { Times } from '../../render/times.js';
import { counted } from '../../render/units.js';
import { orNull } from '../../verbs/resolve.js';

/** By the id of the webhook. */
export type Stopped = ReadonlyMap<number, StoppedWebhook>;

/** null: this deployment does not say. */
export async function readStopped(cx: CommandContext): Promise<Stopped | null> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	const stopped = ext.deliveries && (await orNull(ext.deliveries.stopped({ signal: cx.signal })));
	return stopped ? new Map(stopped.map((one) => [one.webhook_id, one])) : null;
}

/** Beside the wire's own columns: the record in JSON stays the service document's. */
export function stateColumn(stopped: Stopped): Column<Webhook> {
	return {
		key: 'state',
		header: 'STATE',
		wide: true,
		value: ({ id }) => (stopped.has(id) ? 'stopped' : 'active'),
	};
}

/** Prints nothing without stopped webhooks. */
export async function warnOfStopped(cx: CommandContext, found: readonly StoppedWebhook[]): Promise<void> {
	const [first, ...others] = found;
	if (first === undefined) return;
	const id = String(first.webhook_id);
	await cx.warn(
		others.length === 0 ? sentenceOf(first, cx.times) : sentenceOfAll(found),
		[mailctl('webhooks', 'replay', id, '--failed'), ' goes on with it'],
		[mailctl('webhooks', 'update', id, '--url', 'URL'), ' leads it elsewhere'],
	);
}

/** A stopped webhook gets no new notifications: only those due before are still available. */
function sentenceOf({ webhook_id, date_stopped, waiting }: StoppedWebhook, times: Times): string {
	const missed = `it misses what happens since ${times.moment(date_stopped)}${waitText(waiting)}`;
	return `webhook ${webhook_id} is stopped, its target answered 410: ${missed}`;
}

function sentenceOfAll(found: readonly StoppedWebhook[]): string {
	const ids = found.map(({ webhook_id }) => webhook_id).join(', ');
	const waiting = found.reduce((sum, one) => sum + one.waiting, 0);
	return `webhooks ${ids} are stopped, their targets answered 410: they miss what happens${waitText(waiting)}`;
}

function waitText(waiting: number): string {
	if (waiting === 0) return '';
	return `; ${counted(waiting, 'notification')} from before ${waiting === 1 ? 'waits' : 'wait'}`;
}
