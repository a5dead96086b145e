import { randomUUID } from 'node:crypto';
import { emailKey, parseMailbox } from '../../../api/address.js';
import type { Accepted, Call } from '../../../api/api.js';
import { ApiError, invalid, mayHaveHappened } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { SendResult } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { paced } from '../../frame/values.js';
import { explained } from '../../verbs/refusals.js';
import { uploadAttachments } from './attach.js';
import type { SendOptions } from './options.js';
import { settledOf } from './report.js';
import { sendHint } from './request.js';
import { writeMessages } from './results.js';
import { afterAcceptance, concludeDelivery, deliverNow } from './watch.js';

type AcceptOptions = Pick<SendOptions, 'wait' | 'waitTimeout' | 'connections'> &
	Partial<Pick<SendOptions, 'rate' | 'results' | 'idempotencyKey'>> & {
		print: (answer: SendResult) => Promise<void>;
		tell?: (answer: SendResult, accepted: Accepted) => Promise<void>;
		/** A test message may be repeated freely, so its errors name no idempotency key. */
		isTest?: boolean;
	};

export async function accept(
	cx: CommandContext,
	request: SendRequest,
	options: AcceptOptions,
): Promise<ExitCode> {
	const api = await cx.api();
	const { idempotentSend } = await api.capabilities();
	// Other services do not know the header.
	const key = idempotentSend ? (options.idempotencyKey ?? randomUUID()) : null;
	let accepted: Accepted = { campaign: null, submission: null, replayed: false };
	const call: Call = {
		signal: cx.signal,
		onAccepted: (one) => {
			accepted = one;
		},
		...(key !== null && { idempotencyKey: key }),
	};
	const sending = maybeSent(cx, api.send(request, call), options.isTest ? null : key);
	const answer = await explained(sending, { input: request, hint: sendHint });
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

/**
 * Ends with exit 13 without a clear answer, never with a plain network or server error: another try may send twice. It is
 * safe under `key`; null where the service keeps none.
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
					: `to try again without sending twice, add --idempotency-key ${key}`,
			cause: error,
		});
	}
}

async function sayWhoGetsNone(
	cx: CommandContext,
	to: readonly string[],
	{ messages }: SendResult,
): Promise<void> {
	const made = new Set(messages.map((message) => emailKey(message.to)));
	const left = [...new Set(to.map(emailKey))].filter((key) => !made.has(key));
	const [first] = left;
	if (first === undefined) return;
	for (const key of left) await cx.note(`no message to ${key}: suppressed or inactive`);
	if ((await (await cx.api()).capabilities()).ext.people !== undefined)
		await cx.hint(mailctl('why', left.length === 1 ? first : 'ADDRESS'));
}

/** A dry run on a local database accepts the request and undoes it. A preview, and another target, only check it. */
export async function foreseeSending(
	cx: CommandContext,
	request: SendRequest,
	{ idempotencyKey, files }: { idempotencyKey?: string | undefined; files?: readonly FileToSend[] },
): Promise<ExitCode> {
	if (!cx.dryRun || (await cx.connection()).local === null) {
		await assertAcceptable(cx, request);
		return exits.done;
	}
	await uploadAttachments(cx, files);
	const call: Call = { signal: cx.signal, ...(idempotencyKey !== undefined && { idempotencyKey }) };
	const sending = (await cx.api()).send(request, call);
	const answer = await explained(sending, { input: request, hint: sendHint });
	await sayWhoGetsNone(cx, request.to, answer);
	return answer.messages_created === 0 ? exits.partly : exits.done;
}

/** A preview of a message that would be refused would mislead. */
export async function assertAcceptable(cx: CommandContext, request: SendRequest): Promise<void> {
	const check = await foreseeing(cx);
	await explained(check(request), { input: request, hint: sendHint });
}

/** Checks a request without accepting it. A server's own rules are not checked here. */
export async function foreseeing(cx: CommandContext): Promise<(request: SendRequest) => Promise<void>> {
	const { local } = await cx.connection();
	if (local !== null) return local.foreseeSend;
	const { sendFields } = await import('../../../api/messages.js');
	return async (request) => {
		const parsed = sendFields.parse(request);
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
	};
}

/** The profile limits its recipients. */
export function isLimited(cx: CommandContext): boolean {
	return cx.settings.profile.allowRecipients !== undefined;
}

/** Throws `UsageError` naming the first address that no pattern of the profile covers. */
export function assertAllowed(cx: CommandContext, addresses: readonly string[]): void {
	const { allowRecipients } = cx.settings.profile;
	if (allowRecipients === undefined) return;
	const patterns = allowRecipients.map(toExpression);
	const refused = addresses.find((text) => {
		const address = parseMailbox(text)?.address ?? text;
		return !patterns.some((pattern) => pattern.test(address));
	});
	if (refused === undefined) return;
	throw new UsageError(`this profile may not write to ${refused}; nothing was sent`, {
		hint: `allowRecipients is ${allowRecipients.join(', ')}`,
	});
}

/** `*` matches anything within a part of the address, in any case. */
function toExpression(glob: string): RegExp {
	const parts = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
	return new RegExp(`^${parts.join('[^@]*')}$`, 'i');
}
