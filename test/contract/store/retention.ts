/** Retention deletes and keeps the same on every database. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { SameMail } from '../../../src/api/campaigns.js';
import type { Micros } from '../../../src/api/datetime.js';
import type { Submission } from '../../../src/store/campaigns.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	campaignOf,
	day,
	deliver,
	eventOf,
	figures,
	hour,
	lease,
	messageIds,
	newList,
	newSubscriber,
	newUuid,
	noon,
	plainContent,
	put,
	recipientOf,
	releasedCampaign,
	send,
	stateOf,
	unknown550,
	verify,
} from './fixture.js';

/** An empty store, and SQL access to its database. */
export interface Kept {
	store: Store;
	/** Runs the hourly task that deletes old data. */
	expire(now: Micros): Promise<void>;
	run(sql: string): Promise<void>;
	count(sql: string): Promise<number>;
}

const html = `<p>Hello #name#</p><a href='https://shop.example/?a="1"&amp;who=#name|you#'>shop</a> <a href="https://example.com/news">news</a>`;
const linked = { subject: 'News', text: null, html, disable_inline: true };
const bulk: Partial<Submission> = {
	type: 'BULK',
	content: linked,
	content_sha256: 'hash of linked content',
	variables: ['name'],
};

/** Returns everything that reports and `check` show. */
async function told(store: Store, campaign: string) {
	const range = { from: '2026-01-01', to: '2026-12-31' };
	const report = (more: object) =>
		store.reads.reportFigures({ ...range, campaign: null, tag: null, human: false, ...more });
	return {
		all: await figures(store),
		reports: await Promise.all([
			report({}),
			report({ campaign }),
			report({ tag: 'tag' }),
			report({ tag: 'tag', human: true }),
			report({ from: '2026-03-11', tag: 'tag', campaign }),
		]),
		details: await store.reads.reportDetails({ ...range, campaign, lists: false }),
		links: (await store.reads.linkFigures({ campaign }))?.figures,
		check: await store.reads.checkCounts({}),
	};
}

async function happened(store: Store) {
	await verify(store);
	const campaign = newUuid();
	const sent: string[] = [];
	const outcomes = [
		{ kind: 'sent', reply: accepted250 },
		{ kind: 'sent', reply: accepted250 },
		{ kind: 'bounced', reply: unknown550, suppress: true },
		{ kind: 'failed', reply: busy451 },
	] as const;
	for (const more of [{ campaign, tag: 'tag' }, { campaign }, { tag: 'tag' }, {}])
		for (const [at, outcome] of outcomes.entries()) {
			const one = { ...bulk, ...more, type: 'campaign' in more ? 'BULK' : 'TRANSACTIONAL' } as const;
			await send(store, [`p${sent.length}@a${at}.example`], one);
			sent.push(await deliver(store, outcome, noon + at * hour));
		}
	await store.writes.recordEvents({
		events: sent.flatMap((message, at) => [
			eventOf(message, 'OPENED', { at: noon + (at % 3) * day, machine: at % 2 === 0, ip: '192.0.2.1' }),
			eventOf(message, 'REDIRECTED', { at: noon + 9 * hour, link: at % 2, machine: at % 3 === 0 }),
			eventOf(message, 'REDIRECTED', { at: noon + 10 * hour, link: 0 }),
			...(at % 4 === 1 ? [eventOf(message, 'HARDBOUNCED', { at: noon + 2 * day, smtp_code: '5.2.2' })] : []),
		]),
	});
	return { campaign, sent };
}

/** Releases a campaign with one message for each outcome, one of them canceled by a complaint. */
async function campaignOfAllEnds(store: Store) {
	await verify(store);
	const command = campaignOf('ends');
	await store.writes.openCampaign(command);
	const outcomes = [
		{ kind: 'sent', reply: accepted250 },
		{ kind: 'sent', reply: accepted250 },
		{ kind: 'bounced', reply: unknown550, suppress: true },
		{ kind: 'failed', reply: busy451 },
		{ kind: 'uncertain', reply: busy451 },
	] as const;
	const to = [...outcomes, 'canceled'].map((_, at) => recipientOf(`p${at}@example.org`));
	await put(store, command.id, 0, to);
	await store.writes.releaseCampaign({ campaign: command.id, expect_count: to.length, now: noon });
	for (const outcome of outcomes) await deliver(store, outcome);
	const left = await store.reads.pageMessages({ page: 1, page_size: 9, filter: { status: 'queued' } });
	for (const { id } of left.results) await store.writes.changeMessage({ id, action: 'cancel', now: noon });
	return { campaign: command.id, outcomes: to.length };
}

const keep = (store: Store, values: Record<string, string>) =>
	store.writes.putSettings({ values, now: noon });
const nothingWrong = { lists: [], figures: 0, campaigns: [] };

async function statusOf(store: Store, c: Parameters<Store['reads']['campaignStatus']>[0]) {
	const { replies: _, ...status } = (await store.reads.campaignStatus(c)) ?? {};
	return status as Omit<NonNullable<Awaited<ReturnType<Store['reads']['campaignStatus']>>>, 'replies'>;
}

export function retentionSuite(open: () => Promise<Kept>): void {
	it('retention deletes nothing without a setting', async () => {
		const { store, expire } = await open();
		const { sent } = await happened(store);
		await expire(noon + 4000 * day);
		expect(await messageIds(store)).toHaveLength(sent.length);
	});

	it('retention changes no figure in reports, even after a repair or a change of time zone', async () => {
		const { store, expire, run, count } = await open();
		const { campaign } = await happened(store);
		const before = await told(store, campaign);
		expect(before.check).toEqual(nothingWrong);
		await keep(store, { keep_messages: '30d' });
		await expire(noon + 30 * day - 1);
		expect(await told(store, campaign)).toEqual(before);
		expect(await count('SELECT count(*) FROM messages')).toBe(16);
		await expire(noon + 30 * day);
		for (const table of ['messages', 'message_firsts', 'events', 'attempts'])
			expect([table, await count(`SELECT count(*) FROM ${table}`)]).toEqual([table, 0]);
		expect(await told(store, campaign)).toEqual(before);
		for (const table of ['daily', 'quarter', 'link', 'bounce', 'bounced'].map((of) => `${of}_figures`))
			await run(`DELETE FROM ${table}`);
		expect((await store.reads.checkCounts({})).figures).toBeGreaterThan(10);
		await store.writes.repairCounts({});
		expect(await told(store, campaign)).toEqual(before);
		await keep(store, { time_zone: 'Pacific/Apia' });
		await keep(store, { time_zone: 'UTC' });
		expect(await told(store, campaign)).toEqual(before);
	});

	it('retention does not delete waiting messages or unfinished campaigns', async () => {
		const { store, expire } = await open();
		await verify(store);
		const list = await newList(store);
		for (const name of ['a', 'b']) await newSubscriber(store, list, `${name}@example.org`);
		const campaign = await releasedCampaign(store, list, 'news');
		const [first] = await lease(store, { max: 1, scope: { campaign } });
		if (first === undefined) throw new Error('nothing was leased');
		const settled = { message: first.message, fence: first.fence, at: noon };
		await store.queue.settle({
			settlements: [{ ...settled, outcome: { kind: 'sent', reply: accepted250 } }],
		});
		await send(store, ['c@example.org']);
		await keep(store, { keep_messages: '1d', keep_bodies: '1d', keep_events: '1d' });
		await expire(noon + 400 * day);
		expect(await messageIds(store)).toHaveLength(3);
		const [last] = await lease(store, { now: noon + 400 * day, scope: { campaign } });
		expect(last?.to).toBeDefined();
		const submission = last && (await store.reads.getSubmission({ id: last.submission }));
		expect([submission?.content.text, submission?.is_dropped]).toEqual(['Hello', undefined]);
		await store.queue.settle({
			settlements: [
				{
					message: last?.message ?? '',
					fence: last?.fence ?? 0,
					at: noon + 400 * day,
					outcome: { kind: 'sent', reply: accepted250 },
				},
			],
		});
		await expire(noon + 400 * day);
		expect(await messageIds(store)).toHaveLength(1);
		expect((await store.reads.checkCounts({})).figures).toBe(0);
	});

	it('retention deletes the messages and results of a campaign, and keeps its name and counts', async () => {
		const { store, expire, count } = await open();
		await verify(store);
		const command = campaignOf('rows', { ...bulk, variables: ['name'] });
		await store.writes.openCampaign({ ...command, strict_vars: true });
		const rejected = { kind: 'rejected', to: 'b', code: 'invalid', error: 'no address', line: 2 } as const;
		await put(store, command.id, 0, [recipientOf('a@example.org', { name: 'Ann' }), rejected]);
		await store.writes.releaseCampaign({ campaign: command.id, expect_count: 1, now: noon });
		await deliver(store, { kind: 'sent', reply: accepted250 });
		await lease(store, { scope: { campaign: command.id } });
		await keep(store, { keep_messages: '30d' });
		await expire(noon + 31 * day);
		expect(await count('SELECT count(*) FROM campaign_results')).toBe(0);
		const { results } = await store.reads.pageCampaigns({ page: 1, page_size: 9, now: noon + 31 * day });
		expect(results[0]).toMatchObject({ key: 'rows', is_finished: true, counts: { staged: 1, rejected: 1 } });
		expect(results[0]?.figures?.sent).toBe(1);
		expect(results[0]?.date_dropped).toBe('2026-04-10T12:00:00.000000');
		expect(await store.reads.campaignStatus({ id: command.id, now: noon + 31 * day })).toMatchObject({
			is_finished: true,
			messages: { sent: 1 },
		});
		// The name still belongs to this campaign, so nobody gets the mail twice.
		expect(await store.writes.openCampaign({ ...command, strict_vars: true })).toMatchObject({
			kind: 'opened',
			session: { id: command.id, position: 2 },
		});
	});

	it('retention keeps the message counts of a campaign, even after an erasure', async () => {
		const { store, expire } = await open();
		const { campaign, outcomes } = await campaignOfAllEnds(store);
		const status = () => statusOf(store, { id: campaign, now: noon });
		const before = await status();
		expect(before?.messages).toEqual({ sent: 2, bounced: 1, failed: 1, uncertain: 1, canceled: 1 });
		expect(before?.counts.staged).toBe(outcomes);
		await keep(store, { keep_messages: '30d' });
		await expire(noon + 31 * day);
		expect(await messageIds(store)).toEqual([]);
		expect(await status()).toEqual(before);
		expect(await store.reads.countMessages({ scope: { campaign } })).toEqual(before?.messages);
		expect(await store.reads.countMessages({ scope: { campaign }, only_of: 'another' })).toEqual({});
		expect(await store.reads.checkCounts({})).toEqual(nothingWrong);
		await store.writes.erasePerson({
			...{ email_key: 'p0@example.org', fresh: { id: 1, secret: 'c2VjcmV0' }, now: noon },
		});
		expect(await status()).toEqual(before);
	});

	it('a client that made all calls of a campaign sees the same message counts after retention', async () => {
		const { store, expire } = await open();
		await verify(store);
		const campaign = newUuid();
		await send(store, ['x@example.org', 'y@example.org'], { ...bulk, campaign, owner: 'shop' });
		await deliver(store, { kind: 'sent', reply: accepted250 });
		await deliver(store, { kind: 'bounced', reply: unknown550, suppress: false });
		const status = (more: object = {}) => statusOf(store, { id: campaign, now: noon, ...more });
		const before = await status();
		expect(before).toMatchObject({ counts: { staged: 2 }, messages: { bounced: 1, sent: 1 } });
		await keep(store, { keep_messages: '30d' });
		await expire(noon + 31 * day);
		expect(await messageIds(store)).toEqual([]);
		expect(await status()).toEqual(before);
		expect(await status({ only_of: 'shop' })).toEqual(before);
		await send(store, ['z@example.org'], { ...bulk, campaign, owner: 'news' });
		expect(await status({ only_of: 'news' })).toMatchObject({ messages: { queued: 1 } });
		expect((await status({ only_of: 'shop' }))?.messages).toEqual({});
		expect(await status()).toMatchObject({ messages: { bounced: 1, queued: 1, sent: 1 } });
	});

	it('retention deletes old records of people who were left out of send calls', async () => {
		const { store, expire, count } = await open();
		await verify(store);
		const campaign = newUuid();
		const gone = { email_key: 'gone@example.org', reason: 'UNSUBSCRIBED', list_id: null } as const;
		await store.writes.putSuppressions({
			rows: [{ ...gone, source: 'API', created_at: noon, expires_at: null }],
			now: noon,
		});
		await send(store, ['gone@example.org'], { ...bulk, campaign });
		await send(store, ['gone@example.org'], { ...bulk, campaign, now: noon + 20 * day });
		const kept = () => count('SELECT count(*) FROM campaign_left_out');
		expect(await kept()).toBe(2);
		await expire(noon + 31 * day);
		expect(await kept()).toBe(2);
		await keep(store, { keep_messages: '30d' });
		await expire(noon + 31 * day);
		expect(await kept()).toBe(1);
		await expire(noon + 51 * day);
		expect(await kept()).toBe(0);
	});

	it('retention keeps what old links need: person, list, sender, targets and values', async () => {
		const { store, expire } = await open();
		await verify(store);
		const list = await newList(store);
		const { id: subscriber_id } = await newSubscriber(store, list, 'ann@example.org', { name: 'Ann' });
		await send(store, ['ann@example.org', 'bob@example.org'], { ...bulk, list_id: list });
		const ids = await messageIds(store);
		for (const _ of ids) await deliver(store, { kind: 'sent', reply: accepted250 });
		await keep(store, { keep_messages: '30d' });
		await expire(noon + 31 * day);
		const [ann, bob] = await Promise.all(ids.map((id) => store.reads.getOldMessage({ id })));
		expect(ann).toMatchObject({
			to: 'ann@example.org',
			from: 'Desk <desk@example.org>',
			list_id: list,
			variables: { name: 'Ann' },
		});
		expect(bob).toMatchObject({ to: 'bob@example.org', variables: { name: '' } });
		const submission = await store.reads.getSubmission({ id: ann?.submission ?? '' });
		expect(submission).toMatchObject({ is_dropped: true, content: { subject: 'News', text: null } });
		expect(submission?.content.html).toBe(
			'<a href="https://shop.example/?a=&quot;1&quot;&amp;who=#name|you#"></a><a href="https://example.com/news"></a>',
		);
		const [to_ann = '', to_bob = ''] = ids;
		const counted = await figures(store);
		await store.writes.recordEvents({
			events: [
				eventOf(to_ann, 'UNSUBSCRIBED', { at: noon + 32 * day }),
				eventOf(to_bob, 'UNSUBSCRIBED', { at: noon + 32 * day }),
				eventOf(to_bob, 'OPENED', { at: noon + 32 * day }),
			],
		});
		expect(await figures(store)).toEqual(counted);
		expect((await store.reads.checkCounts({})).figures).toBe(0);
		expect(await store.reads.getSubscriber({ list_id: list, id: subscriber_id })).toMatchObject({
			is_active: false,
			disable_reason: 'UNSUBSCRIBED',
		});
		const { results } = await store.reads.pageSuppressions({ page: 1, page_size: 9, filter: {}, now: noon });
		expect(results.map(({ email }) => email).sort()).toEqual(['ann@example.org', 'bob@example.org']);
	});

	it('an erasure removes the person from what retention kept', async () => {
		const { store, expire, count } = await open();
		await verify(store);
		const list = await newList(store);
		await newSubscriber(store, list, 'ann@example.org', { name: 'Ann' });
		await send(store, ['ann@example.org', 'bob@example.org'], { ...bulk, list_id: list });
		for (const _ of [1, 2]) await deliver(store, { kind: 'sent', reply: accepted250 });
		await keep(store, { keep_messages: '1d' });
		await expire(noon + day);
		expect(await count('SELECT count(*) FROM old_messages')).toBe(2);
		for (const email_key of ['ann@example.org', 'bob@example.org'])
			await store.writes.erasePerson({ email_key, fresh: { id: 1, secret: 'c2VjcmV0' }, now: noon + day });
		expect(await count('SELECT count(*) FROM old_messages')).toBe(0);
	});

	it('an old link still unsubscribes people who were added again or changed their address', async () => {
		const { store, expire } = await open();
		await verify(store);
		const list = await newList(store);
		const { id } = await newSubscriber(store, list, 'ann@example.org');
		const { id: moved } = await newSubscriber(store, list, 'bob@example.org');
		await send(store, ['ann@example.org', 'bob@example.org'], { ...bulk, list_id: list });
		const ids = await messageIds(store);
		for (const _ of ids) await deliver(store, { kind: 'sent', reply: accepted250 });
		await keep(store, { keep_messages: '1d' });
		await expire(noon + day);
		await store.writes.deleteSubscriber({ list_id: list, id, now: noon + day });
		await newSubscriber(store, list, 'ann@example.org');
		const patch = { email: 'robert@example.org' };
		await store.writes.patchSubscriber({ list_id: list, id: moved, patch, now: noon + day });
		expect(await store.reads.getOldMessage({ id: ids[0] ?? '' })).toMatchObject({ to: 'ann@example.org' });
		await store.writes.recordEvents({
			events: ids.map((message) => eventOf(message, 'UNSUBSCRIBED', { at: noon + 2 * day })),
		});
		const page = { page: 1, page_size: 9 };
		const people = await store.reads.pageSubscribers({ ...page, list_id: list, filter: { is_active: true } });
		expect(people?.count).toBe(0);
		const { results } = await store.reads.pageSuppressions({ ...page, filter: {}, now: noon + 2 * day });
		expect(results.map(({ email }) => email).sort()).toEqual([
			...['ann@example.org', 'bob@example.org', 'robert@example.org'],
		]);
	});

	it('keep_events deletes single opens and clicks, but the message still shows its first open', async () => {
		const { store, expire, count } = await open();
		const { campaign, sent } = await happened(store);
		const before = await told(store, campaign);
		await keep(store, { keep_events: '7d' });
		await expire(noon + 10 * day);
		expect(await count("SELECT count(*) FROM events WHERE type NOT LIKE '%BOUNCED'")).toBe(0);
		expect(await count('SELECT count(*) FROM events')).toBe(4);
		const found = await store.reads.getMessage({ id: sent[0] ?? '' });
		expect(found?.events.map(({ type, count }) => `${type} ${count}`)).toContain('OPENED 1');
		expect(await told(store, campaign)).toEqual(before);
	});

	it('keep_bodies deletes a body after its last use, and a send with the same content restores the body', async () => {
		const { store, expire } = await open();
		await verify(store);
		const first = await send(store, ['ann@example.org'], bulk);
		const message = await deliver(store, { kind: 'uncertain', reply: busy451 });
		await keep(store, { keep_bodies: '7d' });
		// The store updates the time of the last send once a day, so retention waits for one more day.
		await expire(noon + 8 * day - 1);
		expect(await store.reads.getSubmission({ id: first.submission })).not.toMatchObject({ is_dropped: true });
		await expire(noon + 8 * day);
		expect(await store.reads.getSubmission({ id: first.submission })).toMatchObject({ is_dropped: true });
		expect(await store.writes.changeMessage({ id: message, action: 'retry', now: noon + 7 * day })).toEqual({
			kind: 'refused',
			why: 'has no text any more: keep_bodies deleted it',
		});
		expect(await stateOf(store, message)).toBe('uncertain');
		await send(store, ['bob@example.org'], { ...bulk, now: noon + hour });
		const again = await store.reads.getSubmission({ id: first.submission });
		expect([again?.content, again?.is_dropped]).toEqual([linked, undefined]);
		await deliver(store, { kind: 'sent', reply: accepted250 }, noon + 8 * day);
		await send(store, ['cy@example.org'], { ...bulk, now: noon + 8 * day });
		await deliver(store, { kind: 'sent', reply: accepted250 }, noon + 8 * day);
		await expire(noon + 14 * day);
		expect((await store.reads.getSubmission({ id: first.submission }))?.content.html).toBe(html);
	});

	it('keep_events deletes the record of each old open, even if thousands of bounces have the same time', async () => {
		const { store, expire, run, count } = await open();
		const { sent } = await happened(store);
		const [message] = sent;
		const id = await count(`SELECT id FROM messages WHERE uuid = '${message}'`);
		const rows = Array.from({ length: 2_100 }, () => `(${id}, 'HARDBOUNCED', ${noon - day}, 0)`);
		await run(`INSERT INTO events (message_id, type, at, machine) VALUES ${rows.join(', ')}`);
		const opened = [noon - day, noon - day, noon].map((at) => `(${id}, 'OPENED', ${at}, 0)`);
		await run(`INSERT INTO events (message_id, type, at, machine) VALUES ${opened.join(', ')}`);
		await keep(store, { keep_events: '7d' });
		await expire(noon + 30 * day);
		expect(await count("SELECT count(*) FROM events WHERE type NOT LIKE '%BOUNCED'")).toBe(0);
		expect(await count('SELECT count(*) FROM events')).toBe(4 + rows.length);
	});

	it('a file is kept for a day after its last use', async () => {
		const { store, expire } = await open();
		await verify(store);
		const bytes = Buffer.from('file');
		const sha256 = createHash('sha256').update(bytes).digest('hex');
		const attachments = [{ name: 'a.txt', type: 'text/plain', sha256 }];
		const content = { ...plainContent, attachments };
		const more = { content, content_sha256: 'with a file' };
		for (const settings of [
			{ keep_bodies: '7d', keep_messages: '400d' },
			{ keep_bodies: '400d', keep_messages: '7d' },
		]) {
			await store.writes.putAttachment({ sha256, bytes, now: noon });
			await send(store, ['ann@example.org'], more);
			await deliver(store, { kind: 'sent', reply: accepted250 });
			await keep(store, settings);
			await store.writes.putAttachment({ sha256, bytes, now: noon + 8 * day });
			await expire(noon + 8 * day);
			const later = await send(store, ['bob@example.org'], { ...more, now: noon + 8 * day });
			expect((await store.reads.getSubmission({ id: later.submission }))?.content).toEqual(content);
			await deliver(store, { kind: 'sent', reply: accepted250 }, noon + 8 * day);
			await expire(noon + 500 * day);
			expect(await store.reads.getAttachment({ sha256 })).not.toBeNull();
			await expire(noon + 501 * day);
			expect(await store.reads.getAttachment({ sha256 })).toBeNull();
		}
	});

	it('a repeated campaign is detected even after keep_bodies deleted its text', async () => {
		const { store, expire, count } = await open();
		await verify(store);
		const command = campaignOf('rows');
		const spec = { ...command.spec, text_body: 'Dear secret reader' };
		const opening = { ...command, spec };
		await store.writes.openCampaign(opening);
		await put(store, command.id, 0, ['a@example.org']);
		await store.writes.releaseCampaign({ campaign: command.id, expect_count: 1, now: noon + 9 * day });
		await deliver(store, { kind: 'sent', reply: accepted250 }, noon + 9 * day);
		const secret = "SELECT count(*) FROM campaigns WHERE spec LIKE '%secret%'";
		await expire(noon + 9 * day);
		expect(await count(secret)).toBe(1);
		await keep(store, { keep_bodies: '7d' });
		await expire(noon + 9 * day);
		expect(await count(secret)).toBe(0);
		expect(await store.writes.openCampaign({ ...opening, id: newUuid() })).toMatchObject({
			...{ kind: 'opened', session: { id: command.id, position: 1 } },
		});
		const other = { ...opening, id: newUuid(), spec: { ...spec, text_body: 'Dear other reader' } };
		expect(await store.writes.openCampaign(other)).toEqual({ kind: 'conflict' });
		// Within a day of a release, `sent` refuses another campaign with the same mail.
		const begin = (key: string, unless: SameMail, now: number) =>
			store.writes.openCampaign({ ...campaignOf(key), spec, unless, now });
		expect(await begin('again', 'sent', noon + 9 * day)).toEqual({ kind: 'repeated', key: 'rows' });
		// A staged repetition refuses further ones with the same mail until it is canceled.
		const repetition = await begin('again', 'repeating', noon + 9 * day);
		expect(repetition).toMatchObject({ kind: 'opened' });
		for (const unless of ['repeating', 'repeated'] as const)
			expect(await begin('third', unless, noon + 30 * day)).toEqual({ kind: 'repeated', key: 'again' });
		if (repetition.kind === 'opened')
			await store.writes.cancelCampaign({ campaign: repetition.session.id, now: noon + 30 * day });
		// A campaign that was opened with `sent` is not a repetition, so `repeating` allows the next one.
		expect(await begin('late', 'sent', noon + 30 * day)).toMatchObject({ kind: 'opened' });
		expect(await begin('next', 'repeating', noon + 30 * day)).toMatchObject({ kind: 'opened' });
		const { results } = await store.reads.pageCampaigns({ page: 1, page_size: 9, now: noon + 9 * day });
		expect(results[0]).toMatchObject({ key: 'rows', type: 'BULK', subject: 'Hi' });
	});
}
