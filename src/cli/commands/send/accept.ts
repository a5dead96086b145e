/** One send call: accepted, told, delivered. Without a clear answer it is exit 13. */

import { randomUUID } from 'node:crypto';
import { emailKey } from '../../../api/address.js';
import type { Accepted, Call } from '../../../api/api.js';
import { ApiError, mayHaveHappened } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { SendResult } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { paced } from '../../frame/values.js';
import { numberText } from '../../render/units.js';
import { explained, type Refused } from '../../verbs/refusals.js';
import { uploadAttachments } from './attach.js';
import type { SendOptions } from './options.js';
import { settledOf } from './report.js';
import { type Prepared, sendHint } from './request.js';
import { writeMessages } from './results.js';
import { afterAcceptance, concludeDelivery, deliverNow } from './watch.js';

type AcceptOptions = Pick<SendOptions, 'wait' | 'waitTimeout' | 'connections'> &
	Partial<Pick<SendOptions, 'rate' | 'results' | 'idempotencyKey'>> & {
		print: (answer: SendResult) => Promise<void>;
		/** After the answer, before the delivery. */
		tell?: (answer: SendResult, accepted: Accepted) => Promise<void>;
		/** An unanswered call may be repeated under its key; a trial names none, and a second one does no harm. */
		isTrial?: boolean;
	};

export async function accept(
	cx: CommandContext,
	request: SendRequest,
	options: AcceptOptions,
): Promise<ExitCode> {
	const api = await cx.api();
	const { idempotentSend, service } = await api.capabilities();
	// Ours keep the key, so that an unanswered call may be repeated; others would only see a strange header.
	const key = idempotentSend ? (options.idempotencyKey ?? randomUUID()) : null;
	let accepted: Accepted = { campaign: null, submission: null, replayed: false };
	const call: Call = {
		signal: cx.signal,
		onAccepted: (one) => {
			accepted = one;
		},
		...(key !== null && { idempotencyKey: key }),
	};
	const sending = maybeSent(cx, api.send(request, call), options.isTrial ? null : key);
	const hint = (refused: Refused) => sendHint(refused, { hasSenders: service === 'mailctl' });
	const answer = await explained(sending, { input: request, hint });
	await options.print(answer);
	await sayWhoGetsNone(cx, request.to, answer);
	await options.tell?.(answer, accepted);
	const { submission } = accepted;
	if (answer.messages_created === 0) return exits.partly;
	if (submission === null) return exits.done;
	return afterAcceptance(cx, null, async () => {
		const ids = answer.messages.map(({ id }) => id);
		const how = { ...options, rate: paced(options.rate).rate, ids };
		const summary = await deliverNow(cx, { submission }, answer.messages_created, how);
		if (options.results !== undefined) await writeMessages(cx, options.results, ids);
		const waiting = answer.messages_created - (summary === null ? 0 : settledOf(summary.counts));
		return concludeDelivery(cx, summary, { waiting, campaign: null });
	});
}

/** Ends as the acceptance will: a dry run on a database of this machine accepts the request, which is undone with it. */
export async function foreseeAcceptance(
	cx: CommandContext,
	request: SendRequest,
	{ idempotencyKey, files }: { idempotencyKey?: string | undefined; files?: Prepared['files'] },
): Promise<ExitCode> {
	await uploadAttachments(cx, files);
	const call: Call = { signal: cx.signal, ...(idempotencyKey !== undefined && { idempotencyKey }) };
	const sending = (await cx.api()).send(request, call);
	const answer = await explained(sending, { input: request, hint: sendHint });
	await sayWhoGetsNone(cx, request.to, answer);
	return answer.messages_created === 0 ? exits.partly : exits.done;
}

/**
 * Without a clear answer it is exit 13, never a plain network or server error: a blind repetition may send twice. `key`: the
 * idempotency key under which a repetition is safe; null where none is kept.
 */
export async function maybeSent<T>(cx: CommandContext, sending: Promise<T>, key: string | null): Promise<T> {
	try {
		return await sending;
	} catch (error) {
		if (cx.signal.aborted && (await cx.connection()).local === null)
			await cx.warn('stopped before the service answered: it may or may not have been sent');
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		throw new CliError('uncertain', exits.uncertain, `it may or may not have been sent: ${error.message}`, {
			hint:
				key === null
					? 'look at the report or ask a recipient before you send it again'
					: `run it again with --idempotency-key ${key}: what was accepted is not sent twice (24 h)`,
			cause: error,
		});
	}
}

const mostNamed = 10;

/** A note for each of the first. `to`: addresses as they were given. */
async function sayWhoGetsNone(
	cx: CommandContext,
	to: readonly string[],
	{ messages }: SendResult,
): Promise<void> {
	const made = new Set(messages.map((message) => emailKey(message.to)));
	const left = [...new Set(to.map(emailKey))].filter((key) => !made.has(key));
	const [first, ...others] = left;
	if (first === undefined) return;
	for (const key of left.slice(0, mostNamed))
		await cx.note(`no message was made to ${key}: suppressed or inactive`);
	if (left.length > mostNamed) await cx.note(`and to ${numberText(left.length - mostNamed)} more`);
	if ((await (await cx.api()).capabilities()).ext.people !== undefined)
		await cx.hint(mailctl('why', others.length === 0 ? first : 'ADDRESS'));
}
