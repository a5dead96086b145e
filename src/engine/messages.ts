import { emailKey } from '../api/address.js';
import type { Call } from '../api/api.js';
import type { MessageFilter, Messages } from '../api/capabilities.js';
import { formatDateTime, type Micros, parseDateTime } from '../api/datetime.js';
import { type ApiError, invalid, notFound } from '../api/errors.js';
import type { SendRequest } from '../api/inputs.js';
import { sendFields } from '../api/messages.js';
import { heldReason } from '../api/pauses.js';
import type { MessageHold, SendResult, Uuid } from '../api/records.js';
import { texts } from '../api/schema/texts.js';
import type { LimitHold, QueuePause } from '../store/queue.js';
import type { MessagePlace } from '../store/store.js';
import { idempotencyKey, keyConflict, refusalBeside, resolveContent, submissionOf } from './contents.js';
import { assertWanted, type EngineContext, found, readPage, refuse, seenBy } from './context.js';
import { readDeleted } from './people.js';
import type { MessageAction } from './rules/outcomes.js';

/** Service document, "Send a message". */
export function createSend(
	context: EngineContext,
): (request: SendRequest, call?: Call) => Promise<SendResult> {
	const { store, clock, newId } = context;
	return async (request, call) => {
		assertWanted(call?.signal);
		const { send, ...resolved } = await checkedSend(context, request);
		const accepted = await store.writes.acceptSubmission({
			...submissionOf(send, resolved, { id: newId(), now: clock.now() }),
			...(call?.client !== undefined && { owner: call.client }),
			...seenBy(call),
			campaign: send.campaign_unique_id,
			recipients: send.to.map(({ address, key }) => ({ id: newId(), to: address, to_key: key })),
			key: idempotencyKey(request, call),
		});
		if (accepted.kind === 'key_conflict') throw keyConflict();
		if (accepted.kind === 'refused') throw invalid(accepted.errors);
		const { campaign, submission, kind, answer } = accepted;
		call?.onAccepted?.({ campaign, submission, replayed: kind === 'replayed' });
		return answer;
	};
}

export function createForeseeSend(context: EngineContext): (request: SendRequest) => Promise<void> {
	return async (request) => {
		await checkedSend(context, request);
	};
}

async function checkedSend(context: EngineContext, request: SendRequest) {
	const parsed = sendFields.parse(request);
	if (parsed.kind === 'invalid') throw await refusalBeside(context, parsed);
	return { send: parsed.value, ...(await resolveContent(context, parsed.value)) };
}

export function createMessages(context: EngineContext): Messages {
	const { store, ports, clock } = context;
	const get: Messages['get'] = async (id, call) => {
		const { message, attempts, events, reports, tracking, attachments } = found(
			await store.reads.getMessage({ id, ...seenBy(call) }),
		);
		const held_by = (await store.reads.holdsOfMessage({ id, now: clock.now() })).map(toHold);
		return {
			...message,
			delivery_attempts: attempts,
			events,
			reports,
			held_by,
			tracking,
			...(attachments.length > 0 && { attachments }),
		};
	};
	const change = async (id: Uuid, action: MessageAction, call?: Call) => {
		const outcome = await store.writes.changeMessage({ id, action, now: clock.now(), ...seenBy(call) });
		if (outcome.kind === 'not_found') throw notFound();
		if (outcome.kind === 'refused') throw wrongState(action, outcome.why);
		return get(id, call);
	};
	return {
		page: async (request, call) => {
			const [found, deleted] = await Promise.all([
				readPage(context, request, '/ext/messages/', async (at, filter) => {
					const { last, ...found } = await store.reads.pageMessages({
						...{ ...at, filter: comparable(filter), ...seenBy(call) },
					});
					return last === null ? found : { ...found, cursor: cursorOf(last) };
				}),
				readDeleted(context),
			]);
			return { ...found, ...deleted };
		},
		slice: async ({ cursor, limit, ...filter }, call) => {
			const after = readPlace(cursor);
			if (after === null) return refuse('cursor', 'Not a cursor.');
			if (!Number.isSafeInteger(limit) || limit < 1) return refuse('limit', texts.integer);
			const { results, last } = await store.reads.sliceMessages({
				...{ after, limit: Math.min(limit, maxSlice), filter: comparable(filter), ...seenBy(call) },
			});
			return { results, next: last === null ? null : cursorOf(last) };
		},
		get,
		cancel: (id, call) => change(id, 'cancel', call),
		retry: (id, call) => change(id, 'retry', call),
		progress: async (scope, call) => ({
			messages: await store.reads.countMessages({ scope, ...seenBy(call) }),
			paused: whyStopped(await store.reads.queuePauses(), clock.now()) ?? ports.whyPaused(),
			has_worker: await store.reads.hasWorker({ now: clock.now() }),
		}),
		raw: async (id, call) => {
			if (call?.ownOnly === true) found(await store.reads.getMessage({ id, ...seenBy(call) }));
			return { id, raw_base64: found(await ports.renderMessage(id)).toString('base64') };
		},
	};
}

const maxSlice = 1000;

function cursorOf({ submission_seq, id }: MessagePlace): string {
	return `${submission_seq}.${id}`;
}

function readPlace(cursor: unknown): MessagePlace | null {
	const [, submission_seq, id] = /^(\d{1,15})\.(\d{1,15})$/.exec(String(cursor)) ?? [];
	return id === undefined ? null : { submission_seq: Number(submission_seq), id: Number(id) };
}

function toHold({ until_at, ...limit }: LimitHold): MessageHold {
	return { ...limit, until: formatDateTime(until_at) };
}

function wrongState(action: MessageAction, why: string): ApiError {
	const done = action === 'cancel' ? 'canceled' : 'retried';
	return invalid({
		state: [{ code: 'wrong_state', message: `The message ${why}; it cannot be ${done}.` }],
	});
}

function whyStopped(pauses: readonly QueuePause[], now: Micros): string | null {
	for (const { kind, reason, retry_at } of pauses) {
		if (kind === 'manual') return heldReason(reason);
		if ((retry_at ?? 0) > now) return reason;
	}
	return null;
}

function comparable(filter: MessageFilter) {
	const since = filter.since === undefined ? undefined : parseDateTime(filter.since);
	if (since === null) return refuse('since', texts.datetime);
	return {
		...filter,
		...(filter.to !== undefined && { to_key: emailKey(filter.to) }),
		...(since !== undefined && { since_at: since }),
	};
}
