/** The queue of a database of this machine, with times as the API writes them. */
import { type Clock, formatDateTime, type Micros } from '../../api/datetime.js';
import type { QueuePause, QueueState } from '../../store/queue.js';
import type { Store } from '../../store/store.js';
import type { LocalEngine } from '../frame/connection.js';
import type { QueueStats } from '../frame/engine-state.js';

/** `resume` lifts a person’s pause and a fault alike; faults are paused by workers, never from here. */
export function localQueue({ store, clock }: { store: Store; clock: Clock }): LocalEngine['queue'] {
	return {
		stats: async () => toStats(await store.reads.queueState({ now: clock.now() })),
		keepRate: (campaign, rate) => store.writes.keepCampaignRate({ campaign, rate }),
		hasWorker: () => store.reads.hasWorker({ now: clock.now() }),
		waiting: async () => {
			const { queued = 0, leased = 0, deferred = 0 } = await store.reads.countWaiting();
			return { queued, leased, deferred, next: await store.reads.nextDue({ scope: null }) };
		},
		nextDue: (campaign) => store.reads.nextDue({ scope: campaign === null ? null : { campaign } }),
		pause: async (reason) =>
			toPause(await store.queue.pause({ kind: 'manual', reason, retry_at: null, now: clock.now() })),
		resume: () => store.queue.resume({ kinds: ['manual', 'fault', 'refusal'], retry_at: clock.now() }),
	};
}

function toStats(state: QueueState): QueueStats {
	return {
		paused: firstPause(state.pauses),
		messages: state.messages,
		due: state.due,
		held: state.held,
		oldest: timeOf(state.oldest_at),
		next_due: timeOf(state.next_due_at),
		workers: state.workers.map(({ heard_at, ...worker }) => ({ ...worker, heard: timeOf(heard_at) })),
		deferred: state.deferred.map(({ domain, messages, next_due_at, last_reply }) => ({
			domain,
			messages,
			next_due: formatDateTime(next_due_at),
			last_reply,
		})),
		limits: state.limits.map(({ next_at, last_at, ...limit }) => ({
			...limit,
			next: formatDateTime(next_at),
			last: formatDateTime(last_at),
		})),
		replies: state.replies,
	};
}

/** The pause to report; a pause by hand comes before a fault. */
export function firstPause([paused]: readonly QueuePause[]): QueueStats['paused'] {
	return paused === undefined || paused.kind === 'refusal' ? null : toPause(paused);
}

function toPause({ kind, reason, since, retry_at, faults }: QueuePause): NonNullable<QueueStats['paused']> {
	const shown = kind === 'manual' ? kind : 'fault';
	return { kind: shown, reason, since: formatDateTime(since), retry_at: timeOf(retry_at), faults };
}

function timeOf(at: Micros | null): string | null {
	return at === null ? null : formatDateTime(at);
}
