/** A person at a terminal who types each answer after its question appears. */
import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { CliOptions, CliResult } from './cli.js';

export function typing(
	answers: readonly (readonly [question: string, answer: string | (() => Promise<string>), keys?: 'all'])[],
	run: (options: CliOptions) => Promise<CliResult>,
	columns = 100,
): Promise<CliResult> {
	const stdin = new PassThrough();
	const waiting = [...answers];
	let read = 0;
	let heard = 0;
	let isOver = false;
	const quiet = async () => {
		for (let before = -1; !isOver && before !== heard; ) {
			before = heard;
			await delay(12);
		}
	};
	const type = async (answer: string | (() => Promise<string>), enter: string) => {
		const typed = typeof answer === 'string' ? answer : await answer();
		while (!isOver && stdin.readableFlowing !== true) await delay(5);
		await quiet();
		stdin.write(typed);
		while (enter !== '' && !isOver) {
			await quiet();
			const before = heard;
			stdin.write(enter);
			for (let waited = 0; waited < 50; waited += 5) {
				await delay(5);
				if (heard !== before) return;
			}
		}
	};
	const result = run({
		stdin,
		interactive: true,
		columns,
		heard: (text) => {
			heard = text.length;
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
