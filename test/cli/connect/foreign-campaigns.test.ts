import { mkdtemp, readdir, stat } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { CampaignResult, CampaignSpec, Recipient, RequestsSpec } from '../../../src/api/campaigns.js';
import { systemClock } from '../../../src/api/datetime.js';
import { ForeignCampaigns, type ForeignDelivery } from '../../../src/cli/connect/foreign-campaigns.js';
import { createClient } from '../../../src/http/client/client.js';
import {
	type MailService,
	type MailServiceOptions,
	startMailService,
} from '../../support/campaigns-service.js';

const plain: CampaignSpec = {
	from: 'news@example.com',
	type: 'TRANSACTIONAL',
	subject: 'News',
	text_body: 'Hello',
};
const personal: CampaignSpec = { ...plain, text_body: 'Hello #name# of #city#' };
const how: ForeignDelivery = { connections: 4, rate: null, uncertain: 'leave' };

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
	for (const end of endings.splice(0).reverse()) await end();
});

interface Desk {
	service: MailService;
	folder: string;
	campaigns: ForeignCampaigns;
	/** Closes the campaigns as a process does at its end, and opens them again. */
	restart(): Promise<ForeignCampaigns>;
}

async function setUp(options: MailServiceOptions = {}): Promise<Desk> {
	const service = await startMailService(options);
	endings.push(service.close);
	const folder = join(await mkdtemp(join(tmpdir(), 'mailctl-campaigns-')), 'jobs');
	let campaigns = openCampaigns(service, folder);
	return {
		service,
		folder,
		get campaigns() {
			return campaigns;
		},
		restart: async () => {
			await campaigns.close();
			campaigns = openCampaigns(service, folder);
			return campaigns;
		},
	};
}

function openCampaigns({ baseUrl }: MailService, folder: string): ForeignCampaigns {
	const client = createClient({
		baseUrl,
		token: 't',
		remote: { timeoutMs: 60_000, retries: 0, caCert: null, insecure: false, proxy: null },
		env: {},
		trace: () => {},
		warn: () => {},
	});
	const campaigns = new ForeignCampaigns(client.api, {
		folder,
		deployment: baseUrl,
		clock: systemClock,
		sleep: async (_ms, signal) => signal?.throwIfAborted(),
	});
	endings.push(async () => {
		await campaigns.close();
		await client.close();
	});
	return campaigns;
}

function people(count: number): Recipient[] {
	return Array.from({ length: count }, (_, index) => ({ to: `p${index}@example.com`, line: index + 2 }));
}

async function releaseAll(
	campaigns: ForeignCampaigns,
	recipients: readonly Recipient[],
	spec: CampaignSpec = plain,
): Promise<string> {
	const { id } = await campaigns.open('job', spec);
	const { counts } = await campaigns.put(id, { first: 0, recipients });
	await campaigns.release(id, { expect_count: counts.staged });
	return id;
}

async function allResults(campaigns: ForeignCampaigns, id: string): Promise<CampaignResult[]> {
	const all: CampaignResult[] = [];
	for (let after: number | null = 0; after !== null; ) {
		const page = await campaigns.results(id, { after, limit: 2 });
		all.push(...page.results);
		after = page.next;
	}
	return all;
}

describe('staging messages for another service', () => {
	it('rejects a request that the service’s send call would reject, and leaves no file', async () => {
		const { campaigns, folder } = await setUp();
		await expect(campaigns.open('job', { ...plain, from: 'nobody' })).rejects.toMatchObject({
			code: 'invalid',
		});
		await expect(readdir(folder)).rejects.toMatchObject({ code: 'ENOENT' });
	});

	it('stores campaigns in files and a folder that only their owner can read', async () => {
		const { campaigns, folder } = await setUp();
		await campaigns.open('job', plain);
		const modes = await Promise.all(
			[folder, ...(await readdir(folder)).map((name) => join(folder, name))].map(
				async (path) => (await stat(path)).mode & 0o077,
			),
		);
		expect(new Set(modes)).toEqual(new Set([0]));
	});
});

describe('staging a list of another service', () => {
	const subscribers = [
		{ email: 'ann@example.com', name: 'Ann', meta: { city: 'Oslo', plan: 'gold' } },
		{ email: 'gone@example.com', is_active: false },
		{ email: 'bob@example.com', name: 'Bob', meta: { city: null } },
		{ email: 'ANN@example.com', name: 'Ann again', meta: { city: 'Rome' } },
	];

	it('leaves out inactive subscribers, duplicates and unused variables', async () => {
		const { campaigns, service } = await setUp({ subscribers, pageSize: 2 });
		const { id } = await campaigns.open('job', { ...personal, strict_vars: false, list_id: 1 });
		expect(await campaigns.addList(id, 1)).toMatchObject({
			counts: { staged: 2, suppressed: 0, rejected: 0 },
		});
		await campaigns.release(id, { expect_count: 2 });
		await campaigns.deliver(id, how);
		expect(service.messages.map(({ to, context }) => ({ to, context }))).toEqual([
			{ to: 'ann@example.com', context: { name: 'Ann', city: 'Oslo' } },
			{ to: 'bob@example.com', context: { name: 'Bob' } },
		]);
		expect(service.calls[0]).not.toHaveProperty('list_id');
	});

	it('rejects subscribers without a needed variable, unless the campaign has a value for it', async () => {
		const { campaigns, service } = await setUp({ subscribers });
		const spec = { ...personal, context: { name: 'friend' }, list_id: 1 };
		const { id } = await campaigns.open('job', spec);
		expect(await campaigns.addList(id, 1)).toMatchObject({
			counts: { staged: 1, rejected: 1 },
			rejects: [{ code: 'missing_variable', error: 'bob@example.com: no value for #city#.' }],
		});
		await campaigns.release(id, { expect_count: 1 });
		await campaigns.deliver(id, how);
		expect(service.messages[0]?.context).toEqual({ name: 'friend', city: 'Oslo' });
	});

	it('starts from the beginning after an interruption', async () => {
		const many = Array.from({ length: 2_500 }, () => ({}));
		const desk = await setUp({ subscribers: many });
		const { id } = await desk.campaigns.open('job', { ...plain, list_id: 1 });
		const stop = new AbortController();
		const walk = desk.campaigns.addList(id, 1, { signal: stop.signal });
		for (;;) {
			const { counts } = await desk.campaigns.status(id);
			if (counts.staged > 0) break;
			await nextTurn();
		}
		stop.abort(new Error('stopped'));
		await expect(walk).rejects.toThrow('stopped');
		await expect(desk.campaigns.release(id, { expect_count: 1_000 })).rejects.toMatchObject({
			code: 'conflict',
		});
		const later = await desk.restart();
		await later.open('job', { ...plain, list_id: 1 });
		expect((await later.addList(id, 1)).counts).toEqual({ staged: 2_500, suppressed: 0, rejected: 0 });
		await later.release(id, { expect_count: 2_500 });
		await later.deliver(id, how);
		expect(Object.keys(desk.service.timesSent())).toHaveLength(2_500);
		expect(desk.service.messages).toHaveLength(2_500);
	});
});

describe('delivering through another service', () => {
	it('sends equal content to up to a thousand recipients per call, and different content in separate calls', async () => {
		const same = await setUp();
		await same.campaigns.deliver(await releaseAll(same.campaigns, people(2_100)), how);
		expect(same.service.calls.map(({ to }) => to.length).sort()).toEqual([100, 1000, 1000]);
		const own = await setUp();
		const recipients = people(3).map((one) => ({ ...one, context: { name: one.to, city: 'Oslo' } }));
		await own.campaigns.deliver(await releaseAll(own.campaigns, recipients, personal), how);
		expect(own.service.calls.map(({ to, context }) => [to.length, context])).toEqual(
			recipients.map(({ context }) => [1, context]),
		);
	});

	it('makes at most one call per connection at a time, and sends to each recipient once', async () => {
		const { campaigns, service } = await setUp({ react: () => ({ kind: 'make', delayMs: 30 }) });
		const recipients = people(50).map((one) => ({ ...one, context: { name: one.to, city: '' } }));
		const id = await releaseAll(campaigns, recipients, personal);
		const { counts, error } = await campaigns.deliver(id, { ...how, connections: 3 });
		expect({ counts, error, busiest: service.busiest }).toMatchObject({
			counts: { accepted: 50, waiting: 0 },
			error: null,
			busiest: 3,
		});
		expect(Object.values(service.timesSent())).toEqual(Array.from({ length: 50 }, () => 1));
		expect(await campaigns.deliver(id, how)).toMatchObject({ error: null });
		expect(service.calls).toHaveLength(50);
	});

	it('marks recipients as failed if the service rejects their addresses, and sends to the others', async () => {
		const { campaigns, service } = await setUp({
			react: ({ to }) => {
				const at = to.indexOf('p1@example.com');
				if (at === -1) return { kind: 'make' };
				const body = { to: { [at]: ['Not this one.'] } };
				return { kind: 'refuse', status: 400, body };
			},
		});
		const id = await releaseAll(campaigns, people(3));
		expect(await campaigns.deliver(id, how)).toMatchObject({
			counts: { accepted: 2, failed: 1 },
			error: null,
		});
		expect(service.timesSent()).toEqual({ 'p0@example.com': 1, 'p2@example.com': 1 });
		expect(await allResults(campaigns, id)).toMatchObject([
			{ line: 2, to: 'p0@example.com', state: 'accepted', id: expect.stringMatching(/^0{8}-/), attempts: 1 },
			{ line: 3, to: 'p1@example.com', state: 'failed', code: 'invalid', text: 'Not this one.' },
			{ line: 4, to: 'p2@example.com', state: 'accepted' },
		]);
	});

	it('halves a rejected call to find the bad recipient if the answer names no recipient', async () => {
		const { campaigns, service } = await setUp({
			react: ({ to }) =>
				to.includes('p5@example.com')
					? { kind: 'refuse', status: 400, body: { detail: 'Somebody is bad.' } }
					: { kind: 'make' },
		});
		const id = await releaseAll(campaigns, people(8));
		expect(await campaigns.deliver(id, how)).toMatchObject({
			counts: { accepted: 7, failed: 1 },
			error: null,
		});
		expect(Object.values(service.timesSent())).toEqual(Array.from({ length: 7 }, () => 1));
	});

	it('stops and marks no recipient as failed if the service rejects the content itself', async () => {
		const { campaigns, service } = await setUp({
			react: () => ({ kind: 'refuse', status: 400, body: { from: ['Sender address is not verified.'] } }),
		});
		const id = await releaseAll(campaigns, people(8));
		const { counts, error } = await campaigns.deliver(id, { ...how, rate: 1, connections: 1 });
		expect({ counts, error }).toMatchObject({
			counts: { waiting: 8, failed: 0 },
			error: { code: 'invalid' },
		});
		expect(service.calls).toHaveLength(1);
	});

	it.each([
		{ status: 401, code: 'not_authenticated' },
		{ status: 404, code: 'not_found' },
		{ status: 302, code: 'bad_answer' },
		{ status: 501, code: 'server_error' },
	])('stops at status $status and leaves all messages waiting', async ({ status, code }) => {
		const { campaigns } = await setUp({ react: () => ({ kind: 'refuse', status }) });
		const id = await releaseAll(campaigns, people(2));
		expect(await campaigns.deliver(id, how)).toMatchObject({ counts: { waiting: 2 }, error: { code } });
	});

	it.each([
		{ what: 'a truncated answer', reaction: { kind: 'cut' } as const },
		{ what: '500', reaction: { kind: 'refuse', status: 500 } as const },
		{ what: '503 without Retry-After', reaction: { kind: 'refuse', status: 503 } as const },
		{ what: 'an answer of another shape', reaction: { kind: 'refuse', status: 200, body: [] } as const },
	])('marks messages as uncertain after $what, and repeats them only on request', async ({ reaction }) => {
		let isBroken = true;
		const desk = await setUp({
			react: ({ to }) => (isBroken && to.includes('p1@example.com') ? reaction : { kind: 'make' }),
		});
		const recipients = people(3).map((one) => ({ ...one, context: { name: one.to, city: '' } }));
		const id = await releaseAll(desk.campaigns, recipients, personal);
		expect(await desk.campaigns.deliver(id, how)).toMatchObject({
			counts: { accepted: 2, uncertain: 1 },
			error: null,
		});
		isBroken = false;
		const later = await desk.restart();
		await later.open('job', personal);
		await later.deliver(id, how);
		expect(desk.service.calls).toHaveLength(3);
		expect(await later.status(id)).toMatchObject({ messages: { accepted: 2, uncertain: 1 } });
		await later.deliver(id, { ...how, uncertain: 'retry' });
		expect(desk.service.calls.at(-1)?.to).toEqual(['p1@example.com']);
		expect(await later.status(id)).toMatchObject({ messages: { accepted: 3 } });
	});

	it('tries again after 429, or 503 with Retry-After, and sends to each recipient once', async () => {
		const { campaigns, service } = await setUp({
			react: (_request, number) =>
				number % 3 === 0
					? { kind: 'make' }
					: { kind: 'refuse', status: number % 3 === 1 ? 429 : 503, headers: { 'retry-after': '1' } },
		});
		const recipients = people(9).map((one) => ({ ...one, context: { name: one.to, city: '' } }));
		const id = await releaseAll(campaigns, recipients, personal);
		expect(await campaigns.deliver(id, { ...how, connections: 1 })).toMatchObject({
			counts: { accepted: 9 },
			error: null,
		});
		expect(Object.values(service.timesSent())).toEqual(Array.from({ length: 9 }, () => 1));
	});

	it('stops after many calls without an answer, and leaves the other messages waiting', async () => {
		const { campaigns, service } = await setUp({ react: () => ({ kind: 'cut' }) });
		const recipients = people(40).map((one) => ({ ...one, context: { name: one.to, city: '' } }));
		const id = await releaseAll(campaigns, recipients, personal);
		const { counts, error } = await campaigns.deliver(id, { ...how, connections: 1 });
		expect({ counts, error }).toMatchObject({
			counts: { uncertain: 17, waiting: 23 },
			error: { code: 'network', unanswered: true },
		});
		expect(service.calls).toHaveLength(17);
	});

	it('counts a recipient as suppressed if the service creates no message for it', async () => {
		const { campaigns } = await setUp({ react: () => ({ kind: 'make', but: ['p1@example.com'] }) });
		const id = await releaseAll(campaigns, people(3));
		expect((await campaigns.deliver(id, how)).counts).toMatchObject({ accepted: 2, suppressed: 1 });
		expect((await allResults(campaigns, id)).map(({ state }) => state)).toEqual([
			'accepted',
			'suppressed',
			'accepted',
		]);
	});

	it('finishes the calls in flight after the caller aborts the delivery', async () => {
		const stop = new AbortController();
		const { campaigns, service } = await setUp({
			react: (_request, number) => {
				if (number === 3) stop.abort(new Error('stopped'));
				return { kind: 'make', delayMs: 5 };
			},
		});
		const recipients = people(30).map((one) => ({ ...one, context: { name: one.to, city: '' } }));
		const id = await releaseAll(campaigns, recipients, personal);
		const { counts, error } = await campaigns.deliver(id, { ...how, connections: 2, signal: stop.signal });
		expect({ error, unknown: counts.uncertain, sum: counts.accepted + counts.waiting }).toEqual({
			error: stop.signal.reason,
			unknown: 0,
			sum: 30,
		});
		expect(counts.accepted).toBe(service.messages.length);
	});

	it('makes no call if the campaign was canceled', async () => {
		const { campaigns, service } = await setUp();
		const id = await releaseAll(campaigns, people(3));
		await campaigns.cancel(id);
		await expect(campaigns.deliver(id, how)).rejects.toMatchObject({ message: 'This campaign is canceled.' });
		expect(await campaigns.status(id)).toMatchObject({ state: 'canceled', messages: { canceled: 3 } });
		expect(service.calls).toEqual([]);
	});
});

describe('a campaign of several send requests for another service', () => {
	const spec: RequestsSpec = { requests: true };
	const request = {
		from: 'news@example.com',
		to: ['a@example.com', 'b@example.com'],
		subject: 'S',
		text_body: 'T',
	};

	it('sends valid requests unchanged, and rejects invalid requests and duplicates', async () => {
		const { campaigns, service } = await setUp();
		const { id } = await campaigns.open('job', spec);
		const ack = await campaigns.putRequests(id, {
			first: 0,
			requests: [
				{ request: { ...request, cc: ['c@example.com'], context: { x: '1' } }, line: 1 },
				{
					request: { ...request, cc: ['c@example.com'], context: { x: '1' }, to: ['B@example.com'] },
					line: 2,
				},
				{ request: { ...request, subject: 'Other' }, line: 3 },
				{ request: { ...request, from: 'nobody' }, line: 4 },
				{ request: { ...request, text_body: '#y#' }, line: 5 },
				{ request: { ...request, list_id: 3 }, line: 6 },
				{ request: null, refused: { code: 'parse_error', error: 'no JSON' }, line: 7 },
			],
		});
		expect(ack.counts).toEqual({ staged: 4, suppressed: 0, rejected: 5 });
		expect(ack.rejects.map(({ row, code }) => [row, code])).toEqual([
			[1, 'duplicate'],
			[3, 'invalid'],
			[4, 'missing_variable'],
			[5, 'invalid'],
			[6, 'parse_error'],
		]);
		await campaigns.complete(id, { position: 7 });
		await campaigns.release(id, { expect_count: 4 });
		await campaigns.deliver(id, { ...how, connections: 1 });
		expect(service.calls).toEqual([
			{ ...request, cc: ['c@example.com'], context: { x: '1' } },
			{ ...request, subject: 'Other' },
		]);
		expect((await allResults(campaigns, id)).map(({ line, state }) => [line, state])).toEqual([
			[1, 'accepted'],
			[1, 'accepted'],
			[2, 'rejected'],
			[3, 'accepted'],
			[3, 'accepted'],
			[4, 'rejected'],
			[5, 'rejected'],
			[6, 'rejected'],
			[7, 'rejected'],
		]);
	});

	it('sends the other requests if the service rejects one', async () => {
		const { campaigns, service } = await setUp({
			react: ({ from }) =>
				from === request.from
					? { kind: 'make' }
					: { kind: 'refuse', status: 400, body: { from: ['Sender address is not verified.'] } },
		});
		const { id } = await campaigns.open('job', spec);
		const requests = ['one', 'two', 'three'].map((subject, index) => ({
			request: { ...request, subject, ...(subject === 'two' && { from: 'other@example.com' }) },
			line: index + 1,
		}));
		await campaigns.putRequests(id, { first: 0, requests });
		await campaigns.complete(id, { position: 3 });
		await campaigns.release(id, { expect_count: 6 });
		const { counts, error } = await campaigns.deliver(id, { ...how, connections: 1 });
		expect(error).toBeNull();
		expect(counts).toMatchObject({ accepted: 4, failed: 2, waiting: 0 });
		expect(service.calls).toHaveLength(3);
		const failed = (await allResults(campaigns, id)).filter(({ state }) => state === 'failed');
		expect(failed.map(({ line, text }) => [line, text])).toEqual([
			[2, 'from: Sender address is not verified.'],
			[2, 'from: Sender address is not verified.'],
		]);
	});
});

describe('a stored campaign for another service', () => {
	it('is found by its name, and is listed only for its own service', async () => {
		const desk = await setUp();
		const { id } = await desk.campaigns.open('job', { ...plain, list_id: 4 });
		await desk.campaigns.put(id, { first: 0, recipients: people(1) });
		await desk.campaigns.open('other', plain);
		const later = await desk.restart();
		expect((await later.page({ key: 'job' })).results).toMatchObject([
			{ id, key: 'job', state: 'staged', position: 1, is_complete: false, subject: 'News', list_id: 4 },
		]);
		expect(await later.page({ key: 'nope' })).toMatchObject({ count: 0, results: [] });
		expect((await later.page({})).results.map(({ key }) => key)).toEqual(['job', 'other']);
		expect(await later.status(id)).toMatchObject({ id, key: 'job' });
		const elsewhere = await setUp();
		expect(await openCampaigns(elsewhere.service, desk.folder).page({})).toMatchObject({ count: 0 });
	});

	it('can be read but not changed while another process is working on it', async () => {
		const desk = await setUp();
		const { id } = await desk.campaigns.open('job', plain);
		const second = openCampaigns(desk.service, desk.folder);
		expect((await second.page({ key: 'job' })).results).toMatchObject([{ id }]);
		await expect(second.cancel(id)).rejects.toMatchObject({
			code: 'in_use',
			message: expect.stringContaining(
				`process ${process.pid} on ${hostname()} is working on this campaign ("job")`,
			),
		});
	});
});
