/** A thread that answers one question at a time, and restarts after a termination. */
import type { ResourceLimits, TransferListItem, Worker } from 'node:worker_threads';
import { spawnThread } from './spawn.js';

export interface RequestThread<Question, Answer> {
	ask(question: Question, handedOver?: readonly TransferListItem[]): Promise<Answer>;
	close(): Promise<void>;
}

export interface RequestThreadOptions {
	name: string;
	title: string;
	resourceLimits: ResourceLimits;
	deadlineMs: number;
	spawn?: typeof spawnThread;
}

const startMs = 30_000;
/** A thread may take this many times the deadline, because the machine may be busy. */
const patience = 12;

export function createRequestThread<Question, Answer>(
	options: RequestThreadOptions,
): RequestThread<Question, Answer> {
	const { name, title, resourceLimits, deadlineMs, spawn = spawnThread } = options;
	let worker: Worker | null = null;
	let last: Promise<unknown> = Promise.resolve();
	let isClosed = false;

	async function started(): Promise<Worker> {
		if (worker !== null) return worker;
		const fresh = spawn(name, { resourceLimits });
		worker = fresh;
		fresh.on('error', () => forget(fresh));
		fresh.on('exit', () => forget(fresh));
		await nextMessage(fresh, { timeoutMs: startMs, late: `${title} did not start`, title });
		return fresh;
	}

	function forget(gone: Worker): void {
		if (worker === gone) worker = null;
	}

	async function one(question: Question, handedOver: readonly TransferListItem[]): Promise<Answer> {
		if (isClosed) throw new Error(`${title} is closed`);
		try {
			const thread = await started();
			const late = `it took longer than ${deadlineMs} ms`;
			const answer = nextMessage<Answer>(thread, { timeoutMs: deadlineMs, late, title });
			thread.postMessage(question, handedOver);
			return await answer;
		} catch (error) {
			await end();
			throw error;
		}
	}

	async function end(): Promise<void> {
		const ending = worker;
		worker = null;
		await ending?.terminate();
	}

	return {
		ask(question, handedOver = []) {
			const answer = last.then(() => one(question, handedOver));
			last = answer.catch(() => undefined);
			return answer;
		},
		async close() {
			isClosed = true;
			await end();
		},
	};
}

/** Keeps the process alive only while it waits for a message. */
function nextMessage<Answer>(
	worker: Worker,
	{ timeoutMs, late, title }: { timeoutMs: number; late: string; title: string },
): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const settle = (outcome: () => void) => {
			stopWatch();
			worker.off('message', onMessage).off('error', onError).off('exit', onExit);
			worker.unref();
			outcome();
		};
		const onMessage = (answer: Answer) => settle(() => resolve(answer));
		const onError = (error: Error) => settle(() => reject(error));
		const onExit = () => settle(() => reject(new Error(`${title} ended`)));
		const stopWatch = watch(timeoutMs, () => settle(() => reject(new Error(late))));
		worker.ref();
		worker.on('message', onMessage).on('error', onError).on('exit', onExit);
	});
}

/** Late after `ms` of this process's CPU time, or after `patience` times `ms`: a busy machine delays threads. */
function watch(ms: number, onLate: () => void): () => void {
	const began = performance.now();
	const used = process.cpuUsage();
	let timer: NodeJS.Timeout;
	let turn: NodeJS.Immediate | undefined;
	const judge = () => {
		const { user, system } = process.cpuUsage(used);
		const leftMs = Math.min(ms - (user + system) / 1_000, patience * ms - (performance.now() - began));
		if (leftMs <= 0) onLate();
		else wait(leftMs);
	};
	const wait = (leftMs: number) => {
		timer = setTimeout(() => {
			turn = setImmediate(judge);
		}, leftMs);
	};
	wait(ms);
	return () => {
		clearTimeout(timer);
		clearImmediate(turn);
	};
}
