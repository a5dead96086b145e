/**
 * Measures a client of the attacked server, and a client of a server that nobody attacks. Both depend on the load of
 * the machine, and only the first on the attack.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { memoryOf } from './memory.js';
import type { Serving } from './serving.js';

interface Observed {
	statuses: Record<string, number>;
	p99: number;
	patience: number;
	peakMb: number;
}

const enoughAnswers = 50;
const longestMs = 60_000;

export async function observe(
	{ attacked, calm }: { attacked: Serving; calm: Serving },
	attack: (enough: AbortSignal) => Promise<unknown>,
): Promise<Observed> {
	const enough = new AbortController();
	setMaxListeners(0, enough.signal);
	const isOver = { yet: false };
	const asking = ask(attacked, isOver, (answers) => {
		if (answers === enoughAnswers) enough.abort();
	});
	const askingCalm = ask(calm, isOver);
	const timer = setTimeout(() => enough.abort(), longestMs);
	try {
		await attack(enough.signal);
	} finally {
		clearTimeout(timer);
		isOver.yet = true;
		await Promise.all([asking, askingCalm]);
	}
	const [{ statuses, p99 }, beside] = await Promise.all([asking, askingCalm]);
	return {
		statuses,
		p99,
		patience: Math.max(5_000, 25 * beside.p99),
		peakMb: memoryOf(attacked.process.pid).peakMb,
	};
}

async function ask(
	serving: Serving,
	isOver: { readonly yet: boolean },
	onAnswer: (answers: number) => void = () => {},
): Promise<Pick<Observed, 'statuses' | 'p99'>> {
	const took: number[] = [];
	const statuses: Record<string, number> = {};
	while (!isOver.yet) {
		const began = performance.now();
		const status = await serving
			.fetch('/sub/lists/', { headers: { Connection: 'close' }, signal: AbortSignal.timeout(longestMs) })
			.then(async (answer) => {
				await answer.text();
				return String(answer.status);
			})
			.catch(() => 'none');
		took.push(performance.now() - began);
		statuses[status] = (statuses[status] ?? 0) + 1;
		onAnswer(took.length);
		await wait(25);
	}
	took.sort((a, b) => a - b);
	return { statuses, p99: took[Math.ceil(took.length * 0.99) - 1] ?? Number.NaN };
}
