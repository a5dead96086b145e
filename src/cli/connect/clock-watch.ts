import { type Micros, microsPerSecond } from '../../api/datetime.js';
import { spanText } from '../render/units.js';
import type { LocalParts } from './parts.js';

export interface ClockStep {
	seconds: number;
	text: string;
}

const everyMs = 1_000;
/** Less is slewed, and does no harm. */
const worthTelling: Micros = microsPerSecond;

/** Looks each second until it is stopped, and keeps no process alive. A clock that nothing sets is not watched. */
export function watchClock(
	{ clock, store }: Pick<LocalParts, 'clock' | 'store'>,
	onStep: (step: ClockStep) => void,
): { stop(): void } {
	const whose = store.clock === undefined ? 'this machine' : 'the database';
	const { steady } = clock;
	if (steady === undefined) return { stop: () => undefined };
	let ahead = clock.now() - steady();
	const timer = setInterval(() => {
		const found = clock.now() - steady();
		const by = found - ahead;
		ahead = found;
		if (Math.abs(by) >= worthTelling)
			onStep({ seconds: Math.round(by / microsPerSecond), text: stepText(by, whose) });
	}, everyMs).unref();
	return { stop: () => clearInterval(timer) };
}

function stepText(by: Micros, whose: string): string {
	const span = spanText(by);
	return by < 0
		? `the clock of ${whose} was set back by ${span}`
		: `the clock of ${whose} was set forward by ${span}, or the machine slept`;
}
