import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventType, Uuid } from '../../src/api/records.js';
import { createEngine, type Engine } from '../../src/engine/engine.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { refuses } from '../support/refuses.js';

const now = Date.UTC(2026, 10, 21, 23, 30) * 1000;
let moment = now;
const clock = { now: () => moment };
let ids = 0;
let store: Store;
let engine: Engine;

beforeEach(async () => {
	store = await openStore(':memory:', { clock, mode: 'create' });
	engine = createEngine({
		store,
		clock,
		newId: () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`,
		newSecret: () => 'secret',
		ports: {
			checkTarget: async () => null,
			notifyTest: async () => ({ result: true, status_code: 200, error: null, duration_ms: 0 }),
			renderMessage: async () => null,
			whyPaused: () => null,
		},
	});
	await engine.senders.create({ from_email: 'news@example.com' });
});
afterEach(() => engine.close());

const replyOf = (code: number) => ({ phase: 'rcpt', code, enhanced: null, text: 'said so' }) as const;
const outcomes = {
	sent: { kind: 'sent', reply: replyOf(250) },
	failed: { kind: 'failed', reply: replyOf(451) },
	bounced: { kind: 'bounced', reply: replyOf(550), suppress: false },
} as const;

async function sent(count: number, tag = 'a', outcome: keyof typeof outcomes = 'sent'): Promise<Uuid[]> {
	const to = Array.from({ length: count }, (_, i) => `${tag}${i}@example.com`);
	const { messages } = await engine.send({ from: 'news@example.com', to, subject: 's', text_body: 't', tag });
	return settled(
		messages.map(({ id }) => id),
		outcome,
	);
}

async function settled<T>(answer: T, outcome: keyof typeof outcomes = 'sent'): Promise<T> {
	const at = clock.now();
	const leased = await store.queue.lease({ owner: 'w', now: at, until: at + 1e6, max: 100, scope: null });
	await store.queue.settle({
		settlements: leased.map(({ message, fence }) => ({ message, fence, at, outcome: outcomes[outcome] })),
	});
	return answer;
}

const happen = (
	message: Uuid | undefined,
	type: Exclude<EventType, 'CREATED' | 'SENT'>,
	machine = false,
	link: number | null = null,
) =>
	store.writes.recordEvents({
		events: [
			{
				message: message ?? '',
				type,
				at: moment,
				link,
				machine,
				ip: null,
				user_agent: null,
				url: null,
				smtp_code: null,
				diagnostic: null,
			},
		],
	});

describe('the details of a report', () => {
	const campaign = '99999999-0000-4000-8000-000000000000';
	const mail = { from: 'news@example.com', subject: 's', text_body: 't', campaign_unique_id: campaign };
	const sendTo = async (to: string[], outcome: keyof typeof outcomes = 'sent') => {
		const { messages } = await engine.send({ ...mail, to } as never);
		return (await settled(messages, outcome)).map(({ id }) => id);
	};

	it('count people and bots separately by day, hour and hour of the week, in the database’s time zone', async () => {
		const [first, second] = await sendTo(['a@example.com', 'b@example.com']);
		await sendTo(['c@one.example', 'd@one.example'], 'bounced');
		await sendTo(['e@two.example'], 'failed');
		await happen(first, 'OPENED');
		await happen(first, 'OPENED', true);
		await happen(second, 'OPENED', true);
		await happen(first, 'REDIRECTED', false, 0);
		const read = () => engine.ext.reports.details({ campaign_unique_id: campaign });
		const sums = { created: 5, sent: 2, opened: 1, machine_opened: 1, clicked: 1, machine_clicked: 0 };
		const others = { unsubscribed: 0, softbounced: 1, hardbounced: 2, complained: 0 };
		const details = await read();
		expect(details).toMatchObject({ from: '2026-11-21', to: '2026-11-21', time_zone: 'UTC' });
		expect(details.total).toEqual({ ...sums, ...others, attempted: 5, delivered: 2 });
		expect(details.days).toEqual([{ date: '2026-11-21', ...sums, ...others }]);
		expect(details.hours).toEqual([{ date: '2026-11-21T23:00', ...sums, ...others }]);
		expect(details.week).toEqual([{ weekday: 6, hour: 23, ...sums, ...others }]);
		expect(details.bounces).toEqual({
			domains: [
				{ domain: 'one.example', softbounced: 0, hardbounced: 2 },
				{ domain: 'two.example', softbounced: 1, hardbounced: 0 },
			],
			other_domains: 0,
			codes: [
				{ code: '550', softbounced: 0, hardbounced: 2 },
				{ code: '451', softbounced: 1, hardbounced: 0 },
			],
		});
		await store.writes.putSettings({ values: { time_zone: 'Asia/Kathmandu' }, now });
		const there = await read();
		expect(there).toMatchObject({ from: '2026-11-22', total: details.total });
		expect(there.days).toEqual([{ date: '2026-11-22', ...sums, ...others }]);
		expect(there.hours).toEqual([{ date: '2026-11-22T05:00', ...sums, ...others }]);
		expect(there.week).toEqual([{ weekday: 7, hour: 5, ...sums, ...others }]);
	});

	it('count complaints and soft bounces', async () => {
		const [first] = await sendTo(['a@example.com', 'b@example.com']);
		const report = { message: first ?? '', matched: 'return_path', at: now, recipients: [] } as const;
		await store.writes.recordReport({ ...report, sha256: '1', kind: 'complaint' });
		await store.writes.recordReport({ ...report, sha256: '2', kind: 'complaint' });
		await happen(first, 'SOFTBOUNCED');
		const { total, days } = await engine.ext.reports.details({ campaign_unique_id: campaign });
		expect(total).toMatchObject({ sent: 2, attempted: 2, delivered: 1, softbounced: 1, complained: 1 });
		expect(days).toMatchObject([{ complained: 1 }]);
	});

	it('include each list’s new and lost subscribers by day if lists are requested', async () => {
		const day = (date: number, hour = 12) => {
			moment = Date.UTC(2026, 10, date, hour) * 1000;
		};
		const stop = (
			reason: 'UNSUBSCRIBED' | 'HARDBOUNCED' | 'MANUAL',
			name: string,
			list_id: number | null = null,
		) => engine.ext.suppressions.put([{ email: `${name}@example.com`, reason, list_id }]);
		day(1);
		for (const name of ['News', 'Small']) await engine.lists.create({ name, email_reason: 'asked' });
		const join = (name: string, list = 1) =>
			engine.subscribers(list).create({ email: `${name}@example.com` });
		for (const name of ['a', 'b', 'c', 'early']) await join(name);
		await join('b', 2);
		day(2);
		await stop('UNSUBSCRIBED', 'early', 1);
		day(10);
		await join('d');
		await join('e');
		await stop('UNSUBSCRIBED', 'b', 1);
		day(11, 23);
		await stop('HARDBOUNCED', 'd');
		await stop('MANUAL', 'c');
		day(13);
		await join('f');
		await join('g');
		await stop('UNSUBSCRIBED', 'g', 1);
		await stop('UNSUBSCRIBED', 'e', 1);
		const range = { date_from: '10.11.2026', date_to: '11.11.2026' };
		expect(await engine.ext.reports.details(range)).not.toHaveProperty('lists');
		const { lists } = await engine.ext.reports.details({ ...range, lists: true });
		const none = { added: 0, unsubscribed: 0, bounced: 0, left: 0 };
		expect(lists).toEqual([
			{
				...{ id: 1, name: 'News', active: 2, added: 2, unsubscribed: 1, bounced: 1, left: 1 },
				days: [
					{ ...none, date: '2026-11-10', added: 2, unsubscribed: 1 },
					{ ...none, date: '2026-11-11', bounced: 1, left: 1 },
				],
			},
			{
				...{ id: 2, name: 'Small', active: 1, ...none },
				days: [
					{ ...none, date: '2026-11-10' },
					{ ...none, date: '2026-11-11' },
				],
			},
		]);
		await store.writes.putSettings({ values: { time_zone: 'Europe/Oslo' }, now });
		const later = { date_from: '12.11.2026', date_to: '12.11.2026', lists: true };
		expect((await engine.ext.reports.details(later)).lists?.[0]).toMatchObject({
			bounced: 1,
			left: 1,
			active: 2,
		});
	});

	it('list each local hour of a campaign once, even across a clock change', async () => {
		await store.writes.putSettings({ values: { time_zone: 'Europe/Oslo' }, now });
		moment = Date.UTC(2026, 9, 24, 21, 30) * 1000;
		const [first] = await sendTo(['a@example.com']);
		const at = async (hours: number) =>
			store.writes.recordEvents({
				events: [
					{
						...{ message: first ?? '', type: 'REDIRECTED', at: moment + hours * 3_600e6, link: hours },
						...{ machine: false, ip: null, user_agent: null, url: null, smtp_code: null, diagnostic: null },
					},
				],
			});
		await at(5);
		moment += 60;
		const { hours, week } = await engine.ext.reports.details({ campaign_unique_id: campaign });
		moment = now;
		expect(hours.map(({ date }) => date)).toEqual([
			...['2026-10-24T23:00', '2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T02:00', '2026-10-25T03:00'],
		]);
		expect(hours.at(-1)).toMatchObject({ clicked: 1 });
		expect(week.map(({ weekday, hour }) => [weekday, hour])).toEqual([
			[6, 23],
			[7, 3],
		]);
	});
});

describe('the links of a campaign', () => {
	const body = { from: 'news@example.com', subject: 's' };
	const html =
		'<a href="https://example.com/?a=1&amp;b=2">one</a><a href="https://example.com/#name#">two</a>' +
		'<a href="mailto:ann@example.com">no link</a><a href="https://example.com/?a=1&amp;b=2">again</a>';
	const nothing = { people: 0, clicks: 0, machine_people: 0, machine_clicks: 0, share: 0 };

	it('are sorted by clicks, and count people and bots separately', async () => {
		const campaign = '99999999-0000-4000-8000-000000000000';
		const mail = { ...body, html_body: html, to: ['a@example.com', 'b@example.com'] };
		const { messages } = await engine.send({ ...mail, campaign_unique_id: campaign } as typeof mail);
		const [first, second] = (await settled(messages)).map(({ id }) => id);
		await happen(first, 'REDIRECTED', false, 1);
		await happen(first, 'REDIRECTED', false, 1);
		await happen(first, 'REDIRECTED', true, 0);
		await happen(second, 'REDIRECTED', true, 1);
		await happen(second, 'REDIRECTED', false, 2);
		expect(await engine.ext.reports.links(campaign)).toEqual({
			results: [
				{
					...{ url: 'https://example.com/#name#', position: 2, people: 1, clicks: 2 },
					...{ machine_people: 1, machine_clicks: 1, share: 66.67 },
				},
				{ ...nothing, url: 'https://example.com/?a=1&b=2', position: 3, people: 1, clicks: 1, share: 33.33 },
				{
					...nothing,
					url: 'https://example.com/?a=1&b=2',
					position: 1,
					machine_people: 1,
					machine_clicks: 1,
				},
			],
			left_out: 0,
		});
	});

	it('count the clicks in all messages together, even if the messages differ', async () => {
		const campaign = '99999999-0000-4000-8000-000000000000';
		const clicked: (Uuid | undefined)[] = [];
		for (const name of ['a', 'b']) {
			const mail = { ...body, html_body: `${name} ${html}`, to: [`${name}@example.com`] };
			const { messages } = await engine.send({ ...mail, campaign_unique_id: campaign } as typeof mail);
			clicked.push((await settled(messages))[0]?.id);
		}
		for (const message of clicked) await happen(message, 'REDIRECTED', false, 0);
		const { results } = await engine.ext.reports.links(campaign);
		expect(results.map(({ position, people, clicks }) => [position, people, clicks])).toEqual([
			[1, 2, 2],
			[2, 0, 0],
			[3, 0, 0],
		]);
	});
});

describe('the report', () => {
	it('counts a message once for any number of opens, and rounds to two digits', async () => {
		const [first, second] = await sent(3);
		for (let i = 0; i < 3; i++) await happen(first, 'OPENED');
		await happen(first, 'REDIRECTED', false, 0);
		await happen(first, 'REDIRECTED', false, 1);
		await happen(second, 'REDIRECTED', false, 0);
		expect((await engine.report({})).total).toEqual({
			sent: 3,
			opened: 1,
			opened_percent: '33.33',
			redirected_percent: 66.67,
			softbounced_percent: 0,
			unsubscribed_percent: 0,
			hardbounced_percent: 0,
		});
	});

	it('shows 0 for event types that are not requested, but bases percentages on all sent mails', async () => {
		const [first] = await sent(2);
		await happen(first, 'OPENED');
		expect((await engine.report({ event_types: ['OPENED'] })).total).toMatchObject({
			sent: 0,
			opened: 1,
			opened_percent: '50',
		});
		expect((await engine.report({ event_types: ['SENT'] })).total).toMatchObject({
			sent: 2,
			opened: 0,
			opened_percent: '0',
		});
	});

	it('shows bounces as a share of all attempts: three of three are 100 %', async () => {
		await sent(3, 'a', 'bounced');
		const refused = { sent: 0, hardbounced_percent: 100, softbounced_percent: 0 };
		expect((await engine.report({})).total).toMatchObject(refused);
		expect((await engine.ext.reports.report({ tag: 'a' })).total).toMatchObject(refused);
		expect((await engine.report({ event_types: ['SENT'] })).total.hardbounced_percent).toBe(0);
	});

	it('counts a message as one attempt if it bounced after it was sent', async () => {
		const [first] = await sent(2, 'a');
		await sent(1, 'b', 'bounced');
		await sent(1, 'c', 'failed');
		await happen(first, 'SOFTBOUNCED');
		await happen(first, 'HARDBOUNCED');
		expect((await engine.report({})).total).toMatchObject({
			sent: 2,
			hardbounced_percent: 50,
			softbounced_percent: 50,
		});
		expect((await engine.ext.reports.report({ tag: 'a' })).total).toMatchObject({
			sent: 2,
			hardbounced_percent: 50,
			softbounced_percent: 50,
		});
	});

	it('covers the whole life of a campaign, and rejects an unknown campaign', async () => {
		const campaign = '99999999-0000-4000-8000-000000000000';
		const begun = now - 400 * 86_400 * 1e6;
		const body = { from: 'news@example.com', subject: 's', text_body: 't' };
		moment = begun;
		const { messages } = await engine.send({ ...body, to: ['a@example.com'], campaign_unique_id: campaign });
		const { id: message } = (await settled(messages))[0] ?? {};
		moment = now;
		await happen(message, 'OPENED');
		const { total, data } = await engine.ext.reports.report({ campaign_unique_id: campaign });
		expect(total).toMatchObject({ sent: 1, opened: 1 });
		expect([data.length, data[0]?.date, data.at(-1)?.date]).toEqual([401, '17.10.2025', '21.11.2026']);
		const days = { date_from: '21.11.2026', date_to: '21.11.2026' };
		const narrowed = await engine.ext.reports.report({ campaign_unique_id: campaign, ...days });
		expect(narrowed).toMatchObject({ total: { sent: 0, opened: 1 }, data: [{ opened: 1 }] });
		const unknown = { campaign_unique_id: '99999999-0000-4000-8000-000000000001' };
		await refuses(engine.ext.reports.report(unknown), 'not_found');
		expect((await engine.report(unknown)).total).toMatchObject({ sent: 0 });
	});
});
