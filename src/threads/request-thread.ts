/** A thread that answers one question at a time, and restarts after a termination. */
import type { ResourceLimits } from 'node:worker_threads';
import { Channel } from './channel.js';
import { spawnThread } from './spawn.js';

export interface RequestThread<Question, Answer> {
	ask(question: Question): Promise<Answer>;
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
const patience = 12;

export function createRequestThread<Question, Answer>(
	options: RequestThreadOptions,
): RequestThread<Question, Answer> {
	const { name, title, resourceLimits, deadlineMs, spawn = spawnThread } = options;
	let channel: Channel | null = null;
	let last: Promise<unknown> = Promise.resolve();
	let isClosed = false;

	function start(): Channel {
		const fresh = new Channel(spawn(name, { resourceLimits }), {
			failed: (why, cause) => new Error(`${title} ${why}`, { cause }),
			onFailure: () => forget(fresh),
		});
		return fresh;
	}

	function forget(gone: Channel): void {
		if (channel === gone) channel = null;
	}

	function within<T>(asked: Channel, answer: Promise<T>, ms: number, late: string): Promise<T> {
		asked.ref();
		const stopWatch = watch(ms, () => {
			forget(asked);
			void asked.end(new Error(late));
		});
		return answer.finally(() => {
			stopWatch();
			asked.unref();
		});
	}

	async function one(question: Question): Promise<Answer> {
		if (isClosed) throw new Error(`${title} is closed`);
		const isNew = channel === null;
		channel ??= start();
		const asked = channel;
		if (isNew) await within(asked, asked.ask('started', null), startMs, `${title} did not start`);
		const answer = asked.ask('read', question) as Promise<Answer>;
		return within(asked, answer, deadlineMs, `it took longer than ${deadlineMs} ms`);
	}

	return {
		ask(question) {
			const answer = last.then(() => one(question));
			last = answer.catch(() => undefined);
			return answer;
		},
		async close() {
			isClosed = true;
			await channel?.end();
		},
	};
}

/** Calls `onLate` once this process has used `ms` of CPU time, or after `patience * ms` of real time. */
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
