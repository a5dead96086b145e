/**
 * A message that kills its worker three times during composition fails, and the other messages are sent. Each worker
 * is a process that ends by kill -9; a sink in the test records what was sent.
 */
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import { bundleProgram, runNode } from '../support/fault-points.js';
import { createQueuedDatabase } from '../support/queued-database.js';
import { messageIdIn, startSmtpSink } from '../support/smtp-sink.js';

const program = await bundleProgram('worker-program');

const reason = 'composing this message ended a worker three times';

describe('a message that kills its worker', () => {
	const kinds = [
		{ name: 'a small message', text: 'Hello #email#', deaths: [3, 4] },
		{ name: 'a message of 2 MiB', text: `Hello #email# ${'padding '.repeat(256 * 1024)}`, deaths: [3] },
	];
	for (const { name, text, deaths } of kinds) {
		it(`fails after the third crash, and the worker sends the other messages: ${name}`, async () => {
			const sink = await startSmtpSink();
			const { path, ids } = await createQueuedDatabase(12, { text });
			const [poisoned = ''] = ids.splice(5, 1);
			const exits: unknown[] = [];
			for (let start = 0; start < 8; start += 1) {
				// Two minutes pass between two starts, so the leases have ended. A lease of 400 ms ended while a busy machine
				// composed, which counted as a crash.
				const args = [program, path, String(sink.port), '60000', String(1 + 2 * start), 'r5@example.net'];
				exits.push((await runNode(args, null)).code);
			}
			const killed = exits.filter((code) => code !== 0);
			expect(killed).toEqual(Array(killed.length).fill(null));
			expect(deaths).toContain(killed.length);
			const store = await openStore(path, { clock: systemClock, mode: 'existing' });
			expect(await store.reads.countMessages({ scope: null })).toEqual({ sent: ids.length, failed: 1 });
			const found = await store.reads.getMessage({ id: poisoned });
			expect(found?.message).toMatchObject({ state: 'failed', last_reply: reason, attempts: 1 });
			await store.close();
			const arrived = new Set(sink.received.map(({ raw }) => messageIdIn(raw).slice(0, 36)));
			expect([...arrived].sort()).toEqual([...ids].sort());
			await sink.close();
		});
	}
});
