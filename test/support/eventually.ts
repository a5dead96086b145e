/** Waiting for what a test is about to come true: the one place that says for how long. */
import { setTimeout as delay } from 'node:timers/promises';

/** Longer than a machine stands still: it ends a test of what never comes, and measures nothing. */
const patienceMs = 60_000;

/**
 * Gives what `check` gives as soon as it no longer throws.
 *
 * @param withinMs Longer only where a size from the environment makes the work longer.
 * @throws what `check` threw last, once that time has passed.
 */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = patienceMs): Promise<T> {
	const until = performance.now() + withinMs;
	for (;;) {
		const began = performance.now();
		try {
			return await check();
		} catch (error) {
			if (performance.now() > until) throw error;
		}
		// A look that is expensive takes at most half of what it waits for.
		await delay(Math.max(10, performance.now() - began));
	}
}
