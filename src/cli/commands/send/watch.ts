/** The wait for a server of ours, which sends by itself. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Messages } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/counts.js';
import type { DeliverySummary } from '../../frame/connection.js';
import { asDelivered, outcomesOf, settledOf, waitingOf } from './report.js';

interface WatchOptions {
	signal: AbortSignal;
	/** Without a message settled for so long, it gives up; milliseconds. */
	stallMs: number;
	/** Once, where no process sends for a while: it may be started anew. */
	onSenderless: () => void;
	onProgress: (counts: DeliveryCounts) => void;
}

/** Between two questions: soon for one message, seldom for a large campaign. */
const firstPauseMs = 30;
const longestPauseMs = 1_000;
/** A server may have heard of a mended mail server only by its next try: one look is not enough. */
const pausedMs = 5_000;

/** As a delivery on a database of this machine ends: settled, paused, stalled, or stopped by the signal. */
export async function watchSending(
	messages: Messages,
	scope: Parameters<Messages['progress']>[0],
	{ signal, stallMs, onSenderless, onProgress }: WatchOptions,
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
		const progress = await messages.progress(scope, { signal }).catch(orNullWhen(signal));
		if (progress === null) return end('stopped');
		const before = settledOf(counts);
		counts = asDelivered(outcomesOf(progress.messages));
		if (settledOf(counts) !== before) movedAt = performance.now();
		if (waitingOf(progress.messages) === 0) return end('settled');
		// Told even when nothing moved: the first message may take a while.
		onProgress(counts);
		const still = performance.now() - movedAt;
		if (progress.paused !== null && still >= Math.min(pausedMs, stallMs))
			return end('paused', progress.paused);
		if (still >= stallMs) return end('stalled');
		if (progress.has_worker === false && still >= pausedMs && !isToldSenderless) {
			isToldSenderless = true;
			onSenderless();
		}
		await wait(pause, undefined, { signal }).catch(() => undefined);
	}
}

function orNullWhen(signal: AbortSignal): (error: unknown) => null {
	return (error) => {
		if (signal.aborted) return null;
		throw error;
	};
}
