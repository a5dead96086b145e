/** A person at a terminal: types each answer when its question has appeared. */
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
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
	let isOver = false;
	const type = async (answer: string | (() => Promise<string>), enter: string) => {
		const typed = typeof answer === 'string' ? answer : await answer();
		// The text may stand before its prompt, which drops what came before its first drawing, a turn after it began to read.
		while (!isOver && stdin.readableFlowing !== true) await nextTurn();
		await nextTurn();
		await nextTurn();
		stdin.write(`${typed}${enter}`);
	};
	const result = run({
		stdin,
		interactive: true,
		columns,
		heard: (text) => {
			const [next] = waiting;
			const at = next === undefined ? -1 : text.indexOf(next[0], read);
			if (next === undefined || at === -1) return;
			read = at + next[0].length;
			waiting.shift();
			void type(next[1], next[2] === 'all' ? '' : '\n');
		},
	});
	return result.finally(() => {
		isOver = true;
	});
}
