/** The contract of a campaign's recipients and sending times. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Audiences, CampaignSpec } from '../../src/api/campaigns.js';
import type { Extensions } from '../../src/api/capabilities.js';
import type { Store } from '../../src/store/store.js';
import { refuses } from '../support/refuses.js';
import type { Subject } from './api.suite.js';
import { accepted250, eventOf, lease, noon } from './store/fixture.js';

/** The clock stands at `noon` of the fixture, the time zone is Europe/Oslo, and no worker runs. */
export interface AudienceSubject extends Subject {
	/** The store of the same database, in which tests record deliveries and opens. */
	store: Store;
}

export function audiencesSuite(name: string, open: () => Promise<AudienceSubject>): void {
	describe(`audiences on ${name}`, () => {
		let subject: AudienceSubject;
		let ext: Extensions;
		let audiences: Audiences;
		let lists: { readers: number; guests: number; staff: number };

		beforeAll(async () => {
			subject = await open();
			ext = (await subject.api.capabilities()).ext as Extensions;
			audiences = ext.audiences;
			await subject.api.fields.create({ variable: 'city', name: 'City' });
			lists = {
				readers: await newList('Readers', [
					['ann@example.com', { name: 'Ann', meta: { city: 'Oslo' } }],
					['bob@example.com', { name: 'Bob', meta: { city: 'Rome' } }],
					['carl@example.com', { name: 'Carl', is_active: false }],
				]),
				guests: await newList('Guests', [
					['ANN@example.com', { name: 'Anna', meta: { city: 'Rome' } }],
					['dora@example.org', { name: 'Dora', meta: { city: 'oslo' } }],
					['carl@example.com', { name: 'Karl', meta: { city: 'Oslo' } }],
				]),
				staff: await newList('Staff', [['Dora@example.org', { is_active: false }]]),
			};
		});
		afterAll(() => subject.close());

		type Person = readonly [email: string, more: object];
		async function newList(name: string, people: readonly Person[]): Promise<number> {
			const { id } = await subject.api.lists.create({ name, email_reason: 'You asked' });
			for (const [email, more] of people) await subject.api.subscribers(id).create({ email, ...more });
			return id;
		}
		let counter = 0;
		const spec = (more: Partial<CampaignSpec> = {}): CampaignSpec => ({
			from: subject.sender,
			type: 'TRANSACTIONAL',
			subject: `s${++counter}`,
			text_body: 'Hi',
			list_id: lists.readers,
			...more,
		});
		const both = () => ({ lists: [lists.readers, lists.guests] });
		const foresee = async (more: Partial<CampaignSpec>, list_id = lists.readers) =>
			(await audiences.foresee(spec(more), { list_id })).counts;
		/** Stages a campaign and returns its counts, and the addresses that get a message. */
		async function stage(more: Partial<CampaignSpec>, ids: readonly number[]) {
			const { id } = await ext.campaigns.open(null, spec(more));
			for (const list of ids) await ext.campaigns.addList(id, list);
			const { results } = await ext.messages.page({ campaign_unique_id: id, page_size: 100 });
			const { counts, lists: byList } = await ext.campaigns.status(id);
			return { id, counts, byList, to: results.map(({ to }) => to) };
		}

		describe('the counts before staging', () => {
			it('include a person on several lists once, under the first list that accepts the person', async () => {
				const readers = { list_id: lists.readers, staged: 2, suppressed: 0, rejected: 0, left_out: 1 };
				const inactive = { code: 'inactive', detail: null, count: 1 };
				expect(await foresee(both())).toEqual({ ...readers, reasons: [inactive] });
				const guests = { list_id: lists.guests, staged: 2, suppressed: 0, rejected: 0, left_out: 1 };
				const reasons = [{ code: 'duplicate', detail: null, count: 1 }];
				expect(await foresee(both(), lists.guests)).toEqual({ ...guests, reasons });
			});

			it('exclude every address of an excluded list, even an inactive one', async () => {
				const audience = { ...both(), exclude_lists: [lists.staff] };
				expect(await foresee(audience, lists.guests)).toMatchObject({
					staged: 1,
					left_out: 2,
					reasons: [{ code: 'duplicate' }, { code: 'excluded', detail: String(lists.staff), count: 1 }],
				});
			});

			it.each([
				['meta.city=Oslo', 1],
				['meta.city!=Rome', 1],
				['meta.city~o', 2],
				['email~@example.com', 2],
				['email=ANN@example.com', 1],
				['name=Bob', 1],
				['created=2026-03-10', 2],
				['created>2026-03-10', 0],
				['created<2026-03-10T12:00:01', 2],
				['created<2026-03-10T12:00:00', 0],
			])('include people who match %s: %i of two active people', async (condition, staged) => {
				const counts = await foresee({ where: [condition] });
				expect(counts.staged).toBe(staged);
				const reason = { code: 'condition', detail: condition, count: 2 - staged };
				if (staged < 2) expect(counts.reasons).toContainEqual(reason);
			});

			it('include only people who match all conditions, and give the first failed condition as the reason', async () => {
				const where = ['email~example', 'meta.city=Oslo', 'name=Nobody'];
				const { staged, reasons } = await foresee({ where });
				expect({ staged, reasons }).toEqual({
					staged: 0,
					reasons: [
						{ code: 'condition', detail: 'name=Nobody', count: 1 },
						{ code: 'condition', detail: 'meta.city=Oslo', count: 1 },
						{ code: 'inactive', detail: null, count: 1 },
					],
				});
			});

			it('equal the counts after staging, and leave no campaign behind', async () => {
				const audience = { ...both(), exclude_lists: [lists.staff], where: ['meta.city~o'] };
				const ids = [lists.readers, lists.guests];
				const foreseen = [];
				for (const id of ids) foreseen.push(await foresee(audience, id));
				const before = (await ext.campaigns.page({})).count;
				for (const id of ids) await foresee(audience, id);
				expect((await ext.campaigns.page({})).count).toBe(before);
				expect((await stage(audience, ids)).byList).toEqual(foreseen);
			});

			it('include only recipients of the campaign in where_opened or where_not_opened, and ignore opens by bots', async () => {
				const list = await newList('Openers', [
					['opened@example.com', {}],
					['silent@example.com', {}],
					['scanned@example.com', {}],
				]);
				const { id } = await stage({ list_id: list }, [list]);
				await ext.campaigns.release(id, { expect_count: 3 });
				const { store } = subject;
				const leased = await lease(store, { scope: { campaign: id } });
				await store.queue.settle({
					settlements: leased.map(({ message, fence }) => {
						return { message, fence, at: noon, outcome: { kind: 'sent', reply: accepted250 } } as const;
					}),
				});
				const messageTo = (to: string) => leased.find((one) => one.to === to)?.message ?? '';
				const opens = [
					eventOf(messageTo('opened@example.com'), 'OPENED'),
					eventOf(messageTo('scanned@example.com'), 'OPENED', { machine: true }),
				];
				await store.writes.recordEvents({ events: opens });
				await subject.api.subscribers(list).create({ email: 'new@example.com' });
				const wanted = (more: Partial<CampaignSpec>) => stage({ list_id: list, ...more }, [list]);
				expect((await wanted({ where_opened: [id] })).to).toEqual(['opened@example.com']);
				const unopened = await wanted({ where_not_opened: [id] });
				expect(unopened.to.sort()).toEqual(['scanned@example.com', 'silent@example.com']);
				expect((await foresee({ list_id: list, where_opened: [id] }, list)).reasons).toEqual([
					{ code: 'opened', detail: id, count: 3 },
				]);
				expect((await foresee({ list_id: list, where_not_opened: [id] }, list)).reasons).toEqual([
					{ code: 'not_opened', detail: id, count: 2 },
				]);
			});
		});

		describe('an audience is rejected', () => {
			const uuid = '00000000-0000-4000-8000-00000000dead';
			it.each<[field: string, more: Partial<CampaignSpec>]>([
				['lists', { lists: [1, 999_999] }],
				['exclude_lists', { exclude_lists: [999_999] }],
				['where', { where: ['meta.unheard_of=x'] }],
				['where', { where: ['city'] }],
				['where', { where: ['created>soon'] }],
				['where_opened', { where_opened: [uuid] }],
				['where_not_opened', { where_not_opened: [uuid] }],
				['where_not_opened', { where_not_opened: ['x'] }],
				['window', { window: '9-18' }],
				['time_zone', { time_zone: 'Mars/Olympus' }],
			])('with an error in the field %s: %j', async (field, more) => {
				for (const work of [
					() => audiences.foresee(spec(more), { list_id: lists.readers }),
					() => ext.campaigns.open(null, spec(more)),
				])
					await expect(work()).rejects.toMatchObject({
						code: 'invalid',
						fields: { [field]: expect.anything() },
					});
			});

			it('if its list does not exist', async () => {
				const work = audiences.foresee(spec(), { list_id: 999_999 });
				await refuses(work, 'not_found');
			});
		});

		describe('planned times', () => {
			const zone = { time_zone: 'Europe/Oslo' };
			it.each([
				['tomorrow 9:00', '2026-03-11T08:00:00.000000', null],
				['2026-03-11T09:00:00Z', '2026-03-11T09:00:00.000000', null],
				['2026-03-29 02:30', '2026-03-29T01:00:00.000000', 'skipped'],
			])('written as %s are %s in UTC', async (at, moment, note) => {
				const times = { starts_at: moment, opens_at: moment };
				expect(await audiences.plan({ at })).toEqual({ ...times, ...zone, note });
			});

			it('can be relative to now', async () => {
				const moment = '2026-03-10T14:00:00.000000';
				const planned = { starts_at: moment, opens_at: moment, ...zone, note: null };
				expect(await audiences.plan({ in_ms: 2 * 3_600_000 })).toEqual(planned);
				expect(await audiences.plan({})).toEqual({ ...zone, opens_at: null, note: null });
			});

			// The clock's noon in UTC is 13:00 in Oslo.
			it.each([
				[{ window: '09:00-18:00' }, null],
				[{ window: '09:00-12:00' }, '2026-03-11T08:00:00.000000'],
				[{ window: '22:00-06:00', at: '2026-03-11 06:00' }, '2026-03-11T21:00:00.000000'],
			])('for the request %j set opens_at to %s', async (request, opens_at) => {
				expect(await audiences.plan(request)).toMatchObject({ window: request.window, opens_at });
			});

			it.each([
				['at', { at: '2026-03-10 12:59' }],
				['at', { at: 'today 13:00' }],
				['at', { at: 'soon' }],
				['at', { at: '2026-02-30 09:00' }],
				['window', { window: '9-18' }],
				['window', { window: '09:00-09:00' }],
			])('are rejected with an error in the field %s: %j', async (field, request) => {
				await expect(audiences.plan(request)).rejects.toMatchObject({
					code: 'invalid',
					fields: { [field]: [{ code: 'invalid' }] },
				});
			});
		});

		describe('the list of people left out', () => {
			it('gives each person a reason, is read in pages, and omits anyone staged from another mailing list', async () => {
				const audience = { ...both(), exclude_lists: [lists.staff], where: ['meta.city!=Rome'] };
				const { id, to } = await stage(audience, [lists.readers, lists.guests]);
				expect(to.sort()).toEqual(['ann@example.com', 'carl@example.com']);
				const { readers: list_id } = lists;
				const rest = [
					{ to: 'bob@example.com', list_id, code: 'condition', detail: 'meta.city!=Rome' },
					{
						...{ to: 'dora@example.org', list_id: lists.guests },
						...{ code: 'excluded', detail: String(lists.staff) },
					},
				];
				expect(await audiences.leftOut(id, {})).toEqual({ results: rest, next: null });
				const first = await audiences.leftOut(id, { limit: 1 });
				expect(first).toEqual({ results: rest.slice(0, 1), next: expect.any(Number) });
				const second = await audiences.leftOut(id, { limit: 1, after: first.next ?? 0 });
				expect(second).toEqual({ results: rest.slice(1), next: null });
			});

			it('is empty if nobody was left out, and is not found for an unknown campaign', async () => {
				const { id } = await stage({ list_id: lists.guests }, [lists.guests]);
				expect(await audiences.leftOut(id, {})).toEqual({ results: [], next: null });
				const unknown = audiences.leftOut('00000000-0000-4000-8000-00000000dead', {});
				await refuses(unknown, 'not_found');
			});
		});
	});
}
