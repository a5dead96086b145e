// People unsubscribe while a campaign is sent. Nobody gets mail whose unsubscription was answered before the lease.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { SmtpPool } from '../../src/delivery/smtp/pool.js';
import { messageLinks, publicLinks } from '../../src/delivery/tracking/tokens.js';
import { openStore } from '../../src/store/open.js';
import type { Queue } from '../../src/store/operations.js';
import type { Store } from '../../src/store/store.js';
import { newList, newUuid, noon, releasedCampaign, verify } from '../contract/store/fixture.js';
import { plainSettings, testWorker } from '../support/delivery.js';
import { createMemoryQueue } from '../support/memory-queue.js';
import { type Served, startServed } from '../support/served.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const people = 4_000;
const leaving = 12;

let folder: string;
let served: Served;
/** A second connection for the worker, as in another process. */
let other: Store;
let sink: SmtpSink;

beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), 'mailctl-race-'));
	const path = join(folder, 'mail.db');
	served = await startServed(path);
	other = await openStore(path, { clock: systemClock, mode: 'existing', eventDelayMs: 5 });
	sink = await startSmtpSink();
});
afterEach(async () => {
	await other.close();
	await served.close();
	await sink.close();
	await rm(folder, { recursive: true });
});

it('a worker leases no message for a person whose unsubscription the server has confirmed', async () => {
	const campaign = await prepare(served.store);
	const urls = await unsubscribeUrls();
	/** The start of each person's lease, and the answer to the unsubscription, in milliseconds of one clock. */
	const leases = new Map<string, number>();
	const answers = new Map<string, number>();

	const pool = new SmtpPool({ settings: plainSettings(sink.port) });
	const worker = testWorker(createMemoryQueue({ to: [] }), pool, {
		queue: watched(other.queue, leases),
		reads: other.reads,
		connections: 5,
		// At this rate, neither the worker nor the unsubscriptions end before the other begins.
		rate: 1_500,
	});
	const sending = worker.run({ scope: { campaign }, until: 'settled' });
	await Promise.all(Array.from({ length: leaving }, (_, at) => leave(urls, { first: at, answers, sending })));
	await sending;
	pool.close();

	const got = sink.received.flatMap(({ to }) => to);
	const isLate = (address: string) => (answers.get(address) ?? 0) < (leases.get(address) ?? 0);
	expect(got.filter(isLate)).toEqual([]);
	expect([...leases.keys()].filter(isLate)).toEqual([]);
	expect(got.filter((address) => !leases.has(address))).toEqual([]);
	expect(answers.size).toBe(people);
	const { sent = 0, canceled = 0 } = await other.reads.countMessages({ scope: { campaign } });
	expect([sent, sent + canceled]).toEqual([got.length, people]);
	// Each side must have won for two of a hundred people, or there was no race.
	expect(Math.min(sent, canceled)).toBeGreaterThan(people / 50);
	expect(await served.store.reads.status()).toMatchObject({ suppressions: people });
});

async function prepare(store: Store): Promise<string> {
	await verify(store);
	const list_id = await newList(store);
	const spec = { list_id, on_conflict: 'update' as const, reactivate: false };
	const session = await store.writes.openImport({ id: newUuid(), key: 'people', spec, now: noon });
	if (session === null || session === 'conflict') throw new Error('no session');
	const cells = Array.from({ length: people }, (_, at) => `p${at}@example.org`);
	await store.writes.putImportBatch({
		session: session.id,
		batch: { first: 0, columns: ['email'], cells },
		now: noon,
	});
	return releasedCampaign(store, list_id, 'race');
}

async function unsubscribeUrls(): Promise<{ to: string; url: string }[]> {
	const keyring = await served.ports.keyring();
	const found: { to: string; url: string }[] = [];
	for (let page = 1; found.length < people; page += 1) {
		const { results } = await other.reads.pageMessages({ page, page_size: 1000, filter: {} });
		for (const { id, to } of results) {
			const links = messageLinks({ publicUrl: served.url, keyring }, id);
			if (links !== null) found.push({ to, url: publicLinks(links).unsubscribe_url });
		}
	}
	return found.sort((a, b) => (a.url < b.url ? -1 : 1));
}

async function leave(
	urls: readonly { to: string; url: string }[],
	{ first, answers, sending }: { first: number; answers: Map<string, number>; sending: Promise<unknown> },
): Promise<void> {
	for (let at = first; at < urls.length; at += leaving) {
		await Promise.race([sink.until(Math.floor(at / 8)), sending]);
		const { to, url } = urls[at] ?? { to: '', url: '' };
		const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
		const answer = await fetch(url, { method: 'POST', body });
		expect([answer.status, await answer.text()]).toEqual([200, 'Unsubscribed.\n']);
		answers.set(to, performance.now());
	}
}

/** Records when the call that leased each message started. */
function watched(queue: Queue, leases: Map<string, number>): Queue {
	return {
		...queue,
		lease: async (command) => {
			const began = performance.now();
			const leased = await queue.lease(command);
			for (const { to } of leased) leases.set(to, began);
			return leased;
		},
	};
}
