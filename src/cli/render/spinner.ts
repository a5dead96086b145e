import type { Wait } from '../../api/backoff.js';
import type { StatusLine } from './progress.js';

export interface SpinnerOptions {
	unicode: boolean;
	elapsedMs: () => number;
}

const silentMs = 1_000;
const turnMs = 120;

/** Shows the oldest of several waits. Its timers keep no process alive, and start with the first wait. */
export function createSpinner(
	stderr: StatusLine,
	{ unicode, elapsedMs }: SpinnerOptions,
): (what: string) => Wait {
	const turns = unicode ? '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏' : '|/-\\';
	const waits = new Set<{ what: string; note: string }>();
	let since = Number.NEGATIVE_INFINITY;
	let endedAt = Number.NEGATIVE_INFINITY;
	let drawnAt = Number.NEGATIVE_INFINITY;
	let timer: NodeJS.Timeout | null = null;
	let turn = 0;
	const draw = () => {
		const now = elapsedMs();
		const [oldest] = waits;
		if (oldest === undefined || now - Math.max(since, stderr.saidAt()) < silentMs) return;
		if (now - drawnAt < turnMs) return;
		drawnAt = now;
		turn = (turn + 1) % turns.length;
		const seconds = Math.floor((now - since) / 1_000);
		stderr.wait(`${turns[turn]} waiting for ${oldest.what}, ${seconds} s${oldest.note}`);
	};
	return (what) => {
		const wait = { what, note: '' };
		if (waits.size === 0 && elapsedMs() - endedAt > silentMs) since = elapsedMs();
		waits.add(wait);
		timer ??= setInterval(draw, turnMs).unref();
		draw();
		return {
			again: (repetition, of) => {
				wait.note = `, retrying (${repetition} of ${of})`;
			},
			end: () => {
				waits.delete(wait);
				endedAt = elapsedMs();
				if (waits.size > 0 || timer === null) return;
				clearInterval(timer);
				timer = null;
				stderr.wait(null);
			},
		};
	};
}
