import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createContentCache } from '../../src/content/cache.js';
import { contentSha256 } from '../../src/content/hash.js';
import { SmtpPool } from '../../src/delivery/smtp/pool.js';
import { standardTimeouts } from '../../src/delivery/smtp/settings.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { newList, newUuid } from '../contract/store/fixture.js';
import { makeCertificates, makeExpiredCertificates } from '../support/certificates.js';
import { plainSettings, testWorker, timeoutsFor } from '../support/delivery.js';
import { createMemoryQueue } from '../support/memory-queue.js';
import { readHere } from '../support/read-here.js';
import { type FaultScript, startFaultServer } from '../support/smtp-fault.js';
import { copies, limits, used } from './fault-table/circumstances.js';
import type { Expected, Row } from './fault-table/row.js';
import { connecting, logins, type TlsOf, tlsRows } from './fault-table/sessions.js';
import { data, dot, mail, rcpt } from './fault-table/transactions.js';

const now = Date.UTC(2026, 2, 10, 12) * 1_000;
const minute = 60_000_000;
const clock = { now: () => now };
const contents = createContentCache({ maxBytes: 1_000_000, askHtml: readHere });

let store: Store;
let folder: string;
let list_id: number;
let tls: TlsOf;
let people = 0;

beforeAll(async () => {
	folder = mkdtempSync(join(tmpdir(), 'mailctl-faults-'));
	store = await openStore(join(folder, 'mail.db'), { clock, mode: 'create' });
	await store.writes.createSender({ from_email: 'news@example.com', email_key: 'news@example.com', now });
	list_id = await newList(store);
	const [good, wrongName, expired] = await Promise.all([
		makeCertificates(['IP:127.0.0.1']),
		makeCertificates(['DNS:elsewhere.example']),
		makeExpiredCertificates(['IP:127.0.0.1']),
	]);
	tls = { good, wrongName, expired };
});
afterAll(async () => {
	await store.close();
	rmSync(folder, { recursive: true, force: true });
});

type Type = 'TRANSACTIONAL' | 'BULK';
type Pace = 'one by one' | 'pipelined';

const ways: readonly { type: Type; pace: Pace }[] = [
	{ type: 'TRANSACTIONAL', pace: 'one by one' },
	{ type: 'TRANSACTIONAL', pace: 'pipelined' },
	{ type: 'BULK', pace: 'one by one' },
	{ type: 'BULK', pace: 'pipelined' },
];

describe.each([
	['connecting', connecting],
	['login', logins],
	['MAIL', mail],
	['RCPT', rcpt],
	['DATA', data],
	['the final dot', dot],
	['copies', copies],
	['limits of a server', limits],
	['a reused connection', used],
])('a message to a faulty server (%s)', (_phase, rows) => {
	for (const { type, pace } of ways) {
		const possible = rows.filter((row) => type !== 'BULK' || (row.cc === undefined && row.bcc === undefined));
		it.each(possible)(`has the expected outcome: $name, ${type}, ${pace}`, (row) => judge(row, type, pace));
	}
});

describe('a message to a server with a certificate', () => {
	const names = tlsRows({ good: none(), wrongName: none(), expired: none() }).map(({ name }) => name);
	for (const type of ['TRANSACTIONAL', 'BULK'] as const) {
		it.each(names)(`has the expected outcome: %s, ${type}`, async (name) => {
			const row = tlsRows(tls).find((one) => one.name === name);
			if (row === undefined) throw new Error(`no row ${name}`);
			await judge(row, type, 'one by one');
		});
	}
});

it('the timeouts are at least those of RFC 5321 s.4.5.3.2, except 30 s for the greeting', () => {
	const minutes = 60_000;
	expect(standardTimeouts).toEqual({
		connect: minutes / 2,
		greeting: minutes / 2,
		command: 5 * minutes,
		data: 2 * minutes,
		body: 10 * minutes,
		answer: 10 * minutes,
	});
});

async function judge(row: Row, type: Type, pace: Pace): Promise<void> {
	const to = await newPerson(row);
	const server = await startFaultServer(addressed(row.script, to, pace));
	onTestFinished(() => server.close());
	if (row.isClosed) await server.close();
	for (let count = 0; count < (row.before ?? 0); count += 1) await accept(row, type, `before@example.org`);
	const id = await accept(row, type, to);
	const pool = new SmtpPool({
		settings: plainSettings(server.port, row.settings),
		timeouts: timeoutsFor(row.script),
		connections: 1,
	});
	const { queue, reads } = store;
	const before = await suppressions();
	const worker = testWorker(createMemoryQueue({ to: [] }), pool, {
		...{ queue, reads, contents, clock, connections: 1, random: Math.random },
		publicUrl: 'https://mail.example.com',
	});
	const result = await worker.run({ scope: null, until: 'settled' });
	pool.abort();
	await queue.resume({ kinds: ['fault', 'refusal'] });
	if (row.expected.kind === 'paused') await heldUp(row.expected, id, result);
	else await settled(row.expected, id, result.kind);
	const suppressed = (await suppressions()) - before;
	expect(suppressed).toBe(row.expected.kind === 'bounced' ? 1 : 0);
	expect(await isActive(to)).toBe(row.expected.kind !== 'bounced');
	await store.writes.changeMessage({ id, action: 'cancel', now });
}

async function heldUp(
	{ reason }: Extract<Expected, { kind: 'paused' }>,
	id: string,
	result: { kind: string; reason: string | null },
): Promise<void> {
	expect(result).toMatchObject({ kind: 'paused', reason: expect.stringMatching(reason) });
	expect(result.reason).not.toContain('hunter2');
	const found = await store.reads.getMessage({ id });
	expect(found).toMatchObject({ message: { state: 'queued', attempts: 0, last_reply: null }, attempts: [] });
}

async function settled(
	expected: Exclude<Expected, { kind: 'paused' }>,
	id: string,
	ended: string,
): Promise<void> {
	const { kind, phase, code, enhanced, text } = expected;
	expect(ended).toBe('done');
	const found = await store.reads.getMessage({ id });
	const state = kind === 'uncounted' ? 'failed' : kind;
	expect(found?.message).toMatchObject({ state, attempts: 1 });
	expect(found?.attempts).toEqual([
		{
			...{ number: 1, at: '2026-03-10T12:00:00.000000', outcome: state, phase, code, enhanced },
			text: typeof text === 'string' ? text : expect.stringMatching(text),
		},
	]);
	expect(await eventsOf(id)).toEqual(events[kind]);
	const due = await store.reads.nextDue({ scope: { submission: found?.rendering.submission ?? '' } });
	if (kind !== 'deferred') return expect(due).toBeNull();
	// 5 minutes, plus or minus 10 %.
	expect(((due ?? 0) - now) / minute).toBeGreaterThanOrEqual(4.5);
	expect(((due ?? 0) - now) / minute).toBeLessThanOrEqual(5.5);
}

const events = {
	sent: ['CREATED', 'SENT'],
	deferred: ['CREATED'],
	failed: ['CREATED', 'SOFTBOUNCED'],
	uncounted: ['CREATED'],
	bounced: ['CREATED', 'HARDBOUNCED'],
	uncertain: ['CREATED'],
};

async function eventsOf(id: string): Promise<string[]> {
	const found = await store.reads.getMessage({ id });
	const { daily } = await store.reads.reportFigures({
		...{ from: '2026-01-01', to: '2026-12-31', tag: null, human: false },
		campaign: found?.message.campaign_unique_id ?? null,
	});
	return daily.map(({ type, count }) => (count === 1 ? type : `${type} ${count}`)).sort();
}

async function suppressions(): Promise<number> {
	return (await store.reads.status()).suppressions;
}

async function isActive(to: string): Promise<boolean> {
	const filter = { email__exact: to };
	const page = await store.reads.pageSubscribers({ list_id, page: 1, page_size: 1, filter });
	return page?.results[0]?.is_active ?? false;
}

async function newPerson({ to = 'a@example.net' }: Row): Promise<string> {
	people += 1;
	const email = to.replace('@', `+${people}@`);
	await store.writes.createSubscriber({ list_id, input: { email }, now });
	return email;
}

/** Removes the number that makes an address unique, because scripts expect the address without it. */
function addressed(script: FaultScript, to: string, pace: Pace): FaultScript {
	const ehlo = [...(script.ehlo ?? []), ...(pace === 'pipelined' ? ['PIPELINING'] : [])];
	const { on } = script;
	if (on === undefined) return { ...script, ehlo };
	const plain = to.replace(/\+\d+@/, '@');
	return { ...script, ehlo, on: (phase, line, at) => on(phase, line.replace(to, plain), at) };
}

async function accept({ cc = [], bcc = [], text = 'Hello' }: Row, type: Type, to: string): Promise<string> {
	const content = { subject: 'Hi', text, html: null, disable_inline: true };
	const accepted = await store.writes.acceptSubmission({
		...{ id: newUuid(), type, from_key: 'news@example.com', tag: null, content, variables: [], context: {} },
		envelope: { from: 'news@example.com', reply_to: [], cc: [...cc], bcc: [...bcc], headers: {} },
		...{ content_sha256: contentSha256(content), list_id, campaign: newUuid(), now, key: null },
		recipients: [{ id: newUuid(), to, to_key: to.toLowerCase() }],
	});
	if (accepted.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(accepted)}`);
	return accepted.answer.messages[0]?.id ?? '';
}

function none() {
	return { ca: '', cert: '', key: '' };
}
