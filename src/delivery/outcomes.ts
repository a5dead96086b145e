import type { Uuid } from '../api/records.js';
import type { Queue } from '../store/operations.js';
import type { Settlement } from '../store/queue.js';

export interface OutcomeBatcher {
	push(settlement: Settlement): void;
	readonly unsettled: number;
	flush(): Promise<void>;
}

interface BatcherOptions {
	queue: Pick<Queue, 'settle'>;
	fenceOf: (message: Uuid) => number | undefined;
	onSettled: (settlement: Settlement, result: 'recorded' | 'lost_lease') => void;
	onFault: (error: unknown) => void;
	onWrite: () => void;
}

/** Half of the messages that may be unrecorded, so that sending continues during a write. */
const groupSize = 50;
const groupMs = 50;

/** Pending outcomes exist only in memory, so a run flushes them before it ends. */
export function createOutcomeBatcher({
	queue,
	fenceOf,
	onSettled,
	onFault,
	onWrite,
}: BatcherOptions): OutcomeBatcher {
	const pending: Settlement[] = [];
	let timer: NodeJS.Timeout | null = null;
	let writing: Promise<void> | null = null;

	const writeGroup = async () => {
		const settlements = pending
			.slice(0, groupSize)
			.map(({ message, fence, at, outcome }) => ({ message, fence: fenceOf(message) ?? fence, at, outcome }));
		const settling = queue.settle({ settlements });
		onWrite();
		const results = await settling;
		pending.splice(0, settlements.length);
		settlements.forEach((settlement, index) => {
			const result = results[index] ?? 'lost_lease';
			const fence = fenceOf(settlement.message);
			// This run leased the message again during the write, so repeat the outcome with the new fence.
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
	/** Writes full groups, or a smaller group whose time has come, because each write costs a commit. */
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

/** Writes each outcome at once, so that it is durable before the next call. */
export function createPromptBatcher({
	queue,
	onSettled,
	onFault,
}: Pick<BatcherOptions, 'queue' | 'onSettled' | 'onFault'>): OutcomeBatcher {
	let pushed: Settlement[] = [];
	let failed: Settlement[] = [];
	let unsettled = 0;
	let last: Promise<void> = Promise.resolve();
	const write = async (settlements: readonly Settlement[]) => {
		const results = await queue.settle({ settlements, gathers: true });
		unsettled -= settlements.length;
		for (const [index, settlement] of settlements.entries())
			onSettled(settlement, results[index] ?? 'lost_lease');
	};
	const writePushed = () => {
		const group = pushed;
		pushed = [];
		const writing = write(group).catch((error: unknown) => {
			failed.push(...group);
			onFault(error);
		});
		last = Promise.all([last, writing]).then(() => undefined);
	};
	return {
		get unsettled() {
			return unsettled;
		},
		flush: async () => {
			if (pushed.length > 0) writePushed();
			await last;
			const again = failed;
			if (again.length === 0) return;
			await write(again);
			failed = failed.filter((settlement) => !again.includes(settlement));
		},
		push: (settlement) => {
			unsettled += 1;
			pushed.push(settlement);
			if (pushed.length === 1) queueMicrotask(() => pushed.length > 0 && writePushed());
		},
	};
}
