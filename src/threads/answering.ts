import { parentPort } from 'node:worker_threads';
import { type Answer, formatFailure, type Question } from './channel.js';

export type Methods = Record<string, (value: never, means?: { signal: AbortSignal }) => unknown>;

const longMs = 1;

/** Carries no reason, because `Channel.ask` throws the reason of the caller's signal instead. */
class Stopped extends Error {
	override readonly name = 'Stopped';
}

/** Calls `methods` in the order of the questions. Every thread also answers `started`, which shows that it runs. */
export function answerQuestions(methods: Methods): void {
	const stopping = new Map<number, AbortController>();
	const own: Methods = {
		started: () => null,
		stop: (id: number) => stopping.get(id)?.abort(new Stopped()),
	};
	const answers: Answer[] = [];
	const post = (one: Answer) => {
		answers.push(one);
		if (answers.length === 1) process.nextTick(() => parentPort?.postMessage(answers.splice(0)));
	};
	const answer = async ({ id, method, value, isStoppable }: Question) => {
		const stop = isStoppable ? new AbortController() : null;
		if (stop !== null) stopping.set(id, stop);
		try {
			const run = methods[method] ?? own[method];
			if (run === undefined) throw new Error(`this thread has no method ${method}`);
			post({ id, kind: 'value', value: await run(value as never, stop ?? undefined) });
		} catch (error) {
			post({ id, kind: 'failure', failure: formatFailure(error) });
		} finally {
			stopping.delete(id);
		}
	};
	const begin = async (questions: readonly Question[]) => {
		let since = performance.now();
		for (const question of questions) {
			void answer(question);
			if (performance.now() - since <= longMs) continue;
			await new Promise((resolve) => setImmediate(resolve));
			since = performance.now();
		}
	};
	let turn = Promise.resolve();
	parentPort?.on('message', (questions: readonly Question[]) => {
		turn = turn.then(() => begin(questions));
	});
}
