/** What the first of a list would get: to look at, or to an address of one's own. */
import { randomUUID } from 'node:crypto';
import type { Call } from '../../../api/api.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { List, Subscriber } from '../../../api/records.js';
import type { ComposedMessage } from '../../connection.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { explained } from '../../refusals.js';
import { walk } from '../../walk.js';
import { concludeDelivery } from './conclude.js';
import { leftOf } from './counts.js';
import { assertCanDeliver, deliverNow } from './deliver.js';
import { sendHint } from './hints.js';
import { maybeSent } from './once.js';
import type { SendOptions } from './options.js';
import { assertAcceptable, compose, showPreview, warnOfMissing } from './preview.js';
import { isOpaque, type Prepared } from './request.js';

export interface Trial {
	prepared: Prepared;
	list: List;
	options: SendOptions;
}

/** `--preview` and `--eml`: nothing is staged. */
export async function previewList(cx: CommandContext, trial: Trial): Promise<void> {
	const { prepared, list, options } = trial;
	const subscriber = await firstOf(cx, list);
	await assertAcceptable(cx, { ...prepared.request, to: [subscriber.email] });
	await showPreview(cx, await composeFor(cx, trial, subscriber), options);
}

/** To an address of one's own: with the first subscriber's variables, under no mailing. */
export async function sendTest(cx: CommandContext, trial: Trial, to: string): Promise<ExitCode> {
	const { prepared, list, options } = trial;
	await assertCanDeliver(cx, options);
	const subscriber = await firstOf(cx, list);
	const subject = await trialSubject(cx, prepared, () => composeFor(cx, trial, subscriber));
	const context = contextOf(trial, subscriber);
	const request: SendRequest = { ...prepared.request, type: 'TRANSACTIONAL', to: [to], context };
	return sendTrial(cx, { request, subject, asFor: subscriber.email, options });
}

/** What a trial is of, in words; warns of variables that nothing gives a value to. */
export async function trialSubject(
	cx: CommandContext,
	prepared: Prepared,
	composeFirst: () => Promise<ComposedMessage>,
): Promise<string> {
	if (isOpaque(prepared)) return `template ${prepared.request.template_unique_id}`;
	const composed = await composeFirst();
	await warnOfMissing(cx, composed);
	return `"${composed.subject}"`;
}

/** The message itself, to whom the request names; `asFor`: whose it is otherwise. */
export async function sendTrial(
	cx: CommandContext,
	{
		request,
		subject,
		asFor,
		options,
	}: { request: SendRequest; subject: string; asFor: string; options: SendOptions },
): Promise<ExitCode> {
	let submission: string | null = null;
	const api = await cx.api();
	const { idempotentSend } = await api.capabilities();
	const key = idempotentSend ? randomUUID() : null;
	const call: Call = {
		signal: cx.signal,
		...(key !== null && { idempotencyKey: key }),
		onAccepted: (accepted) => {
			submission = accepted.submission;
		},
	};
	// No key is told: --idempotency-key does not go with a job, and a second trial hurts nobody.
	const sending = maybeSent(cx, api.send(request, call), null);
	const answer = await explained(sending, { input: request, hint: sendHint });
	await cx.note(`a trial of ${subject} as for ${asFor}, to ${request.to.join(', ')}`);
	await cx.out.document(answer);
	if (submission === null) return exits.done;
	const summary = await deliverNow(cx, { submission }, 1, { ...options, job: undefined });
	return concludeDelivery(cx, summary, { waiting: leftOf(1, summary?.counts ?? null), job: null });
}

/** The message as that subscriber would get it. */
export function composeFor(cx: CommandContext, { prepared, list }: Trial, subscriber: Subscriber) {
	const addressee = { to: subscriber.email, subscriber, email_reason: list.email_reason };
	return compose(cx, prepared, addressee);
}

function contextOf({ prepared, list }: Trial, subscriber: Subscriber): Record<string, string> {
	const meta = Object.entries(subscriber.meta).filter(
		([, value]) => value !== null && typeof value !== 'object',
	);
	return {
		...Object.fromEntries(meta.map(([key, value]) => [key, String(value)])),
		name: subscriber.name,
		email_reason: list.email_reason,
		...prepared.request.context,
	};
}

/** The first active subscriber. Throws `UsageError` where there is none. */
export async function firstOf(cx: CommandContext, list: List): Promise<Subscriber> {
	const api = await cx.api();
	for await (const one of walk(
		api.subscribers(list.id),
		{ is_active: true },
		{ signal: cx.signal, limit: 1 },
	))
		return one;
	throw new UsageError(`list ${list.id} "${list.name}" has no active subscribers`);
}
