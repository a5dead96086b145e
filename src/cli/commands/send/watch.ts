/** Waits for what a server of ours sends: asks how far it is until every message has come to something. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Messages, SendingProgress } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/delivery-counts.js';
import type { DeliverySummary } from '../../connection.js';

export interface WatchOptions {
	signal: AbortSignal;
	/** Without a message settled for so long, it gives up; milliseconds. */
	stallMs: number;
	onProgress: (counts: DeliveryCounts) => void;
	/** Milliseconds, only ever subtracted from each other. */
	elapsedMs: () => number;
}

/** Between two questions: soon for one message, seldom for a long mailing. */
const firstPauseMs = 30;
const longestPauseMs = 1_000;
/** A server may have heard of a mended mail server only by its next try: one look is not enough. */
const pausedMs = 5_000;

/** As a delivery on a database of this machine ends: settled, paused, stalled, or stopped by the signal. */
export async function watchSending(
	messages: Messages,
	scope: Parameters<Messages['progress']>[0],
	{ signal, stallMs, onProgress, elapsedMs }: WatchOptions,
): Promise<DeliverySummary> {
	let counts = countsOf({});
	let movedAt = elapsedMs();
	const end = (kind: DeliverySummary['kind'], reason: string | null = null) => ({
		kind,
		reason,
		counts,
		warnings: [],
	});
	for (let pause = firstPauseMs; ; pause = Math.min(longestPauseMs, pause * 1.5)) {
		if (signal.aborted) return end('stopped');
		const progress = await messages.progress(scope, { signal }).catch(orNullWhen(signal));
		if (progress === null) return end('stopped');
		const before = settledOf(counts);
		counts = countsOf(progress.messages);
		if (settledOf(counts) !== before) movedAt = elapsedMs();
		// Told even when nothing moved: who waits for the first message wants to see that somebody waits.
		onProgress(counts);
		if (openOf(progress) === 0) return end('settled');
		const still = elapsedMs() - movedAt;
		if (progress.paused !== null && still >= Math.min(pausedMs, stallMs))
			return end('paused', progress.paused);
		if (still >= stallMs) return end('stalled');
		await wait(pause, undefined, { signal }).catch(() => undefined);
	}
}

function countsOf(messages: SendingProgress['messages']): DeliveryCounts {
	const { sent = 0, deferred = 0, bounced = 0, failed = 0, uncertain = 0, canceled = 0 } = messages;
	return { sent, deferred, bounced, failed, uncertain, canceled };
}

/** Deferred ones have come to something: they are tried again later. */
function openOf({ messages: { staged = 0, queued = 0, leased = 0 } }: SendingProgress): number {
	return staged + queued + leased;
}

function settledOf(counts: DeliveryCounts): number {
	return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function orNullWhen(signal: AbortSignal): (error: unknown) => null {
	return (error) => {
		if (signal.aborted) return null;
		throw error;
	};
}
