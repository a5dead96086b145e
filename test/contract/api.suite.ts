// The contract of `Api`, for each implementation that `open` returns. Numbers in names refer to docs/api-decisions.md.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../src/api/api.js';
import { ApiError, errorBody } from '../../src/api/errors.js';
import type { List, Page } from '../../src/api/records.js';
import { refuses } from '../support/refuses.js';

export interface Subject {
	api: Api;
	sender: string;
	close(): Promise<void>;
}

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function apiSuite(name: string, open: () => Promise<Subject>): void {
	describe(`the API on ${name}`, () => {
		let subject: Subject;
		let api: Api;
		let counter = 0;
		const unique = (word: string) => `${word}${++counter}`;
		const newList = () => api.lists.create({ name: unique('list'), email_reason: 'You asked for it' });
		const newField = async () =>
			(await api.fields.create({ variable: unique('var_'), name: 'A field' })).variable;

		beforeAll(async () => {
			subject = await open();
			api = subject.api;
		});
		afterAll(() => subject.close());

		describe('for a bad request (1-5)', () => {
			it('names every bad field at once, in the words of Django REST framework', async () => {
				expect(await refusal(api.lists.create({} as never))).toEqual({
					name: ['This field is required.'],
					email_reason: ['This field is required.'],
				});
				expect(await refusal(api.lists.create({ name: ' ', email_reason: null } as never))).toEqual({
					name: ['This field may not be blank.'],
					email_reason: ['This field may not be null.'],
				});
				expect(await refusal(api.lists.create({ name: [], email_reason: 'x'.repeat(256) } as never))).toEqual(
					{
						name: ['Not a valid string.'],
						email_reason: ['Ensure this field has no more than 255 characters.'],
					},
				);
			});

			it('rejects a body that is not an object', async () => {
				expect(await refusal(api.lists.create([] as never))).toEqual({
					non_field_errors: ['Invalid data. Expected a dictionary, but got list.'],
				});
			});

			it('rejects NUL and lone surrogates (2)', async () => {
				expect(await refusal(api.lists.create({ name: 'a\0b', email_reason: 'r' }))).toEqual({
					name: ['Null characters are not allowed.'],
				});
				expect(await fieldsOf(api.lists.create({ name: 'a\ud800b', email_reason: 'r' }))).toEqual(['name']);
			});

			it('answers not_found for unknown ids, and for a subscriber of another list (4)', async () => {
				const [one, two] = [await newList(), await newList()];
				const { id } = await api.subscribers(one.id).create({ email: 'a@example.com' });
				for (const attempt of [
					() => api.lists.get(999_999),
					() => api.lists.patch(999_999, { name: 'x' }),
					() => api.lists.delete(999_999),
					() => api.fields.get(999_999),
					() => api.webhooks.get(999_999),
					() => api.subscribers(two.id).get(id),
					() => api.subscribers(two.id).patch(id, { name: 'x' }),
					() => api.subscribers(two.id).delete(id),
				]) {
					await expect(attempt()).rejects.toMatchObject({ code: 'not_found', message: 'Not found.' });
				}
			});

			it('reports an unknown list before a bad body (4)', async () => {
				await refuses(api.subscribers(999_999).create({} as never), 'not_found');
				await refuses(api.subscribers(999_999).page({}), 'not_found');
			});

			it('reports a duplicate value as an error in its field (5)', async () => {
				const list = await newList();
				await api.subscribers(list.id).create({ email: 'Ann@Example.com' });
				expect(await refusal(api.subscribers(list.id).create({ email: 'ann@example.COM' }))).toEqual({
					email: ['Subscriber with this email already exists in this list.'],
				});
				const variable = await newField();
				expect(await refusal(api.fields.create({ variable, name: 'again' }))).toEqual({
					variable: ['This field must be unique.'],
				});
			});
		});

		describe('for collections (8-9)', () => {
			it('sorts pages by ascending id, with links that keep the other parameters', async () => {
				const list = await newList();
				const subscribers = api.subscribers(list.id);
				for (let i = 0; i < 5; i++) await subscribers.create({ email: `p${i}@example.com` });
				const first = await subscribers.page({ page_size: 2, email__icontains: 'example' });
				expect(first.count).toBe(5);
				expect(first.previous).toBeNull();
				expect(query(first.next)).toEqual({ page: '2', page_size: '2', email__icontains: 'example' });
				const second = await subscribers.page({ page: 2, page_size: 2, email__icontains: 'example' });
				expect(query(second.previous)).toEqual({ page_size: '2', email__icontains: 'example' });
				const last = await subscribers.page({ page: 3, page_size: 2 });
				expect(last.next).toBeNull();
				expect([first, second, last].flatMap(emails)).toEqual(
					[0, 1, 2, 3, 4].map((i) => `p${i}@example.com`),
				);
			});

			it('returns an empty first page, and rejects a page that does not exist', async () => {
				const list = await newList();
				expect(await api.subscribers(list.id).page({})).toEqual({
					count: 0,
					next: null,
					previous: null,
					results: [],
				});
				for (const page of [0, 2, -1, 1.5]) {
					await expect(api.subscribers(list.id).page({ page })).rejects.toMatchObject({
						code: 'not_found',
						message: 'Invalid page.',
					});
				}
			});

			it('filters without regard to case, and matches % and _ literally (9)', async () => {
				const subscribers = api.subscribers((await newList()).id);
				await subscribers.create({ email: 'Straße_1@example.com' }).catch(() => undefined);
				await subscribers.create({ email: 'a_b@example.com' });
				await subscribers.create({ email: 'axb@EXAMPLE.com' });
				await subscribers.create({ email: 'a%b@example.com', is_active: false });
				expect(emails(await subscribers.page({ email__icontains: 'A_B' }))).toEqual(['a_b@example.com']);
				expect(emails(await subscribers.page({ email__icontains: '%' }))).toEqual(['a%b@example.com']);
				expect(emails(await subscribers.page({ email__exact: 'AXB@example.com' }))).toEqual([
					'axb@EXAMPLE.com',
				]);
				expect(emails(await subscribers.page({ is_active: false }))).toEqual(['a%b@example.com']);
				expect(emails(await subscribers.page({ is_active: true, email__icontains: 'xb' }))).toEqual([
					'axb@EXAMPLE.com',
				]);
			});
		});

		describe('for lists (11, 12, 17)', () => {
			it('creates, reads, changes and deletes a list', async () => {
				const list = await api.lists.create({ name: '  News ', email_reason: 'You signed up' });
				expect(list).toEqual({
					id: expect.any(Number),
					name: 'News',
					email_reason: 'You signed up',
					active_subscribers_count: 0,
					inactive_subscribers_count: 0,
					overall_subscribers_count: 0,
					date_created: expect.stringMatching(dateTime),
				} satisfies Record<keyof List, unknown>);
				expect(await api.lists.patch(list.id, { name: 'Other' })).toEqual({ ...list, name: 'Other' });
				expect(await api.lists.replace(list.id, { email_reason: 'asked' })).toEqual({
					...list,
					...{ name: 'Other', email_reason: 'asked' },
				});
				expect(await api.lists.replace(list.id, {})).toMatchObject({ name: 'Other', email_reason: 'asked' });
				expect(await refusal(api.lists.replace(list.id, { name: '' }))).toEqual({
					name: ['This field may not be blank.'],
				});
				await api.lists.delete(list.id);
				await refuses(api.lists.get(list.id), 'not_found');
			});

			it('counts active and inactive subscribers', async () => {
				const { id } = await newList();
				const subscribers = api.subscribers(id);
				const a = await subscribers.create({ email: 'a@example.com' });
				await subscribers.create({ email: 'b@example.com', is_active: false });
				await subscribers.patch(a.id, { is_active: false });
				const c = await subscribers.create({ email: 'c@example.com' });
				expect(await api.lists.get(id)).toMatchObject({
					active_subscribers_count: 1,
					inactive_subscribers_count: 2,
					overall_subscribers_count: 3,
				});
				await subscribers.delete(c.id);
				expect(await api.lists.get(id)).toMatchObject({
					active_subscribers_count: 0,
					overall_subscribers_count: 2,
				});
			});

			it('never reuses an id (17)', async () => {
				const first = await newList();
				await api.lists.delete(first.id);
				expect((await newList()).id).toBeGreaterThan(first.id);
			});
		});

		describe('for subscribers (11-15)', () => {
			it('creates a subscriber with the documented defaults', async () => {
				const list = await newList();
				const created = await api.subscribers(list.id).create({ email: ' Ann.Lee+x@Example.COM ' });
				expect(created).toEqual({
					id: expect.any(Number),
					list_id: list.id,
					email: 'Ann.Lee+x@Example.COM',
					name: '',
					is_active: true,
					disable_reason: null,
					is_email_verified: false,
					meta: {},
					source: 'API',
					opt_in_signed: null,
					date_created: expect.stringMatching(dateTime),
				});
			});

			it('accepts meta as an object or as JSON text, and returns an object (13)', async () => {
				const variable = await newField();
				const subscribers = api.subscribers((await newList()).id);
				const one = await subscribers.create({ email: 'a@example.com', meta: { [variable]: 'Oslo' } });
				expect(one.meta).toEqual({ [variable]: 'Oslo' });
				const two = await subscribers.create({
					email: 'b@example.com',
					meta: JSON.stringify({ [variable]: 5 }) as never,
				});
				expect(two.meta).toEqual({ [variable]: 5 });
				expect((await subscribers.patch(two.id, { meta: {} })).meta).toEqual({});
			});

			it('rejects meta keys without a field (13)', async () => {
				const subscribers = api.subscribers((await newList()).id);
				expect(await refusal(subscribers.create({ email: 'a@example.com', meta: { foo: 'x' } }))).toEqual({
					meta: ['Unknown variable: foo.'],
				});
				expect(
					await refusal(subscribers.create({ email: 'a@example.com', meta: 'nonsense' as never })),
				).toEqual({ meta: ['Value must be valid JSON.'] });
			});

			it('resets missing fields to their defaults on PUT, and keeps them on PATCH (11)', async () => {
				const subscribers = api.subscribers((await newList()).id);
				const { id } = await subscribers.create({ email: 'a@example.com', name: 'Ann', is_active: false });
				expect(await subscribers.patch(id, { email: 'b@example.com' })).toMatchObject({
					name: 'Ann',
					is_active: false,
				});
				expect(await subscribers.replace(id, { email: 'c@example.com' })).toMatchObject({
					email: 'c@example.com',
					name: '',
					is_active: true,
				});
			});

			it('compares domains in punycode, but returns an address as typed (12)', async () => {
				const subscribers = api.subscribers((await newList()).id);
				const { email } = await subscribers.create({ email: 'ann@bücher.example' });
				expect(email).toBe('ann@bücher.example');
				expect(await fieldsOf(subscribers.create({ email: 'ANN@xn--bcher-kva.example' }))).toEqual(['email']);
			});

			it('shows an address as it was last written, even if only its case changed (12)', async () => {
				const subscribers = api.subscribers((await newList()).id);
				const { id, email } = await subscribers.create({ email: 'Ann@Example.org' });
				expect(email).toBe('Ann@Example.org');
				for (const written of ['ann@example.org', 'ANN@example.org', 'ben@example.org', 'Ben@example.org']) {
					expect((await subscribers.patch(id, { email: written })).email).toBe(written);
					expect((await subscribers.get(id)).email).toBe(written);
					expect(emails(await subscribers.page({ email__icontains: '@EXAMPLE' }))).toEqual([written]);
				}
			});

			it('clears disable_reason when is_active is set directly (14)', async () => {
				const subscribers = api.subscribers((await newList()).id);
				const { id } = await subscribers.create({ email: 'a@example.com' });
				expect(await subscribers.patch(id, { is_active: false })).toMatchObject({
					is_active: false,
					disable_reason: null,
				});
				expect(await subscribers.patch(id, { is_active: true })).toMatchObject({
					is_active: true,
					disable_reason: null,
				});
			});

			it('rejects meta that is too large or has an object or array as a value (13)', async () => {
				const variable = await newField();
				const subscribers = api.subscribers((await newList()).id);
				for (const value of ['x'.repeat(70_000), { deep: 1 }, ['list']]) {
					const input = { email: 'a@example.com', meta: { [variable]: value } } as never;
					expect(await fieldsOf(subscribers.create(input))).toEqual(['meta']);
				}
			});

			it('ignores unknown and read-only keys (11)', async () => {
				const subscribers = api.subscribers((await newList()).id);
				const body = { email: 'a@example.com', id: 7, source: 'FORM', nonsense: true, disable_reason: 'X' };
				expect(await subscribers.create(body)).toMatchObject({ source: 'API', disable_reason: null });
			});
		});

		describe('for fields (16)', () => {
			const reserved = ['email', 'name', 'unsubscribe_url', 'view_url', 'email_reason'];
			it.each([
				...['1st', 'with space', 'a-b', 'x'.repeat(65), 'é'],
				...reserved,
			])('rejects the variable %j', async (variable) => {
				expect(await fieldsOf(api.fields.create({ variable, name: 'n' }))).toEqual(['variable']);
			});

			it('renames a subscriber’s meta key if the field’s variable changes, and deletes the key with the field', async () => {
				const field = await api.fields.create({ variable: unique('city'), name: 'City' });
				const subscribers = api.subscribers((await newList()).id);
				const { id } = await subscribers.create({
					email: 'a@example.com',
					meta: { [field.variable]: 'Oslo' },
				});
				const renamed = unique('town');
				await api.fields.patch(field.id, { variable: renamed });
				expect((await subscribers.get(id)).meta).toEqual({ [renamed]: 'Oslo' });
				await api.fields.delete(field.id);
				expect((await subscribers.get(id)).meta).toEqual({});
			});
		});

		describe('for webhooks (12, 18, 34)', () => {
			it('creates, changes and deletes a webhook', async () => {
				const hook = await api.webhooks.create({ url: 'https://hooks.example.com/in', type: 'OPENED' });
				expect(hook).toEqual({
					id: expect.any(Number),
					url: 'https://hooks.example.com/in',
					type: 'OPENED',
					is_auth_enabled: false,
					login: '',
					password: '',
					date_created: expect.stringMatching(dateTime),
				});
				const changed = await api.webhooks.patch(hook.id, {
					login: 'ann',
					password: ' p ',
					is_auth_enabled: true,
				});
				expect(changed).toEqual({ ...hook, login: 'ann', password: ' p ', is_auth_enabled: true });
				await api.webhooks.delete(hook.id);
				await refuses(api.webhooks.get(hook.id), 'not_found');
			});

			it('rejects unknown URL schemes and event types', async () => {
				expect(
					await refusal(api.webhooks.create({ url: 'ftp://example.com/', type: 'CLICKED' as never })),
				).toEqual({ url: ['Enter a valid URL.'], type: ['"CLICKED" is not a valid choice.'] });
			});
		});

		describe('for send calls (20-29)', () => {
			const body = (more = {}) => ({
				from: subject.sender,
				to: ['a@example.com'],
				subject: 's',
				text_body: 't',
				...more,
			});

			it('returns one message for each distinct address, in order (21)', async () => {
				const answer = await api.send(body({ to: ['b@example.com', 'A@example.com', 'a@EXAMPLE.com'] }));
				expect(answer).toEqual({
					messages: [
						{ to: 'b@example.com', id: expect.stringMatching(uuid) },
						{ to: 'A@example.com', id: expect.stringMatching(uuid) },
					],
					result: true,
					messages_created: 2,
				});
			});

			it('accepts the sender as a string, as an array of one string, or with a name (20)', async () => {
				for (const from of [
					subject.sender.toUpperCase(),
					[subject.sender],
					`"News, Daily" <${subject.sender}>`,
				]) {
					expect((await api.send(body({ from }))).result).toBe(true);
				}
				expect(await refusal(api.send(body({ from: 'nobody@example.org' })))).toEqual({
					from: ['Sender address is not verified.'],
				});
			});

			it('requires a body or a template, and a subject (23)', async () => {
				expect(
					await refusal(api.send({ from: subject.sender, to: ['a@example.com'], subject: 's' })),
				).toEqual({ text_body: ['This field is required.'], html_body: ['This field is required.'] });
				expect(
					await refusal(api.send({ from: subject.sender, to: ['a@example.com'], text_body: 't' })),
				).toEqual({ subject: ['This field is required.'] });
				const template_unique_id = '00000000-0000-4000-8000-000000000000';
				expect(
					await refusal(api.send({ from: subject.sender, to: ['a@example.com'], template_unique_id })),
				).toEqual({ template_unique_id: ['Template not found.'] });
			});

			it('creates no message if any recipient is invalid (20)', async () => {
				const before = (await api.report({})).total;
				await refusal(api.send(body({ to: ['fine@example.com', 'bad'] })));
				expect((await api.report({})).total).toEqual(before);
			});

			it('rejects texts over their limit (26, 27)', async () => {
				const long = {
					subject: 'x'.repeat(999),
					tag: 'x'.repeat(256),
					html_body: 'x'.repeat(2 * 1024 * 1024 + 1),
				};
				expect((await fieldsOf(api.send(body(long)))).sort()).toEqual(['html_body', 'subject', 'tag']);
			});

			it('rejects an empty list of recipients, and a list of more than 1000 (21)', async () => {
				expect(await refusal(api.send(body({ to: [] })))).toEqual({ to: ['This list may not be empty.'] });
				const to = Array.from({ length: 1001 }, (_, i) => `a${i}@example.com`);
				expect(await fieldsOf(api.send(body({ to })))).toEqual(['to']);
			});

			it('rejects cc and bcc in a BULK call (21)', async () => {
				const refused = await refusal(
					api.send(body({ type: 'BULK', cc: ['c@example.com'], bcc: ['d@example.com'] })),
				);
				expect(Object.keys(refused).length).toBeGreaterThan(0);
			});

			it('rejects reserved header fields (25)', async () => {
				for (const header of ['From', 'BCC', 'Subject', 'Content-Type', 'List-Unsubscribe', 'a b', 'x:'])
					expect(await fieldsOf(api.send(body({ headers: { [header]: 'v' } })))).toEqual(['headers']);
			});

			it('rejects line breaks in header values, and commas or line breaks in addresses (25)', async () => {
				expect(await fieldsOf(api.send(body({ headers: { 'X-Id': 'a\r\nBcc: e@x.org' } })))).toEqual([
					'headers',
				]);
				for (const to of [
					'a@example.com, b@example.com',
					'a@example.com>\r\nRCPT TO:<e@x.org',
					'G: a@example.com;',
				]) {
					expect(await fieldsOf(api.send(body({ to: [to] })))).toEqual(['to']);
				}
			});

			it('repeats its answer for the same idempotency key and body, and rejects another body with that key (29)', async () => {
				const idempotencyKey = unique('key-');
				const first = await api.send(body(), { idempotencyKey });
				expect(await api.send(body(), { idempotencyKey })).toEqual(first);
				await refuses(api.send(body({ subject: 'other' }), { idempotencyKey }), 'unprocessable');
			});

			it('calls onAccepted with the campaign of a BULK call (28)', async () => {
				const accepted: unknown[] = [];
				await api.send(body({ type: 'BULK' }), { onAccepted: (one) => accepted.push(one) });
				expect(accepted).toEqual([
					{ campaign: expect.stringMatching(uuid), submission: expect.anything(), replayed: false },
				]);
			});
		});

		describe('in reports (35, 36)', () => {
			it('covers seven days if a request gives no dates', async () => {
				const report = await api.report({});
				expect(report.data).toHaveLength(7);
				expect(Object.keys(report.total)).toEqual([
					'sent',
					'opened',
					'opened_percent',
					'redirected_percent',
					'softbounced_percent',
					'unsubscribed_percent',
					'hardbounced_percent',
				]);
				expect(report.total.opened_percent).toBeTypeOf('string');
			});

			it('includes a row of zeros for every day of the range, from the first to the last', async () => {
				const { data } = await api.report({ date_from: '28.02.2024', date_to: '02.03.2024' });
				expect(data).toEqual(
					['28.02.2024', '29.02.2024', '01.03.2024', '02.03.2024'].map((date) => ({
						date,
						opened: 0,
						sent: 0,
					})),
				);
			});

			it('covers the seven days that end at date_to if date_from is missing', async () => {
				const { data } = await api.report({ date_to: '07.01.2024' });
				expect(data.map(({ date }) => date)).toEqual([1, 2, 3, 4, 5, 6, 7].map((day) => `0${day}.01.2024`));
			});

			it('rejects invalid dates, a reversed range and too many days', async () => {
				const format = 'Date has wrong format. Use one of these formats instead: DD.MM.YYYY.';
				expect(await refusal(api.report({ date_from: '2024-01-01', date_to: '31.02.2024' }))).toEqual({
					date_from: [format],
					date_to: [format],
				});
				expect(await fieldsOf(api.report({ date_from: '02.01.2024', date_to: '01.01.2024' }))).toEqual([
					'date_to',
				]);
				expect(await fieldsOf(api.report({ date_from: '01.01.2020', date_to: '01.01.2024' }))).toHaveLength(
					1,
				);
			});

			it('returns zeros for an unknown campaign, and rejects an invalid UUID', async () => {
				const { total } = await api.report({ campaign_unique_id: '00000000-0000-4000-8000-000000000000' });
				expect(total).toMatchObject({ sent: 0, opened: 0, opened_percent: '0', hardbounced_percent: 0 });
				expect(
					await refusal(api.report({ campaign_unique_id: 'nonsense', event_types: ['X' as never] })),
				).toMatchObject({ campaign_unique_id: ['Must be a valid UUID.'] });
			});
		});
	});
}

async function refusal(attempt: Promise<unknown>): Promise<Record<string, unknown>> {
	const error: unknown = await attempt.then(
		() => new Error('was not refused'),
		(reason) => reason,
	);
	if (!(error instanceof ApiError) || error.code !== 'invalid' || error.fields === null) throw error;
	return errorBody(error.fields);
}

async function fieldsOf(attempt: Promise<unknown>): Promise<string[]> {
	return Object.keys(await refusal(attempt));
}

function query(link: string | null): Record<string, string> {
	return link === null ? {} : Object.fromEntries(new URL(link).searchParams);
}

function emails(page: Page<{ email: string }>): string[] {
	return page.results.map(({ email }) => email);
}
