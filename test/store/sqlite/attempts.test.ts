import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../../src/store/open.js';
import { openConnection } from '../../../src/store/sqlite/connection.js';
import {
	accepted250,
	busy451,
	deliver,
	fixedClock,
	hour,
	noon,
	send,
	verify,
} from '../../contract/store/fixture.js';
import { emptyDatabase } from '../../support/model.js';

async function open() {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-attempts-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const path = await emptyDatabase(join(folder, 'mailctl.db'));
	const store = await openStore(path, { clock: fixedClock, mode: 'existing' });
	onTestFinished(() => store.close());
	await verify(store);
	const db = openConnection({ path, mode: 'existing', role: 'reader', busyTimeoutMs: 1_000 });
	onTestFinished(() => void db.close());
	const kept = () => db.prepare<[], number>('SELECT number FROM attempts ORDER BY number').pluck().all();
	const attempts = async (id: string) => (await store.reads.getMessage({ id }))?.attempts ?? [];
	return { store, kept, attempts };
}

it('a successful attempt is listed even if it has no separate row', async () => {
	const { store, kept, attempts } = await open();
	await send(store, ['ann@example.org']);
	const id = await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + hour });
	await deliver(store, { kind: 'sent', reply: accepted250 }, noon + hour);
	const told = await attempts(id);
	expect(kept()).toEqual([1]);
	expect(told.map(({ number, at, outcome, ...reply }) => [number, at.slice(11, 13), outcome, reply])).toEqual(
		[
			[1, '12', 'deferred', busy451],
			[2, '13', 'sent', accepted250],
		],
	);
	const recipient = { addresses: ['ann@example.org'], hard: true, smtp_code: '5.1.1', diagnostic: 'unknown' };
	await store.writes.recordReport({
		...{ sha256: 'a', at: noon + 2 * hour, message: id, matched: 'return_path', kind: 'bounce' },
		recipients: [recipient],
	});
	expect((await store.reads.getMessage({ id }))?.message.last_reply).toBe('5.1.1 unknown');
	expect(kept()).toEqual([1, 2]);
	expect(await attempts(id)).toEqual(told);
});

it('a successful attempt has its own row if the row of the message cannot store the exact reply', async () => {
	const { store, kept, attempts } = await open();
	await send(store, ['ann@example.org']);
	const reply = { phase: 'answer', code: 250, enhanced: null, text: '2.0.0 is in the text' } as const;
	const id = await deliver(store, { kind: 'sent', reply });
	expect(kept()).toEqual([1]);
	expect(await attempts(id)).toMatchObject([{ number: 1, outcome: 'sent', ...reply }]);
});
