import { randomUUID } from 'node:crypto';
import { emailKey, parseMailbox } from '../../../api/address.js';
import type { Accepted, Call } from '../../../api/api.js';
import { ApiError, invalid, isForbidden, mayHaveHappened, NoSenders } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { SendResult } from '../../../api/records.js';
import { refusal } from '../../../api/refusals.js';
import { mailctl } from '../../frame/command-line.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { paced } from '../../frame/values.js';
import { numberText } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { explained, type Refused } from '../../verbs/refusals.js';
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
		/** A trial may be repeated freely, so its errors name no idempotency key. */
		isTrial?: boolean;
	};

export async function accept(
	cx: CommandContext,
	request: SendRequest,
	options: AcceptOptions,
): Promise<ExitCode> {
	const api = await cx.api();
	const { idempotentSend, service } = await api.capabilities();
	// Foreign services do not know the header, so only ours get a key.
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

/**
 * Without a clear answer it is exit 13, never a plain network or server error: a blind repetition may send twice. A
 * repetition is safe under `key`; null: none is kept.
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

async function sayWhoGetsNone(
	cx: CommandContext,
	to: readonly string[],
	{ messages }: SendResult,
): Promise<void> {
	const made = new Set(messages.map((message) => emailKey(message.to)));
	const left = [...new Set(to.map(emailKey))].filter((key) => !made.has(key));
	const [first] = left;
	if (first === undefined) return;
	for (const key of left.slice(0, mostNamed))
		await cx.note(`no message was made to ${key}: suppressed or inactive`);
	if (left.length > mostNamed) await cx.note(`and to ${numberText(left.length - mostNamed)} more`);
	if ((await (await cx.api()).capabilities()).ext.people !== undefined)
		await cx.hint(mailctl('why', left.length === 1 ? first : 'ADDRESS'));
}

/** A dry run on a database of this machine accepts the request and undoes it; elsewhere, and in a look, it is checked. */
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

/** A preview of a message that would be refused would mislead: the request is checked as the service checks it. */
export async function assertAcceptable(cx: CommandContext, request: SendRequest): Promise<void> {
	const check = await foreseeing(cx);
	await explained(check(request), { input: request, hint: sendHint });
}

/** The check of a request without its acceptance. Rules that a deployment does not tell are left to it. */
export async function foreseeing(cx: CommandContext): Promise<(request: SendRequest) => Promise<void>> {
	const { local } = await cx.connection();
	if (local !== null) return local.foreseeSend;
	const { sendFields } = await import('../../../api/messages.js');
	const senders = await verifiedSenders(cx);
	return async (request) => {
		const parsed = sendFields.parse(request);
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
		if (senders?.has(parsed.value.from_key) === false) throw invalid({ from: [refusal('not_verified')] });
	};
}

/** null: the deployment does not tell them, or this token may not read them. */
async function verifiedSenders(cx: CommandContext): Promise<ReadonlySet<string> | null> {
	const { senders } = await cx.api();
	const verified = new Set<string>();
	try {
		for await (const { from_email, is_verified } of walk(senders, {}, { signal: cx.signal }))
			if (is_verified !== false) verified.add(emailKey(from_email));
		return verified;
	} catch (error) {
		if (isForbidden(error) || error instanceof NoSenders) return null;
		throw error;
	}
}

/** The profile names the recipients that it may write to. */
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
		hint: `allowRecipients: ${allowRecipients.join(', ')}`,
	});
}

/** `*` matches anything within a part of the address, in any case. */
function toExpression(glob: string): RegExp {
	const parts = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
	return new RegExp(`^${parts.join('[^@]*')}$`, 'i');
}
