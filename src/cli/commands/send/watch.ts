/**
 * The delivery of accepted messages. On a local database `send` delivers its own messages; it waits for a mailctl server, and
 * other services tell nothing. The end of the delivery is reported here, and is the exit code.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { parseMailbox } from '../../../api/address.js';
import type { CampaignStatus } from '../../../api/campaigns.js';
import type { Messages } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/counts.js';
import { isRefusalOfSender, isRefusedSender, refusedSenderReason } from '../../../api/pauses.js';
import type { Uuid } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { DeliveryScope, DeliverySummary, LocalEngine } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, DeadlinePassed, NoSmtp } from '../../frame/errors.js';
import { classify, type ExitCode, exits, hinted } from '../../frame/exit.js';
import { numberText, replyText } from '../../render/units.js';
import { doNotRepeat, queuePaused, sayWhatHolds, senderless } from '../../verbs/refusals.js';
import type { SendOptions } from './options.js';
import {
	howToContinue,
	limitedUntil,
	outcomesOf,
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
	/** The messages of a submission. */
	ids?: readonly Uuid[];
};

type Scope = NonNullable<DeliveryScope>;

export const defaultWaitMs = 600_000;

/** Null: this run does not wait, or the service does not tell. */
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
		await sayWhatHolds(cx, scope, null);
		return null;
	}
	const { local } = await cx.connection();
	const closing = await watchWindow(cx, scope);
	const how = { scope, total, options, signal: AbortSignal.any([cx.signal, closing.signal]) };
	const delivering =
		local === null ? waitForServer(cx, messages, how) : deliverHere(cx, local, messages, how);
	const summary = await delivering.finally(closing.stop);
	if (summary.kind === 'stopped' && closing.signal.aborted && !cx.signal.aborted)
		return { ...summary, kind: 'closed', reason: String(closing.signal.reason) };
	if (summary.kind === 'settled' && 'submission' in scope && summary.counts.deferred > 0) {
		const reason = await refusedSenderOf(messages, options.ids ?? []);
		if (reason !== null) return { ...summary, kind: 'paused', reason };
	}
	return summary;
}

interface Delivery {
	scope: Scope;
	total: number;
	options: DeliverOptions;
	signal: AbortSignal;
}

async function deliverHere(
	cx: CommandContext,
	local: LocalEngine,
	messages: Messages,
	{ scope, total, options, signal }: Delivery,
): Promise<DeliverySummary> {
	const { rate, connections, waitTimeout: stallMs = defaultWaitMs } = options;
	// A run counts only the messages that it sends itself.
	const earlier = (await messages.progress(scope)).messages;
	const before = Math.max(0, total - waitingOf(earlier) - (earlier.deferred ?? 0));
	const progress = cx.progress('sending', total, before);
	try {
		const summary = await local.deliver({
			scope,
			until: 'settled',
			signal,
			leftMs: cx.leftMs(),
			stallMs,
			...(rate !== undefined && { rate }),
			...(connections !== undefined && { connections }),
			onProgress: (counts) => progress.update(before + settledOf(counts), troublesOf(counts)),
			onLimited: (until) => {
				void cx.warn(limitedUntil(until, cx.times));
			},
		});
		// Another process or an earlier call may have sent some of the scope.
		const { messages: states } = await messages.progress(scope);
		// A message that is deferred for its sender waits for a person.
		const isHeld = summary.kind === 'stopped' || isRefusedSender(summary.reason);
		const isDone = !isHeld && waitingOf(states) === 0;
		return {
			...summary,
			...(isDone && { kind: 'settled', reason: null }),
			counts: outcomesOf(states),
		};
	} finally {
		progress.stop();
	}
}

const firstPauseMs = 30;
const longestPauseMs = 1_000;
/** A server finds out by its next try that its mail server works again, so one look is not enough. */
const pausedMs = 5_000;

async function waitForServer(
	cx: CommandContext,
	messages: Messages,
	{ scope, total, options: { waitTimeout: stallMs = defaultWaitMs }, signal }: Delivery,
): Promise<DeliverySummary> {
	let counts = outcomesOf({});
	let movedAt = performance.now();
	let isWarned = false;
	let progress: ReturnType<CommandContext['progress']> | null = null;
	const end = (kind: DeliverySummary['kind'], reason: string | null = null) => ({
		kind,
		reason,
		counts,
		warnings: [],
	});
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
			await wait(pause, undefined, { signal }).catch(() => undefined);
		}
	} finally {
		progress?.stop();
	}
}

const lookEveryMs = 1_000;

/** Aborts when the hours of the campaign (`--window`) are over, with the time of the next ones. */
async function watchWindow(cx: CommandContext, scope: Scope) {
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	const controller = new AbortController();
	const plan = async () =>
		'campaign' in scope ? (await campaigns?.status(scope.campaign, { signal: cx.signal }))?.plan : undefined;
	const look = async () => {
		const now = await plan();
		if (now?.opens_at == null) return;
		const next = `${sayTime(now.opens_at, now)} ${now.time_zone}`;
		controller.abort(`its hours are over, and it continues at ${next}`);
	};
	const hasWindow = ((await plan())?.window ?? null) !== null;
	const timer = hasWindow ? setInterval(() => void look().catch(() => undefined), lookEveryMs) : undefined;
	return { signal: controller.signal, stop: () => clearInterval(timer) };
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

/** Exits that say "try again": after an acceptance that would send everything once more. */
const triedAgain: ReadonlySet<ExitCode> = new Set([
	...[exits.notFound, exits.authentication, exits.refused, exits.network, exits.server],
]);

/**
 * Runs the work after an acceptance. Its errors say that the messages are accepted, with exit 14 instead of a code that a
 * script answers with another try. `campaign`: its name; null for one submission.
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
		throw new CliError(
			isTriedAgain ? 'accepted_and_queued' : code,
			isTriedAgain ? exits.queued : exit,
			`${doNotRepeat}: ${message}`,
			{
				hint: campaign === null ? mailctl('messages', 'list') : await howToContinue(cx, campaign),
				...(details !== null && { details }),
				cause: error,
			},
		);
	}
}

/** A deadline's hint proposes another run, which may send twice. */
export function endOfSend(reason: unknown): unknown {
	if (!(reason instanceof DeadlinePassed)) return reason;
	return new CliError(reason.code, reason.exit, reason.message, { cause: reason });
}

export const noneSent = 'no recipient gets it: all are suppressed or canceled';

interface DeliveryEnd {
	/** Messages without an outcome. */
	waiting: number;
	/** Null for one submission. */
	campaign: { name: string; sentence: string; replies: CampaignStatus['replies'] } | null;
}

/** Reports how a delivery ended, and returns the exit code. `summary` null: this run did not wait. */
export async function concludeDelivery(
	cx: CommandContext,
	summary: DeliverySummary | null,
	{ waiting, campaign }: DeliveryEnd,
): Promise<ExitCode> {
	if (summary === null) return exits.done;
	const { kind, counts, warnings } = summary;
	for (const warning of warnings) await cx.warn(warning);
	if (kind === 'settled' || settledOf(counts) > 0) {
		const left = kind === 'settled' || waiting === 0 ? '' : `, still queued ${numberText(waiting)}`;
		await cx.note((campaign?.sentence ?? sentenceOf(counts)) + left);
	}
	for (const reply of campaign?.replies ?? []) await cx.note(replyText(reply));
	const end = await earlyEnd(cx, summary, campaign);
	if (end !== null) throw end;
	await sayRest(cx, summary, { waiting, campaign });
	if (kind === 'stopped') cx.signal.throwIfAborted();
	return exitOf(cx, counts, { waiting, campaign });
}

async function sayRest(
	cx: CommandContext,
	{ kind, counts }: DeliverySummary,
	{ waiting, campaign }: DeliveryEnd,
): Promise<void> {
	if (kind === 'stopped' && campaign !== null) await cx.hint(await howToContinue(cx, campaign.name));
	else if (kind === 'stopped' && waiting > 0)
		await cx.hint(['what was accepted stays queued; ', await sender(cx, '--drain'), ' sends it']);
	if (counts.deferred > 0) await cx.hint(['deferred messages are tried again by ', await sender(cx)]);
	if (counts.uncertain > 0 && (await (await cx.api()).capabilities()).ext.messages !== undefined)
		await cx.hint([mailctl('messages', 'list', '--status', 'uncertain'), ' shows what may have arrived']);
}

async function earlyEnd(
	cx: CommandContext,
	{ kind, reason }: DeliverySummary,
	campaign: DeliveryEnd['campaign'],
): Promise<CliError | null> {
	if (kind === 'paused') {
		const { local } = await cx.connection();
		const then = local === null ? 'the server sends it' : ['run ', mailctl('worker', '--drain')];
		return queuePaused(cx, { reason, hint: ['nothing is lost: correct it, then ', then], hasAccepted: true });
	}
	if (kind === 'closed')
		return new CliError('accepted_and_queued', exits.queued, `${doNotRepeat}: ${reason}`, {
			hint: [await sender(cx), ' has to run then'],
		});
	if (kind !== 'stalled') return null;
	const why = reason === null ? '' : `: ${reason}`;
	return new CliError('stalled', exits.outOfTime, `no progress within --wait-timeout${why}`, {
		hint: campaign
			? await howToContinue(cx, campaign.name)
			: [doNotRepeat, '; ', await sender(cx), ' continues'],
	});
}

async function exitOf(
	cx: CommandContext,
	counts: DeliveryCounts,
	{ waiting, campaign }: DeliveryEnd,
): Promise<ExitCode> {
	if (counts.uncertain > 0) return exits.uncertain;
	if (campaign === null && settledOf(counts) === counts.canceled && counts.canceled > 0 && waiting === 0) {
		await cx.warn(noneSent);
		return exits.partly;
	}
	return counts.bounced + counts.failed > 0 ? exits.partly : exits.done;
}
