/** Writes events of messages into a database, as tracking and bounces do. */
import { openStore } from '../../src/store/open.js';
import type { TrackedEvent } from '../../src/store/store.js';

export async function track(
	db: string,
	at: string,
	events: readonly (Pick<TrackedEvent, 'message' | 'type'> & Partial<TrackedEvent>)[],
): Promise<void> {
	const now = Date.parse(at) * 1_000;
	const store = await openStore(db, { clock: { now: () => now }, mode: 'existing', eventDelayMs: 0 });
	const rest = { link: null, ip: null, user_agent: null, url: null, smtp_code: null, diagnostic: null };
	await store.writes.recordEvents({
		events: events.map((event) => ({ at: now, machine: false, ...rest, ...event })),
	});
	await store.close();
}
