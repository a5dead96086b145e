import { randomUUID } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { createContentCache } from '../../src/content/cache.js';
import { contentSha256 } from '../../src/content/hash.js';
import type { SmtpPool } from '../../src/delivery/smtp/pool.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { testPool, testWorker } from '../support/delivery.js';
import { createMemoryQueue } from '../support/memory-queue.js';
import { createQueuedDatabase } from '../support/queued-database.js';
import { readHere } from '../support/read-here.js';
import { type FaultServer, startFaultServer } from '../support/smtp-fault.js';

const micros = (utc: string) => Date.parse(utc) * 1000;

let server: FaultServer | undefined;
let pool: SmtpPool | undefined;
afterEach(async () => {
	pool?.abort();
	await server?.close();
});

async function releaseCampaign({ writes }: Store, count: number, now: number): Promise<void> {
	const content = { subject: 'Hi', text: 'Hello', html: null, disable_inline: true };
	const shared = { from_key: 'news@example.com', tag: null, content, content_sha256: contentSha256(content) };
	const opened = await writes.openCampaign({
		id: randomUUID(),
		key: 'hours',
		spec: { from: 'news@example.com', type: 'TRANSACTIONAL', subject: 'Hi', text_body: 'Hello' },
		strict_vars: false,
		submission: {
			id: randomUUID(),
			type: 'TRANSACTIONAL',
			envelope: { from: 'news@example.com', reply_to: [], cc: [], bcc: [], headers: {} },
			...shared,
			...{ variables: [], context: {}, list_id: null, now },
		},
		timing: { starts_at: null, window: '09:00-18:00', time_zone: 'Europe/Oslo' },
		now,
	});
	if (opened.kind !== 'opened') throw new Error(opened.kind);
	const { id } = opened.session;
	const rows = Array.from({ length: count }, (_, at) => {
		const to = `c${at}@example.net`;
		return { kind: 'recipient', to, to_key: to, context: {} } as const;
	});
	await writes.putCampaignBatch({ campaign: id, first: 0, rows, now });
	expect(await writes.releaseCampaign({ campaign: id, expect_count: count, now })).toEqual({
		kind: 'released',
	});
}

it('a worker starts messages only in a sending window, and sends each one once', async () => {
	const count = 400;
	const last = 50;
	let now = micros('2026-11-20T16:59:00Z');
	const told: { at: number; line: string }[] = [];
	server = await startFaultServer({
		on: (_phase, line) => {
			if (!line.startsWith('RCPT')) return undefined;
			told.push({ at: now, line });
			if (told.length === last) now = micros('2026-11-20T17:00:00Z');
			return undefined;
		},
	});
	pool = testPool(server.port);
	const { path } = await createQueuedDatabase(0);
	const store = await openStore(path, { clock: systemClock, mode: 'existing' });
	await releaseCampaign(store, count, now);
	const untilClosed: number[] = [];
	const clock = { now: () => now, steady: systemClock.steady ?? systemClock.now };
	const contents = createContentCache({ maxBytes: 1_000_000, askHtml: readHere });
	const { queue, reads } = store;
	const worker = testWorker(createMemoryQueue({ to: [] }), pool, {
		...{ queue, reads, contents, clock },
		// The worker sleeps only when nothing is due, so the clock can go to the next window.
		sleep: async () => {
			untilClosed.push(told.length);
			now = micros('2026-11-21T08:00:00Z');
		},
	});
	const result = await worker.run({ scope: null, until: 'drained' });
	expect(result.counts).toMatchObject({ sent: count, failed: 0, uncertain: 0 });
	expect(new Set(told.map(({ line }) => line)).size).toBe(count);
	expect(told).toHaveLength(count);
	expect(untilClosed[0]).toBeGreaterThanOrEqual(last);
	expect(untilClosed[0]).toBeLessThanOrEqual(last + 5 * 3);
	const next = told.slice(untilClosed[0]).map(({ at }) => at);
	expect(next.every((at) => at === micros('2026-11-21T08:00:00Z'))).toBe(true);
	await store.close();
});
