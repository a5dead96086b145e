/**
 * Makes one send call and follows the delivery. With a local database, the command delivers the messages itself. With a
 * mailctl server, it waits for the server to deliver them. Other services report no outcomes.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { emailKey, parseMailbox } from '../../../api/address.js';
import type { Accepted, Call } from '../../../api/api.js';
import type { CampaignStatus } from '../../../api/campaigns.js';
import type { Messages } from '../../../api/capabilities.js';
import { noDeliveries } from '../../../api/counts.js';
import { ApiError, invalid, mayHaveHappened } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import { isRefusalOfSender, isRefusedSender, refusedSenderReason } from '../../../api/pauses.js';
import type { SendResult, Uuid } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { DeliveryScope, DeliverySummary, FileToSend, LocalEngine } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, DeadlinePassed, NoSmtp } from '../../frame/errors.js';
import { classify, type ExitCode, exits } from '../../frame/exit.js';
import { paced } from '../../frame/values.js';
import { numberText, replyText } from '../../render/units.js';
import { doNotRepeat, explained, queuePaused, sayWhatHolds, senderless } from '../../verbs/refusals.js';
import type { RunOptions } from './options.js';
import {
	howToContinue,
	limitedUntil,
	outcomesOf,
	sender,
	sentenceOf,
	settledOf,
	troublesOf,
	waitingOf,
	writeMessages,
} from './report.js';
import { sayTime, sendHint, uploadAttachments } from './request.js';

/** Throws before anything is accepted, because without a mail server the messages would wait forever. */
export async function assertCanDeliver(cx: CommandContext, { wait }: RunOptions): Promise<void> {
	const { local } = await cx.connection();
	if (local === null || wait === false) return;
	if ((await local.settings.get())['smtp_url'] === undefined) throw new NoSmtp();
}

type Sent = Accepted & { answer: SendResult };

/** Errors of a test message suggest no idempotency key, because a second test does no harm. */
export async function accept(
	cx: CommandContext,
	request: SendRequest,
	files: readonly FileToSend[],
	{ idempotencyKey, isTest = false }: { idempotencyKey?: string | undefined; isTest?: boolean },
): Promise<Sent> {
	await uploadAttachments(cx, files);
	const api = await cx.api();
	const { idempotentSend } = await api.capabilities();
	// Other services do not know the header `Idempotency-Key`.
	const key = idempotentSend ? (idempotencyKey ?? randomUUID()) : null;
	let accepted: Accepted = { campaign: null, submission: null, replayed: false };
	const call: Call = {
		signal: cx.signal,
		onAccepted: (one) => {
			accepted = one;
		},
		...(key !== null && { idempotencyKey: key }),
	};
	const sending = maybeSent(cx, api.send(request, call), isTest ? null : key);
	const answer = await explained(sending, { input: request, hint: sendHint });
	return { ...accepted, answer };
}

export async function deliverSent(cx: CommandContext, sent: Sent, options: RunOptions): Promise<ExitCode> {
	const { answer, submission } = sent;
	const { messages, messages_created: total } = answer;
	if (total === 0) return exits.partly;
	if (submission === null) return exits.done;
	return afterAcceptance(cx, null, async () => {
		const ids = messages.map(({ id }) => id);
		const summary = await deliverNow({ cx, scope: { submission }, total, options }, ids);
		if (options.results !== undefined) await writeMessages(cx, options.results, ids);
		const settled = summary === null ? 0 : settledOf(summary.counts);
		const isUnsent = settled === total && summary?.counts.canceled === total;
		const end = { waiting: total - settled, isUnsent, leftOut: 0, campaign: null };
		return concludeDelivery(cx, summary, end);
	});
}

/**
 * Throws exit code 13 if the service may have accepted the message. With the exit code of a network error, a script
 * would retry and send twice. `key`: the idempotency key for a safe retry, if there is one.
 */
export async function maybeSent<T>(cx: CommandContext, sending: Promise<T>, key: string | null): Promise<T> {
	try {
		return await sending;
	} catch (error) {
		if (cx.signal.aborted && (await cx.connection()).local === null)
			await cx.warn('stopped before the service answered: the message may or may not have been sent');
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		const message = `the message may or may not have been sent: ${error.message}`;
		const hint =
			key === null
				? 'look at the report or ask a recipient before you send it again'
				: `to try again without sending twice, add --idempotency-key ${key}`;
		throw new CliError('uncertain', exits.uncertain, message, { hint, cause: error });
	}
}

export async function sayWhoGetsNone(cx: CommandContext, { to }: SendRequest, { messages }: SendResult) {
	const made = new Set(messages.map((message) => emailKey(message.to)));
	const left = [...new Set(to.map(emailKey))].filter((key) => !made.has(key));
	const [first] = left;
	if (first === undefined) return;
	for (const key of left) await cx.note(`no message to ${key}: suppressed or inactive`);
	if ((await (await cx.api()).capabilities()).ext.people !== undefined)
		await cx.hint(mailctl('why', left.length === 1 ? first : 'ADDRESS'));
}

/** For a dry run on a local database, accepts the request and rolls it back. */
export async function foreseeSending(
	cx: CommandContext,
	request: SendRequest,
	files: readonly FileToSend[],
	idempotencyKey?: string,
): Promise<ExitCode> {
	if (!cx.dryRun || (await cx.connection()).local === null) {
		await assertAcceptable(cx, request);
		return exits.done;
	}
	const { answer } = await accept(cx, request, files, { idempotencyKey });
	await sayWhoGetsNone(cx, request, answer);
	return answer.messages_created === 0 ? exits.partly : exits.done;
}

/** Refuses a request that the service would refuse, because its preview would mislead. */
export async function assertAcceptable(cx: CommandContext, request: SendRequest): Promise<void> {
	const check = await foreseeing(cx);
	await explained(check(request), { input: request, hint: sendHint });
}

/** Returns a check of send requests that sends nothing. It cannot check the rules that only a server knows. */
export async function foreseeing(cx: CommandContext): Promise<(request: SendRequest) => Promise<void>> {
	const { local } = await cx.connection();
	if (local !== null) return local.foreseeSend;
	const { sendFields } = await import('../../../api/messages.js');
	return async (request) => {
		const parsed = sendFields.parse(request);
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
	};
}

interface Delivery {
	cx: CommandContext;
	scope: NonNullable<DeliveryScope>;
	total: number;
	options: RunOptions;
}

export const defaultWaitMs = 600_000;

/** Returns null if this run does not wait or the service reports no outcomes. `ids`: the messages of a submission. */
export async function deliverNow(
	delivery: Delivery,
	ids: readonly Uuid[] = [],
): Promise<DeliverySummary | null> {
	const { cx, scope } = delivery;
	const { api, local } = await cx.connection();
	const { messages } = (await api.capabilities()).ext;
	if (messages === undefined) return null;
	if (delivery.options.wait === false) {
		await cx.hint(['accepted and queued; ', await sender(cx), ' sends it']);
		await sayWhatHolds(cx, scope, null);
		return null;
	}
	const closing = await watchWindow(delivery);
	const how = { ...delivery, messages, signal: AbortSignal.any([cx.signal, closing.signal]) };
	const delivering = local === null ? waitForServer(how) : deliverHere(how, local);
	const summary = await delivering.finally(closing.stop);
	if (summary.kind === 'stopped' && closing.signal.aborted && !cx.signal.aborted)
		return { ...summary, kind: 'closed', reason: String(closing.signal.reason) };
	if (summary.kind === 'settled' && summary.counts.deferred > 0) {
		const reason = await refusedSenderOf(messages, ids);
		if (reason !== null) return { ...summary, kind: 'paused', reason };
	}
	return summary;
}

interface Watched extends Delivery {
	messages: Messages;
	signal: AbortSignal;
}

async function deliverHere(delivery: Watched, local: LocalEngine): Promise<DeliverySummary> {
	const { cx, scope, total, messages, signal } = delivery;
	const { rate, connections, waitTimeout: stallMs = defaultWaitMs } = delivery.options;
	// `deliver` counts only messages that this run sends, so add the earlier ones.
	const earlier = (await messages.progress(scope)).messages;
	const before = Math.max(0, total - waitingOf(earlier) - (earlier.deferred ?? 0));
	if (rate !== undefined && (await local.queue.hasWorker()))
		await cx.warn('a running serve or worker ignores --rate; the setting send_limit limits all processes');
	const progress = cx.progress('sending', total, before);
	try {
		const summary = await local.deliver({
			...{ scope, until: 'settled', signal, stallMs, leftMs: cx.leftMs() },
			...paced(rate),
			...(connections !== undefined && { connections }),
			onProgress: (counts) => progress.update(before + settledOf(counts), troublesOf(counts)),
			onLimited: (until) => void cx.warn(limitedUntil(until, cx.times)),
		});
		// Count again, because another process or an earlier call may have sent some messages of the scope.
		const { messages: states } = await messages.progress(scope);
		// If the server refuses the sender, messages wait until an operator acts, so the delivery is not settled.
		const isHeld = summary.kind === 'stopped' || isRefusedSender(summary.reason);
		const isDone = !isHeld && waitingOf(states) === 0;
		return { ...summary, ...(isDone && { kind: 'settled', reason: null }), counts: outcomesOf(states) };
	} finally {
		progress.stop();
	}
}

const firstPauseMs = 30;
const longestPauseMs = 1_000;
/** Give up on a paused queue after this time without progress. The queue may recover at its next attempt. */
const pausedMs = 5_000;

async function waitForServer(delivery: Watched): Promise<DeliverySummary> {
	const { cx, scope, total, messages, signal } = delivery;
	const { waitTimeout: stallMs = defaultWaitMs } = delivery.options;
	let counts = noDeliveries();
	let movedAt = performance.now();
	let isWarned = false;
	let progress: ReturnType<CommandContext['progress']> | null = null;
	const end = (kind: DeliverySummary['kind'], reason: string | null = null) => {
		return { kind, reason, counts, warnings: [] };
	};
	try {
		for (let pause = firstPauseMs; ; pause = Math.min(longestPauseMs, pause * 1.5)) {
			if (signal.aborted) return end('stopped');
			const found = await messages.progress(scope, { signal }).catch((error: unknown) => {
				if (signal.aborted) return null;
				throw error;
			});
			if (found === null) return end('stopped');
			const before = settledOf(counts);
			counts = outcomesOf(found.messages);
			const settled = settledOf(counts);
			if (settled !== before) movedAt = performance.now();
			if (waitingOf(found.messages) === 0) return end('settled');
			progress ??= cx.progress('sending', total, settled);
			progress.update(settled, troublesOf(counts));
			const still = performance.now() - movedAt;
			if (found.paused !== null && still >= Math.min(pausedMs, stallMs)) return end('paused', found.paused);
			if (still >= stallMs) return end('stalled');
			if (found.has_worker === false && still >= pausedMs && !isWarned) {
				isWarned = true;
				await cx.warn('nothing is sent', await senderless(cx));
			}
			await delay(pause, undefined, { signal }).catch(() => undefined);
		}
	} finally {
		progress?.stop();
	}
}

const lookEveryMs = 1_000;

async function watchWindow({ cx, scope }: Delivery) {
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	const controller = new AbortController();
	const plan = async () =>
		'campaign' in scope ? (await campaigns?.status(scope.campaign, { signal: cx.signal }))?.plan : undefined;
	const look = async () => {
		const now = await plan();
		if (now?.opens_at == null) return;
		const next = `${sayTime(now.opens_at, now)} ${now.time_zone}`;
		controller.abort(`the sending hours are over, and sending continues at ${next}`);
	};
	const hasWindow = ((await plan())?.window ?? null) !== null;
	const timer = hasWindow ? setInterval(() => void look().catch(() => undefined), lookEveryMs) : undefined;
	return { signal: controller.signal, stop: () => clearInterval(timer) };
}

/** Search only the last messages of a submission for a refused sender, because a worker sends them last. */
const mostLookedAt = 20;

async function refusedSenderOf(messages: Messages, ids: readonly Uuid[]): Promise<string | null> {
	for (const id of ids.slice(-mostLookedAt)) {
		const { state, from, last_reply } = await messages.get(id);
		if (state === 'deferred' && last_reply !== null && isRefusalOfSender(last_reply))
			return refusedSenderReason(parseMailbox(from)?.address ?? from, last_reply);
	}
	return null;
}

/** Exit codes that suggest a retry. After an acceptance, a retry would send everything again. */
const triedAgain: ReadonlySet<ExitCode> = new Set([
	...[exits.notFound, exits.authentication, exits.refused, exits.network, exits.server],
]);

/**
 * Runs `work` after an acceptance. Replaces an error that suggests a retry by one that says that the messages are
 * accepted. `campaign`: its name, or null for one submission.
 */
export async function afterAcceptance(
	cx: CommandContext,
	campaign: string | null,
	work: () => Promise<ExitCode>,
) {
	try {
		return await work();
	} catch (error) {
		const { code, exit, message, details, retryable } = classify(error);
		const isTriedAgain = triedAgain.has(exit);
		if (cx.signal.aborted || !(isTriedAgain || retryable)) throw error;
		const [told, end] = isTriedAgain ? (['accepted_and_queued', exits.queued] as const) : [code, exit];
		throw new CliError(told, end, `${doNotRepeat}: ${message}`, {
			hint: campaign === null ? mailctl('messages', 'list') : await howToContinue(cx, campaign),
			...(details !== null && { details }),
			cause: error,
		});
	}
}

/** Makes the error of a passed deadline non-retryable, because another run of the command could send twice. */
export function endOfSend(reason: unknown): unknown {
	if (!(reason instanceof DeadlinePassed)) return reason;
	return new CliError(reason.code, reason.exit, reason.message, { cause: reason });
}

interface DeliveryEnd {
	waiting: number;
	isUnsent: boolean;
	leftOut: number;
	/** Null for one submission. */
	campaign: { name: string; sentence: string; replies: CampaignStatus['replies'] } | null;
}

/** `summary` is null if this run did not wait, or the service reports no outcomes. */
export async function concludeDelivery(
	cx: CommandContext,
	summary: DeliverySummary | null,
	end: DeliveryEnd,
): Promise<ExitCode> {
	if (summary === null) return exitOf(cx, noDeliveries(), end);
	const { kind, counts, warnings } = summary;
	const { waiting, campaign } = end;
	for (const warning of warnings) await cx.warn(warning);
	if (kind === 'settled' || settledOf(counts) > 0) {
		const left = kind === 'settled' || waiting === 0 ? '' : `, still queued ${numberText(waiting)}`;
		await cx.note((campaign?.sentence ?? sentenceOf(counts)) + left);
	}
	for (const reply of campaign?.replies ?? []) await cx.note(replyText(reply));
	const early = await earlyEnd(cx, summary, campaign?.name ?? null);
	if (early !== null) throw early;
	if (kind === 'stopped' && campaign !== null) await cx.hint(await howToContinue(cx, campaign.name));
	else if (kind === 'stopped' && waiting > 0)
		await cx.hint(['the accepted messages stay queued; ', await sender(cx, '--drain'), ' sends them']);
	if (counts.deferred > 0) await cx.hint(['deferred messages are tried again by ', await sender(cx)]);
	if (counts.uncertain > 0 && (await (await cx.api()).capabilities()).ext.messages !== undefined)
		await cx.hint([mailctl('messages', 'list', '--status', 'uncertain'), ' shows what may have arrived']);
	if (kind === 'stopped') cx.signal.throwIfAborted();
	return exitOf(cx, counts, end);
}

async function earlyEnd(cx: CommandContext, { kind, reason }: DeliverySummary, campaign: string | null) {
	const by = await sender(cx);
	if (kind === 'paused') {
		const then = (await cx.connection()).local === null ? 'the server sends the messages' : ['run ', drain];
		return queuePaused(cx, {
			reason,
			hint: ['nothing is lost: when the cause is gone, ', then],
			hasAccepted: true,
		});
	}
	if (kind === 'closed') {
		const hint = [by, ' must be running at that time'];
		return new CliError('accepted_and_queued', exits.queued, `${doNotRepeat}: ${reason}`, { hint });
	}
	if (kind !== 'stalled') return null;
	const why = reason === null ? '' : `: ${reason}`;
	return new CliError('stalled', exits.outOfTime, `no progress within --wait-timeout${why}`, {
		hint: campaign === null ? [doNotRepeat, '; ', by, ' continues'] : await howToContinue(cx, campaign),
	});
}

const drain = mailctl('worker', '--drain');

export async function exitOf(
	cx: CommandContext,
	{ uncertain, bounced, failed }: DeliverySummary['counts'],
	{ isUnsent, leftOut }: Pick<DeliveryEnd, 'isUnsent' | 'leftOut'>,
): Promise<ExitCode> {
	if (uncertain > 0) return exits.uncertain;
	if (bounced + failed > 0) return exits.partly;
	if (isUnsent) await cx.warn('no message was sent: each was suppressed or canceled');
	return isUnsent || leftOut > 0 ? exits.partly : exits.done;
}
