/** Writes outcomes in groups of 50 or 50 ms: one commit for many, and a crash forgets little. */
import type { Uuid } from '../api/records.js';
import type { Queue, Settlement } from '../store/queue.js';

export interface Settler {
	/** Never throws; a failed write is told to `onFault` and kept for the next flush. */
	push(settlement: Settlement): void;
	/** Outcomes not written yet. */
	readonly unsettled: number;
	/** Resolves when all is written; rejects with the store's error. */
	flush(): Promise<void>;
}

export interface SettlerOptions {
	queue: Pick<Queue, 'settle'>;
	/** The fence that holds a message now; `undefined` = the one it was pushed with. */
	fenceOf: (message: Uuid) => number | undefined;
	onSettled: (settlement: Settlement, result: 'recorded' | 'lost_lease') => void;
	onFault: (error: unknown) => void;
	/** A group is about to be written: what else is asked of the store now shares its commit. */
	onWrite: () => void;
}

/** Half of what may be unsettled, so that sending goes on while a group is written. */
const groupSize = 50;
const groupMs = 50;

/**
 * For one run, which flushes before it ends: what is pending then is in memory only, and is sent again if it is lost.
 */
export function createSettler({ queue, fenceOf, onSettled, onFault, onWrite }: SettlerOptions): Settler {
	const pending: Settlement[] = [];
	let timer: NodeJS.Timeout | null = null;
	let writing: Promise<void> | null = null;

	const writeGroup = async () => {
		const settlements = pending
			.slice(0, groupSize)
			.map((each) => ({ ...each, fence: fenceOf(each.message) ?? each.fence }));
		const settling = queue.settle({ settlements });
		onWrite();
		const results = await settling;
		pending.splice(0, settlements.length);
		settlements.forEach((settlement, index) => {
			const result = results[index] ?? 'lost_lease';
			const fence = fenceOf(settlement.message);
			// Leased anew by ourselves while this group was on its way: once more, under that fence.
			const isOurs = result === 'lost_lease' && fence !== undefined && fence !== settlement.fence;
			if (isOurs) pending.push(settlement);
			else onSettled(settlement, result);
		});
	};
	const write = () => {
		writing ??= writeGroup().finally(() => {
			writing = null;
		});
		return writing;
	};
	const stopTimer = () => {
		if (timer !== null) clearTimeout(timer);
		timer = null;
	};
	const flush = async () => {
		stopTimer();
		while (pending.length > 0) await write();
	};
	/** Full groups only, or the one whose time has come: small ones behind it would cost a commit each. */
	const writeDue = async () => {
		stopTimer();
		do await write();
		while (pending.length >= groupSize);
		startTimer();
	};
	const writeQuietly = () => void writeDue().catch(onFault);
	const startTimer = () => {
		if (pending.length > 0) timer ??= setTimeout(writeQuietly, groupMs);
	};
	return {
		get unsettled() {
			return pending.length;
		},
		flush,
		push(settlement) {
			pending.push(settlement);
			if (pending.length === groupSize) writeQuietly();
			else startTimer();
		},
	};
}
