/** A person at a terminal: types each answer when its question has appeared. */
import { PassThrough } from 'node:stream';
import type { CliOptions, CliResult } from './cli.js';

/**
 * Each answer is what is typed once stderr shows the text before it, or makes that; Enter follows unless the keys are all.
 */
export function typing(
	answers: readonly (readonly [question: string, answer: string | (() => Promise<string>), keys?: 'all'])[],
	run: (options: CliOptions) => Promise<CliResult>,
	columns = 100,
): Promise<CliResult> {
	const stdin = new PassThrough();
	const waiting = [...answers];
	let read = 0;
	return run({
		stdin,
		interactive: true,
		columns,
		heard: (text) => {
			const [next] = waiting;
			const at = next === undefined ? -1 : text.indexOf(next[0], read);
			if (next === undefined || at === -1) return;
			read = at + next[0].length;
			waiting.shift();
			// The prompt listens once it has been drawn.
			setImmediate(async () => {
				const typed = typeof next[1] === 'string' ? next[1] : await next[1]();
				stdin.write(next[2] === 'all' ? typed : `${typed}\n`);
			});
		},
	});
}
