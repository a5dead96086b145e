/** Waits until an assertion passes. No other file sets the time limit. */
import { setTimeout as delay } from 'node:timers/promises';

const patienceMs = 60_000;

export async function eventually<T>(check: () => T | Promise<T>, withinMs = patienceMs): Promise<T> {
	const until = performance.now() + withinMs;
	for (;;) {
		const began = performance.now();
		try {
			return await check();
		} catch (error) {
			if (performance.now() > until) throw error;
		}
		await delay(Math.max(10, performance.now() - began));
	}
}
