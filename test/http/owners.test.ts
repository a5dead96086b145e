// A token with the scope `send` reads and changes only its own records. Two such tokens use real clients, one server
// and one engine.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../src/api/api.js';
import type { CampaignSpec } from '../../src/api/campaigns.js';
import { type Extensions, need } from '../../src/api/capabilities.js';
import { systemClock } from '../../src/api/datetime.js';
import { type Client, createClient } from '../../src/http/client/client.js';
import { clientOptions } from '../support/client.js';
import { ask, type Deployment, deploy, tokens } from './server/serving.js';

const scopesOf = {
	shop: ['send'],
	news: ['send'],
	desk: ['send', 'read'],
	office: ['read'],
} as const;
type Name = keyof typeof scopesOf;

const secretOf = (name: Name) => `mctl_${name}-0123456789abcdefghijABCDEFGHIJ`;
const unknownId = '00000000-0000-4000-8000-000000000000';
const notFound = { code: 'not_found', message: 'Not found.' };

describe('a token with the scope send', () => {
	let deployment: Deployment;
	const clients = new Map<Name | 'admin', Client>();
	beforeAll(async () => {
		deployment = await deploy({ ports: { renderMessage: async () => Buffer.from('a mail') } });
		for (const [name, scopes] of Object.entries(scopesOf)) {
			const sha256 = createHash('sha256')
				.update(secretOf(name as Name))
				.digest('hex');
			await deployment.store.writes.createToken({ sha256, name, scopes, now: systemClock.now() });
		}
		const baseUrl = deployment.server.url;
		for (const name of Object.keys(scopesOf) as Name[])
			clients.set(name, createClient(clientOptions({ baseUrl, token: secretOf(name) })));
		clients.set('admin', createClient(clientOptions({ baseUrl, token: tokens.admin })));
	});
	afterAll(async () => {
		await Promise.all([...clients.values()].map((client) => client.close()));
		await deployment.close();
	});

	const apiOf = (name: Name | 'admin'): Api => {
		const client = clients.get(name);
		if (client === undefined) throw new Error(`no client of ${name}`);
		return client.api;
	};
	const of = <K extends 'campaigns' | 'messages'>(name: Name | 'admin', what: K): Promise<Extensions[K]> =>
		need(apiOf(name), what);
	let counter = 0;
	const unique = (word: string) => `${word}${++counter}`;
	const spec = (more: Partial<CampaignSpec> = {}): CampaignSpec => ({
		from: 'news@example.com',
		type: 'TRANSACTIONAL',
		subject: 's',
		text_body: 'b',
		...more,
	});
	const openOf = async (name: Name | 'admin', more: Partial<CampaignSpec> = {}) => {
		const key = unique('job');
		const { id } = await (await of(name, 'campaigns')).open(key, spec(more));
		await (await of(name, 'campaigns')).put(id, { first: 0, recipients: [{ to: 'ann@example.com' }] });
		return { id, key };
	};

	const everything = (campaigns: Extensions['campaigns'], id: string): [string, () => Promise<unknown>][] => [
		['status', () => campaigns.status(id)],
		['results', () => campaigns.results(id, {})],
		['put', () => campaigns.put(id, { first: 1, recipients: [{ to: 'bob@example.com' }] })],
		['put again', () => campaigns.put(id, { first: 0, recipients: [{ to: 'ann@example.com' }] })],
		['putRequests', () => campaigns.putRequests(id, { first: 1, requests: [{ request: {} }] })],
		['complete', () => campaigns.complete(id, { position: 1 })],
		['release', () => campaigns.release(id, { expect_count: 1 })],
		['release of another count', () => campaigns.release(id, { expect_count: 9 })],
		['cancel', () => campaigns.cancel(id)],
	];

	it('can use another token’s file only after uploading the same bytes itself', async () => {
		const sha256 = createHash('sha256').update('an invoice').digest('hex');
		const attachments = [{ name: 'invoice.txt', type: 'text/plain', sha256 }];
		const mail = { ...spec({ attachments }), to: ['ann@example.com'] };
		const put = async (name: Name) =>
			(await need(apiOf(name), 'attachments')).put(sha256, Buffer.from('an invoice'));
		const campaigns = await of('news', 'campaigns');
		const { id } = await campaigns.open(unique('job'), { requests: true });
		const stage = (first: number) => campaigns.putRequests(id, { first, requests: [{ request: mail }] });
		await put('shop');
		await expect((await need(apiOf('news'), 'attachments')).find(sha256)).rejects.toMatchObject(notFound);
		await expect(apiOf('news').send(mail)).rejects.toMatchObject({ code: 'invalid' });
		expect(await stage(0)).toMatchObject({ rejects: [{}] });
		await put('news');
		expect(await stage(1)).toMatchObject({ rejects: [] });
	});

	it('gets the same error for another token’s record as for a missing one', async () => {
		const { id, key } = await openOf('shop');
		const campaigns = await of('news', 'campaigns');
		for (const [what, ask] of everything(campaigns, id))
			await expect(ask(), what).rejects.toMatchObject(notFound);
		for (const [what, ask] of everything(campaigns, unknownId))
			await expect(ask(), what).rejects.toMatchObject(notFound);
		const answers = await Promise.all(
			[id, unknownId].map((one) =>
				ask(deployment, 'GET', `/ext/mailings/${one}/`, { token: secretOf('news') }),
			),
		);
		const [here, gone] = answers.map(({ status, text, headers }) => [
			status,
			text,
			headers.get('x-error-code'),
		]);
		expect(here).toEqual(gone);
		expect(await (await of('shop', 'campaigns')).status(id)).toMatchObject({
			key,
			state: 'staged',
			counts: { staged: 1, suppressed: 0, rejected: 0 },
		});
	});

	it('can add a list to its own campaign, but not to a campaign of another token', async () => {
		const list = await apiOf('admin').lists.create({ name: 'News', email_reason: 'asked' });
		const { id } = await openOf('shop');
		await expect((await of('desk', 'campaigns')).addList(id, list.id)).rejects.toMatchObject(notFound);
		const own = await openOf('desk');
		expect((await (await of('desk', 'campaigns')).addList(own.id, list.id)).counts.staged).toBe(0);
	});

	it('lists only its own records, even if the request names the record of another token', async () => {
		const { key } = await openOf('shop');
		const own = await openOf('news');
		const ofNews = await (await of('news', 'campaigns')).page({});
		expect(ofNews.results.map((one) => one.key)).toContain(own.key);
		expect(ofNews.results.map((one) => one.key)).not.toContain(key);
		expect(ofNews.count).toBe(ofNews.results.length);
		expect(await (await of('news', 'campaigns')).page({ key })).toMatchObject({ count: 0, results: [] });
		expect(await (await of('shop', 'campaigns')).page({ key })).toMatchObject({ count: 1 });
	});

	it('gets a conflict without details for a campaign name of another token', async () => {
		const { key } = await openOf('shop');
		const campaigns = await of('news', 'campaigns');
		const same = await campaigns.open(key, spec()).catch((error: unknown) => error);
		const other = await campaigns.open(key, spec({ subject: 'other' })).catch((error: unknown) => error);
		expect(same).toMatchObject({ code: 'conflict', fields: null });
		expect(other).toEqual(same);
	});

	it('is not blocked by an unfinished campaign of another token', async () => {
		const shared = { subject: unique('subject') };
		const { key } = await openOf('shop', shared);
		const careful = { unless: 'sent' as const };
		const opened = await (await of('news', 'campaigns')).open(unique('job'), spec(shared), careful);
		expect(opened.position).toBe(0);
		await expect(
			(await of('shop', 'campaigns')).open(unique('job'), spec(shared), careful),
		).rejects.toMatchObject({ code: 'conflict', fields: { sent: [{ message: key }] } });
	});

	it('cannot see the progress of another token’s send', async () => {
		const { id } = await openOf('shop');
		const sent = await sendOf(apiOf('shop'));
		const scopes = [{ campaign: id }, { submission: sent.submission }];
		for (const scope of scopes) {
			expect((await (await of('news', 'messages')).progress(scope)).messages).toEqual({});
			expect((await (await of('shop', 'messages')).progress(scope)).messages).not.toEqual({});
		}
	});

	it('creates records that other tokens can see with the scope read, but change only with the scope admin', async () => {
		const { id } = await openOf('shop');
		const { message } = await sendOf(apiOf('shop'));
		const [campaigns, messages] = [await of('desk', 'campaigns'), await of('desk', 'messages')];
		expect(await campaigns.status(id)).toMatchObject({ messages: { staged: 1 } });
		expect((await campaigns.results(id, {})).results).toHaveLength(1);
		expect((await campaigns.page({ page_size: 1_000 })).results.map((one) => one.id)).toContain(id);
		expect(await messages.get(message)).toMatchObject({ id: message, state: 'queued' });
		expect(await messages.raw(message)).toMatchObject({ id: message });
		for (const [what, change] of everything(campaigns, id).slice(2))
			await expect(change(), what).rejects.toMatchObject(notFound);
		await expect(messages.cancel(message)).rejects.toMatchObject(notFound);
		await expect(messages.retry(message)).rejects.toMatchObject(notFound);
		expect(await messages.get(message)).toMatchObject({ state: 'queued' });
		const own = await sendOf(apiOf('desk'));
		expect(await messages.cancel(own.message)).toMatchObject({ state: 'canceled' });
		const admin = await of('admin', 'campaigns');
		await admin.release(id, { expect_count: 1 });
		expect(await (await of('admin', 'messages')).cancel(message)).toMatchObject({ state: 'canceled' });
	});

	it('cannot see records created without a token', async () => {
		const { id } = await deployment.engine.ext.campaigns.open(unique('job'), spec());
		await expect((await of('shop', 'campaigns')).status(id)).rejects.toMatchObject(notFound);
		expect(await (await of('desk', 'campaigns')).status(id)).toMatchObject({ id });
		const { id: theirs } = await openOf('shop');
		expect(await deployment.engine.ext.campaigns.status(theirs)).toMatchObject({ state: 'staged' });
		await deployment.engine.ext.campaigns.cancel(theirs);
	});
});

async function sendOf(api: Api): Promise<{ message: string; submission: string }> {
	let submission = '';
	const request = { from: 'news@example.com', to: ['ann@example.com'], subject: 's', text_body: 'b' };
	const { messages } = await api.send(request, {
		onAccepted: (accepted) => {
			submission = accepted.submission ?? '';
		},
	});
	return { message: messages[0]?.id ?? '', submission };
}
