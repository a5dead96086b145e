import { need } from '../../../api/capabilities.js';
import {
	type Deliveries,
	type DeliveryFilter,
	deliveryStates,
	type ReplayRequest,
	type WebhookDelivery,
	type WebhookDeliveryDetail,
} from '../../../api/deliveries.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { given } from '../../frame/values.js';
import { answers, type Columns, column } from '../../render/columns.js';
import { change } from '../../verbs/changing.js';
import {
	beginningOf,
	type Collection,
	listRows,
	newestFirst,
	pageOptions,
	walk,
} from '../../verbs/listing.js';
import { isUuid, missing, orNull } from '../../verbs/resolve.js';
import { findWebhook, hookArg } from './record.js';

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
	column('delivery_attempts', 'DELIVERY ATTEMPTS', {
		wide: true,
		value: ({ delivery_attempts }) => delivery_attempts?.map((one) => attemptLine(one, one.at)).join('; '),
		lines: ({ delivery_attempts = [] }, times) =>
			delivery_attempts.map((one) => attemptLine(one, times.text(one.at))),
	}),
];

type Attempt = WebhookDeliveryDetail['delivery_attempts'][number];

function attemptLine({ number, status, error, duration_ms }: Attempt, at: string): string {
	return `${number}. ${at} ${status ?? error} in ${duration_ms} ms`;
}

export const deliveries = command({
	name: 'deliveries',
	summary: 'show the notifications of a webhook',
	description:
		'Shows the last 30 days, newest first. Given the id of a delivery, shows its body, every attempt and the last answer. ' +
		'When the target answers 410, the webhook stops. "webhooks update" or "webhooks replay" starts it again.',
	args: [hookArg, { name: 'delivery', summary: 'the UUID of a delivery (its webhook-id)', optional: true }],
	options: {
		state: { kind: 'choice', choices: deliveryStates, summary: 'filter by state' },
		since: { kind: 'date', summary: 'show deliveries created since this day' },
		...pageOptions,
	},
	examples: [
		'mailctl webhooks deliveries 3 --state failed',
		'mailctl webhooks deliveries 3 --since 7d -o wide',
	],
	output: 'an array of deliveries; one delivery if its id is given',
	exits: [3],
	columns,
	async run(cx, { args, options }) {
		const log = await need(await cx.api(), 'deliveries');
		const { id } = await findWebhook(cx, args.id);
		if (args.delivery !== undefined) {
			return cx.out.record(await findDelivery(cx, log, id, deliveryId(args.delivery)), columns);
		}
		const { state, since } = options;
		const { how, ordering } = newestFirst(options);
		const filter = { ordering, ...given({ state, since: since && beginningOf(cx, since) }) };
		const ofHook: Collection<DeliveryFilter, WebhookDelivery> = {
			page: (request, call) => log.page(id, request, call),
		};
		const rows = (limit: number | undefined) => walk(ofHook, filter, { signal: cx.signal, limit });
		await listRows(cx, how, { columns, rows });
	},
});

export const replay = command({
	name: 'replay',
	summary: 'send notifications again',
	description:
		'Each delivery keeps its id, so that the receiver recognizes a repeat. A finished or stopped delivery starts again ' +
		'from its first attempt. To send a pending delivery at once, give its id. "serve" or "worker" sends the deliveries. This command also starts a stopped webhook again.',
	args: [hookArg, { name: 'delivery', summary: 'UUIDs of deliveries', optional: true, many: true }],
	options: {
		failed: { kind: 'flag', summary: 'replay all failed or stopped deliveries' },
		since: {
			kind: 'date',
			summary: 'replay deliveries created since this day; with --failed, only failed or stopped ones',
		},
	},
	examples: ['mailctl webhooks replay 3 --failed', 'mailctl webhooks replay 3 --since 7d'],
	...answers({ replayed: 'N' }),
	exits: [3, 5],
	writes: true,
	async run(cx, { args, options: { failed, since } }) {
		const named = [...new Set(args.delivery.map(deliveryId))];
		if (named.length === 0 && !failed && since === undefined)
			throw new UsageError('nothing to replay: give ids of deliveries, --failed or --since');
		if (named.length > 0 && (failed || since !== undefined))
			throw new UsageError('use either ids of deliveries, or --failed and --since');
		const log = await need(await cx.api(), 'deliveries');
		const { id } = await findWebhook(cx, args.id);
		for (const uuid of named) await findDelivery(cx, log, id, uuid);
		const input: ReplayRequest = {
			...(named.length > 0 && { deliveries: named }),
			...(failed && { failed }),
			...given({ since: since && beginningOf(cx, since) }),
		};
		const replayed = await change(cx, {
			what: `replay deliveries of webhook ${id}`,
			plan: { replay: id, with: input },
			input,
			make: () => log.replay(id, input, { signal: cx.signal }),
		});
		if (replayed === null) return;
		const are = replayed === 1 ? 'delivery is' : 'deliveries are';
		await cx.out.document({ replayed }, `${replayed} ${are} due now`);
	},
});

async function findDelivery(cx: CommandContext, log: Deliveries, webhookId: number, id: string) {
	const found = await orNull(log.get(webhookId, id, { signal: cx.signal }));
	if (found === null) throw missing('delivery', id, mailctl('webhooks', 'deliveries', String(webhookId)));
	return found;
}

function deliveryId(text: string): string {
	if (isUuid(text)) return text.toLowerCase();
	const hint = mailctl('webhooks', 'deliveries', 'ID');
	throw new UsageError(`"${text}" is not a UUID of a delivery`, { hint });
}
