/** `mailctl webhooks deliveries`: the notifications of a webhook, and their outcomes. */

import { need } from '../../../api/capabilities.js';
import {
	type Deliveries,
	type DeliveryFilter,
	deliveryStates,
	type WebhookDelivery,
	type WebhookDeliveryDetail,
} from '../../../api/deliveries.js';
import type { Uuid } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type Columns, column } from '../../render/columns.js';
import {
	beginningOf,
	listOptions,
	listRows,
	newestFirst,
	sayWhatIsLeftOut,
	walk,
} from '../../verbs/listing.js';
import { isUuid, missing, orNull } from '../../verbs/resolve.js';
import { findWebhook } from './find.js';
import { readStopped, warnOfStopped } from './stopped.js';

/** One delivery has more to it than a row of the list. */
type Shown = WebhookDelivery & Partial<WebhookDeliveryDetail>;

const columns: Columns<Shown> = [
	column('id', 'ID', { isName: true, isKept: 'id' }),
	column('type', 'TYPE'),
	column('state', 'STATE'),
	column('attempts', 'ATTEMPTS', { isOptional: true, align: 'right' }),
	column('last_status', 'STATUS', { isOptional: true, align: 'right' }),
	column('date_created', 'CREATED', { time: 'recent' }),
	column('due_at', 'DUE', { isOptional: true, time: 'recent' }),
	column('last_error', 'ERROR', { wide: true }),
	column('answer_excerpt', 'ANSWER', { wide: true }),
	column('message_id', 'MESSAGE', { wide: true }),
	column('date_attempted', 'ATTEMPTED', { time: 'text', wide: true }),
	column('date_finished', 'FINISHED', { time: 'text', wide: true }),
	column('payload', 'PAYLOAD', { wide: true }),
	{
		key: 'delivery_attempts',
		header: 'DELIVERY ATTEMPTS',
		wide: true,
		value: ({ delivery_attempts }: Shown) =>
			delivery_attempts?.map((one) => attemptLine(one, one.at)).join('; '),
		lines: ({ delivery_attempts = [] }: Shown, times) =>
			delivery_attempts.map((one) => attemptLine(one, times.text(one.at))),
	},
];

export const deliveries = command({
	name: 'deliveries',
	summary: 'what became of the notifications of a webhook',
	description:
		'The log of the last 30 days, newest first; with the id of a delivery, that one with its body, every attempt and ' +
		'the whole of the last answer. "stopped" waits because the target answered 410: change the webhook, or replay.',
	args: [
		{ name: 'id', summary: 'the id of a webhook', of: 'webhook', ask: 'Which webhook:' },
		{ name: 'delivery', summary: 'the UUID of one delivery (its webhook-id)', optional: true },
	],
	options: {
		state: { kind: 'choice', choices: deliveryStates, summary: 'only those in this state' },
		since: { kind: 'date', summary: 'only those made on this day or later' },
		sort: listOptions.sort,
		limit: listOptions.limit,
		all: listOptions.all,
	},
	examples: [
		'mailctl webhooks deliveries 3 --state failed',
		'mailctl webhooks deliveries 3 --since 7d -o wide',
	],
	output: 'an array of deliveries; one delivery when it is named',
	exits: [3],
	columns,
	async run(cx, { args, options }) {
		const log = await need(await cx.api(), 'deliveries');
		const { id } = await findWebhook(cx, args.id);
		if (args.delivery !== undefined) {
			const found = await findDelivery(cx, log, { webhookId: id, id: deliveryId(args.delivery) });
			await cx.out.record(found, columns);
			return sayWhatIsLeftOut(cx, 'its body, every attempt and the last answer');
		}
		const { state, since } = options;
		const { how, ordering } = newestFirst(options);
		const filter: DeliveryFilter = {
			ordering,
			...(state !== undefined && { state }),
			...(since !== undefined && { since: beginningOf(cx, since) }),
		};
		const ofHook: Parameters<typeof walk<DeliveryFilter, WebhookDelivery>>[0] = {
			page: (request, call) => log.page(id, request, call),
		};
		await listRows(cx, how, {
			columns,
			rows: (most) => walk(ofHook, filter, { signal: cx.signal, limit: most }),
		});
		const stopped = (await readStopped(cx))?.get(id);
		if (stopped !== undefined) await warnOfStopped(cx, [stopped]);
	},
});

/** The delivery; exit 3 when the webhook has no such one. */
export async function findDelivery(
	cx: CommandContext,
	log: Deliveries,
	{ webhookId, id }: { webhookId: number; id: Uuid },
): Promise<WebhookDeliveryDetail> {
	const found = await orNull(log.get(webhookId, id, { signal: cx.signal }));
	if (found === null) throw missing('delivery', id, mailctl('webhooks', 'deliveries', String(webhookId)));
	return found;
}

/** A UUID in lower case. Throws `UsageError`. */
export function deliveryId(text: string): string {
	if (!isUuid(text))
		throw new UsageError(`"${text}" is no UUID of a delivery`, {
			hint: mailctl('webhooks', 'deliveries', 'ID'),
		});
	return text.toLowerCase();
}

function attemptLine(
	{ number, status, error, duration_ms }: WebhookDeliveryDetail['delivery_attempts'][number],
	at: string,
): string {
	return `${number}. ${at} ${status ?? error} in ${duration_ms} ms`;
}
