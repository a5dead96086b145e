import type { Webhooks } from '../api/api.js';
import { formatDateTime, type Micros, microsPerDay, parseDateTime } from '../api/datetime.js';
import {
	type Deliveries,
	type DeliveryFilter,
	deliveryStates,
	type ReplayRequest,
	type SigningSecret,
} from '../api/deliveries.js';
import { type FieldErrors, invalid } from '../api/errors.js';
import { webhookFields } from '../api/inputs.js';
import { refusal } from '../api/refusals.js';
import { notAChoice, texts } from '../api/schema/texts.js';
import type { Parsed } from '../api/schema.js';
import { formatSecret } from '../api/webhook-calls.js';
import type { StoredKey } from '../store/maintenance.js';
import type { ReplayDeliveries } from '../store/queue.js';
import { checkedBeside, crud, type EngineContext, found, readPage, refuse } from './context.js';

export function createWebhooks(context: EngineContext): Webhooks {
	const { store, clock, ports } = context;
	const { reads, writes } = store;
	const fieldErrors = async ({ url }: { url?: string | undefined }): Promise<FieldErrors> => {
		const reason = url === undefined ? null : await ports.checkTarget(url);
		return reason === null ? {} : { url: [refusal(reason)] };
	};
	const checkedTarget = async <T extends { url?: string }>(parsed: Parsed<T>): Promise<T> => {
		const input = await checkedBeside(parsed, fieldErrors);
		const errors = await fieldErrors(input);
		if (Object.keys(errors).length > 0) throw invalid(errors);
		return input;
	};
	return {
		...crud(context, {
			path: '/webhooks/',
			page: reads.pageWebhooks,
			get: (id: number) => reads.getWebhook({ id }),
			create: async (body) => {
				const input = await checkedTarget(webhookFields.parse(body, 'create'));
				return writes.createWebhook({ input, now: clock.now() });
			},
			change: async (id, body, mode) =>
				writes.patchWebhook({ id, patch: await checkedTarget(webhookFields.parse(body, mode)) }),
			delete: (id) => writes.deleteWebhook({ id }),
		}),
		test: async (id) => ports.notifyTest(found(await reads.getWebhook({ id }))),
	};
}

const overlap: Micros = microsPerDay;
const replaySlice = 1_000;

export function createDeliveries(context: EngineContext): Deliveries {
	const { store, clock, newSecret } = context;
	const { reads, writes } = store;
	const existing = async (id: number) => found(await reads.getWebhook({ id }));
	// Ids are random, so that two databases never use the same id for different secrets.
	const fresh = () => {
		const secret = newSecret();
		return { id: Buffer.from(secret, 'base64url').readUInt32BE(), secret };
	};
	return {
		page: async (webhook_id, request) => {
			await existing(webhook_id);
			return readPage(context, request, `/ext/webhooks/${webhook_id}/deliveries/`, (at, filter) =>
				reads.pageDeliveries({
					...{ ...at, webhook_id, ...conditionsOf(filter) },
					...(filter.ordering !== undefined && { ordering: filter.ordering }),
				}),
			);
		},
		get: async (webhook_id, id) => found(await reads.getDelivery({ webhook_id, id })),
		replay: async (webhook_id, what) => {
			await existing(webhook_id);
			assertSaid(what);
			const { since } = conditionsOf(what);
			const deliveries = what.deliveries ?? null;
			const failed = what.failed ?? false;
			return replayAll(context, { webhook_id, deliveries, failed, since, now: clock.now() });
		},
		stopped: async () =>
			(await reads.stoppedWebhooks()).map(({ id, stopped_at, waiting }) => ({
				webhook_id: id,
				date_stopped: formatDateTime(stopped_at),
				waiting,
			})),
		secrets: async () =>
			(await writes.ensureWebhookSecret({ fresh: fresh(), now: clock.now() })).map(toSecret),
		rotateSecret: async () => {
			const now = clock.now();
			// Create a secret only if there is none, because receivers may know the existing one.
			await writes.ensureWebhookSecret({ fresh: fresh(), now });
			const rotated = await writes.rotateWebhookSecret({ fresh: fresh(), now, retire_at: now + overlap });
			return rotated.map(toSecret);
		},
	};
}

function conditionsOf({ state, since }: DeliveryFilter) {
	if (state !== undefined && !deliveryStates.includes(state))
		refuse('state', notAChoice(state), 'invalid_choice');
	const since_at = since === undefined ? null : parseDateTime(since);
	if (since !== undefined && since_at === null) refuse('since', texts.datetime);
	return { state: state ?? null, since: since_at };
}

/** Without this check, an empty body would replay a month of webhook deliveries. */
function assertSaid({ deliveries, failed, since, all }: ReplayRequest): void {
	if (deliveries !== undefined || failed === true || since !== undefined || all === true) return;
	const message = 'Say what to replay: "deliveries", "failed", "since" or "all".';
	refuse('non_field_errors', message, 'required');
}

async function replayAll(
	{ store }: EngineContext,
	what: Omit<ReplayDeliveries, 'after' | 'limit'>,
): Promise<number> {
	let count = 0;
	for (let after: number | null = 0; after !== null; ) {
		const replayed = await store.writes.replayDeliveries({ ...what, after, limit: replaySlice });
		if (replayed.kind === 'refused') throw refusedReplay(replayed);
		count += replayed.count;
		after = replayed.last;
	}
	return count;
}

function refusedReplay({ delivery, why }: { delivery: string; why: 'unknown' | 'sending' }): Error {
	const message =
		why === 'unknown'
			? `This webhook has no delivery ${delivery}.`
			: `Delivery ${delivery} is being sent at this moment.`;
	return invalid({ deliveries: [{ code: why === 'unknown' ? 'does_not_exist' : 'invalid', message }] });
}

function toSecret({ secret, created_at, retires_at }: StoredKey): SigningSecret {
	return {
		secret: formatSecret(secret),
		date_created: formatDateTime(created_at),
		date_retired: retires_at === null ? null : formatDateTime(retires_at),
	};
}
