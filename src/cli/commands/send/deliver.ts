/**
 * The delivery of what was accepted: on the embedded engine `send` works off its own messages, a server of ours is waited
 * for, others tell nothing. How it ends is said here, and is the exit code.
 */

import { parseMailbox } from '../../../api/address.js';
import type { CampaignStatus } from '../../../api/campaigns.js';
import type { Messages } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/counts.js';
import { isRefusalOfSender, isRefusedSender, refusedSenderReason } from '../../../api/pauses.js';
import type { MessageHold, Uuid } from '../../../api/records.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { DeliveryScope, DeliverySummary } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, DeadlinePassed, NoSmtp } from '../../frame/errors.js';
import { classify, type ExitCode, exits, hinted } from '../../frame/exit.js';
import { replyText } from '../../render/replies.js';
import { numberText } from '../../render/units.js';
import { doNotRepeat, queuePaused, senderless } from '../../verbs/refusals.js';
import type { SendOptions } from './options.js';
import {
	asDelivered,
	type GoingOn,
	limitedUntil,
	outcomesOf,
	saysHowToLook,
	saysWhoGoesOn,
	sender,
	senderAfter,
	sentenceOf,
	settledOf,
	troublesOf,
	waitingOf,
} from './report.js';
import { type WindowWatch, watchWindow } from './timing.js';
import { watchSending } from './watch.js';

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

/** How to deliver, and where to look when that takes too long. */
type DeliverOptions = Pick<SendOptions, 'wait' | 'waitTimeout' | 'connections' | 'campaign'> & {
	/** Messages a second. */
	rate?: number | undefined;
	/** The messages of a submission. */
	ids?: readonly Uuid[];
};

/** Delivers the scope, or waits until a server has. `null`: with `--no-wait`, or where the service does not tell. */
export async function deliverNow(
	cx: CommandContext,
	scope: DeliveryScope,
	total: number,
	options: DeliverOptions,
): Promise<DeliverySummary | null> {
	const { api } = await cx.connection();
	const messages = (await api.capabilities()).ext.messages;
	if (messages === undefined || scope === null) return null;
	if (options.wait === false) {
		await cx.hint(['accepted and queued; ', await sender(cx), ' sends it']);
		return null;
	}
	const window = await watchWindow(cx, 'campaign' in scope ? scope.campaign : null);
	const summary = await deliver(cx, messages, { scope, total, options, window }).finally(window.stop);
	if (summary.kind === 'stopped' && window.reason !== null && !cx.signal.aborted)
		return { ...summary, kind: 'closed', reason: window.reason };
	if (summary.kind === 'settled' && 'submission' in scope && summary.counts.deferred > 0) {
		const reason = await refusalOf(messages, options.ids ?? []);
		if (reason !== null) return { ...summary, kind: 'paused', reason };
	}
	if (summary.kind !== 'stalled') return summary;
	const waited = { scope, ids: options.ids ?? [], signal: cx.signal };
	// The end of the wait is reported, with or without a reason.
	return { ...summary, reason: await whatHolds(messages, waited).catch(() => null) };
}

const settled = { kind: 'settled', reason: null } as const;

/** Without progress; milliseconds. */
export const defaultWaitMs = 600_000;

interface Wait {
	scope: NonNullable<DeliveryScope>;
	total: number;
	options: DeliverOptions;
	window: WindowWatch;
}

async function deliver(
	cx: CommandContext,
	messages: Messages,
	{ scope, total, options, window }: Wait,
): Promise<DeliverySummary> {
	const { local } = await cx.connection();
	const before = local === null ? 0 : await settledBefore(messages, scope, total);
	let progress = local === null ? null : cx.progress('sending', total, before);
	const onProgress = (counts: DeliveryCounts) => {
		const settled = before + settledOf(counts);
		// A server counts all messages of the scope: what it says first was settled before.
		progress ??= cx.progress('sending', total, settled);
		progress.update(settled, troublesOf(counts));
	};
	const signal = AbortSignal.any([cx.signal, window.signal]);
	try {
		if (local === null) {
			return await watchSending(messages, scope, {
				signal,
				stallMs: options.waitTimeout ?? defaultWaitMs,
				onSenderless: () => {
					void senderless(cx).then((hint) => cx.warn('nothing is sent', hint));
				},
				onProgress,
			});
		}
		const summary = await local.deliver({
			scope,
			until: 'settled',
			signal,
			leftMs: cx.leftMs(),
			stallMs: options.waitTimeout ?? defaultWaitMs,
			...(options.rate !== undefined && { rate: options.rate }),
			...(options.connections !== undefined && { connections: options.connections }),
			onProgress,
			onLimited: (until) => {
				void cx.warn(limitedUntil(until, cx.times));
			},
		});
		// Of the whole scope, as a server tells it: another process or an earlier call may have sent some of it.
		const { messages: states } = await messages.progress(scope);
		// What is deferred for its sender waits for a person.
		const isHeld = summary.kind === 'stopped' || isRefusedSender(summary.reason);
		const isDone = !isHeld && waitingOf(states) === 0;
		const isTried = settledOf(summary.counts) > 0;
		return { ...summary, ...(isDone && settled), counts: asDelivered(outcomesOf(states)), isTried };
	} finally {
		progress?.stop();
	}
}

/** What earlier runs have settled: a worker counts its own messages only. */
async function settledBefore(
	messages: Messages,
	scope: NonNullable<DeliveryScope>,
	total: number,
): Promise<number> {
	const { messages: states } = await messages.progress(scope);
	return Math.max(0, total - waitingOf(states) - (states.deferred ?? 0));
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
 * The work after an acceptance. What goes wrong in it says that the messages are accepted: exit 14 instead of a code
 * that a script answers with another try, and never retryable. `campaign`: null for one submission.
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
		if (cx.signal.aborted || !(triedAgain.has(exit) || retryable)) throw error;
		const isTriedAgain = triedAgain.has(exit);
		throw new CliError(
			isTriedAgain ? 'accepted_and_queued' : code,
			isTriedAgain ? exits.queued : exit,
			`${doNotRepeat}: ${message}`,
			{ hint: await saysWhere(cx, campaign), ...(details !== null && { details }), cause: error },
		);
	}
}

/** Once it may be accepted, another run is no way out of a deadline. */
export function endOfSend(reason: unknown): unknown {
	if (!(reason instanceof DeadlinePassed)) return reason;
	return new CliError(reason.code, reason.exit, reason.message, { cause: reason });
}

async function saysWhere(cx: CommandContext, campaign: string | null): Promise<Hint> {
	const { local } = await cx.connection();
	if (campaign === null) return [mailctl('messages', 'list'), ' shows what became of it'];
	if (local === null) return saysHowToLook(campaign);
	return [mailctl('campaigns', 'resume', campaign), ' goes on: no recipient gets it twice'];
}

/** Where to look for one that still waits. */
interface Waited {
	scope: NonNullable<DeliveryScope>;
	/** The messages of a submission, which nothing else names; of a campaign none need be given. */
	ids: readonly Uuid[];
	signal: AbortSignal;
}

/** Why the last messages of a submission wait, where the mail server refuses their sender. */
async function refusalOf(messages: Messages, ids: readonly Uuid[]): Promise<string | null> {
	for (const id of ids.slice(-mostLookedAt)) {
		const { state, from, last_reply } = await messages.get(id);
		if (state === 'deferred' && last_reply !== null && isRefusalOfSender(last_reply))
			return refusedSenderReason(parseMailbox(from)?.address ?? from, last_reply);
	}
	return null;
}

/** So many of a submission are looked at: the last ones, which are sent last. */
const mostLookedAt = 20;

/** `the limit 100/h of send_limit holds back what is left until …`; null when it is no limit, or not told. */
async function whatHolds(messages: Messages, waited: Waited): Promise<string | null> {
	const { signal } = waited;
	for (const id of await candidates(messages, waited)) {
		const { state, held_by = [] } = await messages.get(id, { signal });
		const [hold] = held_by;
		if (state === 'queued') return hold === undefined ? null : sayHold(hold);
	}
	return null;
}

async function candidates(messages: Messages, { scope, ids, signal }: Waited): Promise<readonly Uuid[]> {
	if ('submission' in scope) return ids.slice(-mostLookedAt).reverse();
	const filter = { campaign_unique_id: scope.campaign, status: 'queued', page_size: 1 } as const;
	const { results } = await messages.page(filter, { signal });
	return results.map(({ id }) => id);
}

function sayHold({ setting, limit, until }: MessageHold): string {
	return `the limit ${limit} of ${setting} holds back what is left until ${until.slice(0, 19)}Z`;
}

/** A campaign that was delivered, in words. */
interface CampaignEnd extends GoingOn {
	/** How far it is. */
	sentence: string;
	replies?: CampaignStatus['replies'];
}

/** Facts about a delivery beyond its own summary. */
interface DeliveryEnd {
	/** Messages without an outcome yet. */
	waiting: number;
	/** null: no campaign, but one submission. */
	campaign: CampaignEnd | null;
}

/** Exit 9 where that is all there is to say. */
export const noneSent = 'no recipient gets it: all are suppressed or canceled';

/** The words after a delivery, and the exit code they mean. `summary` null: it was not waited for. */
export async function concludeDelivery(
	cx: CommandContext,
	summary: DeliverySummary | null,
	{ waiting, campaign }: DeliveryEnd,
): Promise<ExitCode> {
	if (summary === null) return exits.done;
	const { kind, counts, warnings } = summary;
	for (const warning of warnings) await cx.warn(warning);
	const isSettled = kind === 'settled';
	// Where nothing went out, "sent 0" in front of the reason says nothing.
	if (isSettled || Object.values(counts).some((count) => count > 0))
		await cx.note((campaign?.sentence ?? sentenceOf(counts)) + (isSettled ? '' : stillQueued(waiting)));
	for (const reply of campaign?.replies ?? []) await cx.note(replyText(reply));
	const left = await leftBehind(cx, summary, campaign);
	if (left !== null) throw left;
	if (kind === 'stopped') await hintAtRest(cx, { waiting, campaign });
	if (counts.deferred > 0) await cx.hint(['deferred messages are tried again by ', await sender(cx)]);
	const doubt = counts.uncertain > 0 ? await uncertain(cx) : null;
	if (kind === 'stopped') cx.signal.throwIfAborted();
	if (doubt !== null) return doubt;
	if (campaign === null && settledOf(counts) === counts.canceled && counts.canceled > 0 && waiting === 0) {
		await cx.warn(noneSent);
		return exits.partly;
	}
	if (isSettled && campaign !== null) await hintNext(cx, campaign, counts);
	return counts.bounced + counts.failed > 0 ? exits.partly : exits.done;
}

/** What a person looks at next, where the service tells of it. */
async function hintNext(
	cx: CommandContext,
	{ name }: CampaignEnd,
	{ bounced, failed }: DeliverySummary['counts'],
): Promise<void> {
	if (!cx.canAsk || (await (await cx.api()).capabilities()).ext.reports === undefined) return;
	const only = bounced > 0 ? 'bounced' : failed > 0 ? 'failed' : null;
	await cx.hint(
		only === null
			? ['who opens and clicks it: ', mailctl('campaigns', 'report', name)]
			: ['who did not get it, and why: ', mailctl('campaigns', 'results', name, '--only', only)],
	);
}

/** The error of a delivery that ended by itself and left messages; null: it is none. */
async function leftBehind(
	cx: CommandContext,
	{ kind, reason }: DeliverySummary,
	campaign: CampaignEnd | null,
): Promise<CliError | null> {
	if (kind === 'paused') {
		const hint = ['nothing is lost: mend it, then ', await senderAfter(cx)];
		return queuePaused(cx, { reason, hint, hasAccepted: true });
	}
	if (kind === 'closed') {
		const rest =
			campaign === null ? [] : [', ', mailctl('campaigns', 'cancel', campaign.name), ' drops the rest'];
		return new CliError('accepted_and_queued', exits.queued, `${doNotRepeat}: ${reason}`, {
			hint: [await sender(cx), ' has to run then', ...rest],
		});
	}
	if (kind !== 'stalled') return null;
	return new CliError('stalled', exits.outOfTime, stalledBecause(reason), {
		hint: campaign ? await saysWhoGoesOn(cx, campaign) : [doNotRepeat, '; ', await sender(cx), ' goes on'],
	});
}

/** How what a stopped run has left goes on. */
async function hintAtRest(cx: CommandContext, { waiting, campaign }: DeliveryEnd): Promise<void> {
	if (campaign !== null) await cx.hint(await saysWhoGoesOn(cx, campaign));
	else if (waiting > 0)
		await cx.hint(['what was accepted stays queued; ', await sender(cx, '--drain'), ' sends it']);
}

/** Only a person can decide about these, where the service offers it. */
async function uncertain(cx: CommandContext): Promise<ExitCode> {
	const { api } = await cx.connection();
	if ((await api.capabilities()).ext.messages !== undefined)
		await cx.hint([
			mailctl('messages', 'list', '--status', 'uncertain'),
			' shows what may or may not have arrived; ',
			mailctl('messages', 'retry', 'ID'),
			' sends it again',
		]);
	return exits.uncertain;
}

function stillQueued(waiting: number): string {
	return waiting > 0 ? `, still queued ${numberText(waiting)}` : '';
}

function stalledBecause(reason: string | null): string {
	return `no progress within --wait-timeout${reason === null ? '' : `: ${reason}`}`;
}
