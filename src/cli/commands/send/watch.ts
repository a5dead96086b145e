/**
 * The delivery of accepted messages: on the embedded engine `send` works off its own, a server of ours is waited for, others
 * tell nothing. How it ends is said here, and is the exit code.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { parseMailbox } from '../../../api/address.js';
import type { CampaignStatus } from '../../../api/campaigns.js';
import type { Messages } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/counts.js';
import { isRefusalOfSender, isRefusedSender, refusedSenderReason } from '../../../api/pauses.js';
import type { Uuid } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { DeliveryScope, DeliverySummary } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, DeadlinePassed, NoSmtp } from '../../frame/errors.js';
import { classify, type ExitCode, exits, hinted } from '../../frame/exit.js';
import { numberText, replyText } from '../../render/units.js';
import { doNotRepeat, queuePaused, senderless } from '../../verbs/refusals.js';
import type { SendOptions } from './options.js';
import {
	asDelivered,
	type GoingOn,
	limitedUntil,
	outcomesOf,
	saysWhoGoesOn,
	sender,
	sentenceOf,
	settledOf,
	troublesOf,
	waitingOf,
} from './report.js';
import { sayTime } from './request.js';

/** Refuses before anything is accepted: without a mail server the messages would wait for ever. */
export async function assertCanDeliver(
	cx: CommandContext,
	options: Pick<SendOptions, 'wait'>,
): Promise<void> {
	const { local } = await cx.connection();
	if (local === null || options.wait === false) return;
	if ((await local.settings.get())['smtp_url'] !== undefined) return;
	if (!cx.canAsk) throw new NoSmtp();
	throw hinted(new NoSmtp(), [
		['to be asked for it: ', mailctl('engine', 'init')],
		['a mail server on this machine, for a first try: ', mailctl('sink')],
	]);
}

type DeliverOptions = Pick<SendOptions, 'wait' | 'waitTimeout' | 'connections'> & {
	rate?: number | undefined;
	ids?: readonly Uuid[];
};

type Scope = NonNullable<DeliveryScope>;

export const defaultWaitMs = 600_000;

export async function deliverNow(
	cx: CommandContext,
	scope: Scope,
	total: number,
	options: DeliverOptions,
): Promise<DeliverySummary | null> {
	const { messages } = (await (await cx.api()).capabilities()).ext;
	if (messages === undefined) return null;
	if (options.wait === false) {
		await cx.hint(['accepted and queued; ', await sender(cx), ' sends it']);
		return null;
	}
	const window = await watchWindow(cx, scope);
	const signal = AbortSignal.any([cx.signal, window.signal]);
	const summary = await deliver(cx, messages, { scope, total, options, signal }).finally(window.stop);
	if (summary.kind === 'stopped' && window.reason() !== null && !cx.signal.aborted)
		return { ...summary, kind: 'closed', reason: window.reason() };
	if (summary.kind === 'settled' && 'submission' in scope && summary.counts.deferred > 0) {
		const reason = await refusedSenderOf(messages, options.ids ?? []);
		if (reason !== null) return { ...summary, kind: 'paused', reason };
	}
	return summary;
}

async function deliver(
	cx: CommandContext,
	messages: Messages,
	{
		scope,
		total,
		options,
		signal,
	}: { scope: Scope; total: number; options: DeliverOptions; signal: AbortSignal },
): Promise<DeliverySummary> {
	const { local } = await cx.connection();
	const stallMs = options.waitTimeout ?? defaultWaitMs;
	// A worker counts its own messages only, a server all of the scope.
	const states = local === null ? null : (await messages.progress(scope)).messages;
	const before = states === null ? 0 : Math.max(0, total - waitingOf(states) - (states.deferred ?? 0));
	let progress = local === null ? null : cx.progress('sending', total, before);
	const onProgress = (counts: DeliveryCounts) => {
		const done = before + settledOf(counts);
		progress ??= cx.progress('sending', total, done);
		progress.update(done, troublesOf(counts));
	};
	try {
		if (local === null) return await watchServer(cx, messages, scope, { signal, stallMs, onProgress });
		const { rate, connections } = options;
		const summary = await local.deliver({
			scope,
			until: 'settled',
			signal,
			leftMs: cx.leftMs(),
			stallMs,
			...(rate !== undefined && { rate }),
			...(connections !== undefined && { connections }),
			onProgress,
			onLimited: (until) => {
				void cx.warn(limitedUntil(until, cx.times));
			},
		});
		// Another process or an earlier call may have sent some of the scope.
		const { messages: states } = await messages.progress(scope);
		// A message that is deferred for its sender waits for a person.
		const isHeld = summary.kind === 'stopped' || isRefusedSender(summary.reason);
		const isDone = !isHeld && waitingOf(states) === 0;
		const end = isDone ? ({ kind: 'settled', reason: null } as const) : {};
		const isTried = settledOf(summary.counts) > 0;
		return { ...summary, ...end, counts: asDelivered(outcomesOf(states)), isTried };
	} finally {
		progress?.stop();
	}
}

const firstPauseMs = 30;
const longestPauseMs = 1_000;
/** A server learns by its next try that its mail server works again, so one look is not enough. */
const pausedMs = 5_000;

async function watchServer(
	cx: CommandContext,
	messages: Messages,
	scope: Scope,
	{
		signal,
		stallMs,
		onProgress,
	}: { signal: AbortSignal; stallMs: number; onProgress: (counts: DeliveryCounts) => void },
): Promise<DeliverySummary> {
	let counts = asDelivered(outcomesOf({}));
	let movedAt = performance.now();
	let isToldSenderless = false;
	const end = (kind: DeliverySummary['kind'], reason: string | null = null) => ({
		kind,
		reason,
		counts,
		warnings: [],
	});
	for (let pause = firstPauseMs; ; pause = Math.min(longestPauseMs, pause * 1.5)) {
		if (signal.aborted) return end('stopped');
		const progress = await messages.progress(scope, { signal }).catch((error: unknown) => {
			if (signal.aborted) return null;
			throw error;
		});
		if (progress === null) return end('stopped');
		const before = settledOf(counts);
		counts = asDelivered(outcomesOf(progress.messages));
		if (settledOf(counts) !== before) movedAt = performance.now();
		if (waitingOf(progress.messages) === 0) return end('settled');
		onProgress(counts);
		const still = performance.now() - movedAt;
		if (progress.paused !== null && still >= Math.min(pausedMs, stallMs))
			return end('paused', progress.paused);
		if (still >= stallMs) return end('stalled');
		if (progress.has_worker === false && still >= pausedMs && !isToldSenderless) {
			isToldSenderless = true;
			await cx.warn('nothing is sent', await senderless(cx));
		}
		await wait(pause, undefined, { signal }).catch(() => undefined);
	}
}

const lookEveryMs = 1_000;

async function watchWindow(cx: CommandContext, scope: Scope) {
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	const controller = new AbortController();
	let reason: string | null = null;
	const plan = async () =>
		'campaign' in scope ? (await campaigns?.status(scope.campaign, { signal: cx.signal }))?.plan : undefined;
	const look = async () => {
		const now = await plan();
		if (now?.opens_at == null) return;
		reason = `its hours are over, and it goes on at ${sayTime(now.opens_at, now)} ${now.time_zone}`;
		controller.abort();
	};
	const hasWindow = ((await plan())?.window ?? null) !== null;
	const timer = hasWindow ? setInterval(() => void look().catch(() => undefined), lookEveryMs) : undefined;
	return { signal: controller.signal, reason: () => reason, stop: () => clearInterval(timer) };
}

/** Exits that say "try again": after an acceptance that would send everything once more. */
const triedAgain: ReadonlySet<ExitCode> = new Set([
	exits.notFound,
	exits.authentication,
	exits.refused,
	exits.network,
	exits.server,
]);

/**
 * The work after an acceptance. Its errors say that the messages are accepted, with exit 14 instead of a code that a script
 * answers with another try. `campaign`: null for one submission.
 */
export async function afterAcceptance<T>(
	cx: CommandContext,
	campaign: string | null,
	work: () => Promise<T>,
): Promise<T> {
	try {
		return await work();
	} catch (error) {
		const { code, exit, message, details, retryable } = classify(error);
		const isTriedAgain = triedAgain.has(exit);
		if (cx.signal.aborted || !(isTriedAgain || retryable)) throw error;
		const hint =
			campaign === null
				? [mailctl('messages', 'list'), ' shows what became of it']
				: await saysWhoGoesOn(cx, { name: campaign });
		throw new CliError(
			isTriedAgain ? 'accepted_and_queued' : code,
			isTriedAgain ? exits.queued : exit,
			`${doNotRepeat}: ${message}`,
			{ hint, ...(details !== null && { details }), cause: error },
		);
	}
}

/** A deadline's hint proposes another run, which may send twice. */
export function endOfSend(reason: unknown): unknown {
	if (!(reason instanceof DeadlinePassed)) return reason;
	return new CliError(reason.code, reason.exit, reason.message, { cause: reason });
}

/** The last messages of a submission are sent last. */
const mostLookedAt = 20;

async function refusedSenderOf(messages: Messages, ids: readonly Uuid[]): Promise<string | null> {
	for (const id of ids.slice(-mostLookedAt)) {
		const { state, from, last_reply } = await messages.get(id);
		if (state === 'deferred' && last_reply !== null && isRefusalOfSender(last_reply))
			return refusedSenderReason(parseMailbox(from)?.address ?? from, last_reply);
	}
	return null;
}

interface CampaignEnd extends GoingOn {
	sentence: string;
	replies?: CampaignStatus['replies'];
}

export const noneSent = 'no recipient gets it: all are suppressed or canceled';

/**
 * Says how a delivery ended, and returns the exit code. `summary` null: it was not waited for. `waiting`: messages without
 * an outcome; `campaign` null: one submission.
 */
export async function concludeDelivery(
	cx: CommandContext,
	summary: DeliverySummary | null,
	{ waiting, campaign }: { waiting: number; campaign: CampaignEnd | null },
): Promise<ExitCode> {
	if (summary === null) return exits.done;
	const { kind, counts, warnings } = summary;
	for (const warning of warnings) await cx.warn(warning);
	const isSettled = kind === 'settled';
	if (isSettled || Object.values(counts).some((count) => count > 0)) {
		const left = isSettled || waiting === 0 ? '' : `, still queued ${numberText(waiting)}`;
		await cx.note((campaign?.sentence ?? sentenceOf(counts)) + left);
	}
	for (const reply of campaign?.replies ?? []) await cx.note(replyText(reply));
	const left = await leftBehind(cx, summary, campaign);
	if (left !== null) throw left;
	await sayRest(cx, summary, { waiting, campaign });
	if (kind === 'stopped') cx.signal.throwIfAborted();
	if (counts.uncertain > 0) return exits.uncertain;
	if (campaign === null && settledOf(counts) === counts.canceled && counts.canceled > 0 && waiting === 0) {
		await cx.warn(noneSent);
		return exits.partly;
	}
	return counts.bounced + counts.failed > 0 ? exits.partly : exits.done;
}

async function sayRest(
	cx: CommandContext,
	{ kind, counts }: DeliverySummary,
	{ waiting, campaign }: { waiting: number; campaign: CampaignEnd | null },
): Promise<void> {
	if (kind === 'stopped' && campaign !== null) await cx.hint(await saysWhoGoesOn(cx, campaign));
	else if (kind === 'stopped' && waiting > 0)
		await cx.hint(['what was accepted stays queued; ', await sender(cx, '--drain'), ' sends it']);
	if (counts.deferred > 0) await cx.hint(['deferred messages are tried again by ', await sender(cx)]);
	if (counts.uncertain > 0 && (await (await cx.api()).capabilities()).ext.messages !== undefined)
		await cx.hint([
			mailctl('messages', 'list', '--status', 'uncertain'),
			' shows what may or may not have arrived; ',
			mailctl('messages', 'retry', 'ID'),
			' sends it again',
		]);
}

async function leftBehind(
	cx: CommandContext,
	{ kind, reason }: DeliverySummary,
	campaign: CampaignEnd | null,
): Promise<CliError | null> {
	if (kind === 'paused') {
		const { local } = await cx.connection();
		const then = local === null ? 'the server sends it' : ['run ', mailctl('worker', '--drain')];
		return queuePaused(cx, { reason, hint: ['nothing is lost: correct it, then ', then], hasAccepted: true });
	}
	if (kind === 'closed') {
		const drop =
			campaign === null ? [] : [', ', mailctl('campaigns', 'cancel', campaign.name), ' drops the rest'];
		return new CliError('accepted_and_queued', exits.queued, `${doNotRepeat}: ${reason}`, {
			hint: [await sender(cx), ' has to run then', ...drop],
		});
	}
	if (kind !== 'stalled') return null;
	const why = reason === null ? '' : `: ${reason}`;
	return new CliError('stalled', exits.outOfTime, `no progress within --wait-timeout${why}`, {
		hint: campaign ? await saysWhoGoesOn(cx, campaign) : [doNotRepeat, '; ', await sender(cx), ' goes on'],
	});
}
