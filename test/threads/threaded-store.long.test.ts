import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { StoreError } from '../../src/api/errors.js';
import { DatabaseMissing, UnsupportedDatabase } from '../../src/store/errors.js';
import type { Store } from '../../src/store/store.js';
import { spawnThread } from '../../src/threads/spawn.js';
import { openThreadedStore, type ThreadedOptions } from '../../src/threads/threaded-store.js';
import { newList, newSubscriber } from '../contract/store/fixture.js';
import { storeSuite } from '../contract/store.suite.js';
import { emptyDatabase } from '../support/model.js';

function newPath(): string {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-threads-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	return join(folder, 'mailctl.db');
}

function open(url: string, more: Partial<ThreadedOptions> = {}): Promise<Store> {
	return openThreadedStore(url, { clock: systemClock, mode: 'create', eventDelayMs: 0, ...more });
}

async function opened(url = newPath(), more: Partial<ThreadedOptions> = {}): Promise<Store> {
	const store = await open(url, more);
	onTestFinished(() => store.close());
	return store;
}

async function failure(outcome: Promise<unknown>): Promise<unknown> {
	try {
		await outcome;
	} catch (error) {
		return error;
	}
	throw new Error('it did not fail');
}

function watched(): { threads: Worker[]; sent: () => number[]; spawn: (name: string) => Worker } {
	const threads: Worker[] = [];
	const counts: number[] = [];
	return {
		threads,
		sent: () => [...counts],
		spawn: (name) => {
			const thread = spawnThread(name);
			const at = threads.push(thread) - 1;
			counts.push(0);
			const post = thread.postMessage.bind(thread);
			thread.postMessage = (message: unknown) => {
				counts[at] = (counts[at] ?? 0) + 1;
				post(message);
			};
			return thread;
		},
	};
}

const idle: Worker[] = [];
afterAll(() => Promise.all(idle.map((thread) => thread.terminate())));

function handedOn(name: string): Worker {
	const thread = idle.pop() ?? spawnThread(name);
	thread.terminate = async () => {
		Reflect.deleteProperty(thread, 'terminate');
		for (const event of ['message', 'messageerror', 'error', 'exit']) thread.removeAllListeners(event);
		idle.push(thread);
		return 0;
	};
	return thread;
}

storeSuite('a SQLite file, in threads', async (clock) =>
	openThreadedStore(await emptyDatabase(newPath()), {
		...{ clock, mode: 'existing', eventDelayMs: 0, upkeep: 'with_commits' },
		spawn: handedOn,
	}),
);

describe('opening a store in threads', () => {
	it('reports the usual errors, and leaves no thread running', async () => {
		const path = newPath();
		const missing = await failure(open(path, { mode: 'existing' }));
		expect(missing).toBeInstanceOf(DatabaseMissing);
		expect(missing).toMatchObject({ path, message: `there is no database at ${path}` });
		writeFileSync(path, 'no database at all, but more than a hundred octets of text. '.repeat(4));
		const { threads, spawn } = watched();
		const strange = await failure(open(path, { spawn }));
		expect(strange).toBeInstanceOf(StoreError);
		expect(strange).toMatchObject({ code: 'not_a_database', message: `${path} is not a mailctl database` });
		expect(threads.map(({ threadId }) => threadId)).toEqual([-1, -1]);
		expect(await failure(open('postgres://x'))).toBeInstanceOf(UnsupportedDatabase);
	});
});

describe('a store in threads', () => {
	it('sends the operations of one tick as one message', async () => {
		const { sent, spawn } = watched();
		const store = await opened(newPath(), { spawn });
		const list_id = await newList(store);
		const before = sent();
		await Promise.all(
			Array.from({ length: 50 }, (_, i) => newSubscriber(store, list_id, `p${i}@example.org`)),
		);
		await Promise.all(Array.from({ length: 50 }, () => store.reads.getList({ id: list_id })));
		expect(sent().map((count, at) => count - (before[at] ?? 0))).toEqual([1, 1]);
	});

	it('includes all acknowledged changes in each later read', async () => {
		const store = await opened();
		const list_id = await newList(store);
		for (let i = 1; i <= 100; i++) {
			const { id } = await newSubscriber(store, list_id, `p${i}@example.org`);
			expect((await store.reads.getSubscriber({ list_id, id }))?.email).toBe(`p${i}@example.org`);
			expect((await store.reads.getList({ id: list_id }))?.active_subscribers_count).toBe(i);
		}
	});

	it('reads while another process holds the lock, and reports a write that waited too long', async () => {
		const path = newPath();
		const store = await opened(path, { lockTimeoutMs: 100 });
		await newList(store);
		const other = new Database(path);
		other.exec('BEGIN IMMEDIATE');
		const refused = await failure(newList(store, 'Second'));
		expect(refused).toBeInstanceOf(StoreError);
		expect(refused).toMatchObject({ code: 'locked', cause: { message: 'database is locked' } });
		expect((await store.reads.pageLists({ page: 1, page_size: 9 })).count).toBe(1);
		other.close();
		await newList(store, 'Third');
	});

	it('commits earlier operations when it is closed, and rejects later ones', async () => {
		const path = newPath();
		const store = await opened(path);
		const making = Array.from({ length: 20 }, (_, i) => newList(store, `List ${i}`));
		const [first, second] = [store.close(), store.close()];
		expect((await Promise.all(making)).length).toBe(20);
		await Promise.all([first, second, store.close()]);
		expect(await failure(newList(store))).toMatchObject({ code: 'io', message: `${path} is closed` });
		expect(await failure(store.reads.getSettings())).toMatchObject({ code: 'io' });
		const again = await opened(path);
		expect((await again.reads.pageLists({ page: 1, page_size: 9 })).count).toBe(20);
	});

	it.each([0, 1])('reports that thread %i ended, and rejects waiting and later operations', async (which) => {
		const { threads, spawn } = watched();
		const told: StoreError[] = [];
		const store = await opened(newPath(), { spawn, onFailure: (error) => told.push(error) });
		const waiting = which === 0 ? newList(store) : store.reads.status();
		const ended = failure(waiting);
		threads[which]?.terminate();
		expect(await ended).toBeInstanceOf(StoreError);
		expect(await ended).toMatchObject({ code: 'io' });
		for (const call of [newList(store), store.reads.status(), store.queue.settle({ settlements: [] })])
			expect(await failure(call)).toMatchObject({ code: 'io', message: /thread has failed/ });
		expect(told.map(({ code }) => code)).toEqual(['io']);
		await store.close();
	});
});
