// The contract of suppressions (api-decisions 14, 22, 38).

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../src/api/api.js';
import { need } from '../../src/api/capabilities.js';
import type { Suppressions } from '../../src/api/suppressions.js';
import { refuses } from '../support/refuses.js';
import type { Subject } from './api.suite.js';

export function suppressionsSuite(name: string, open: () => Promise<Subject>): void {
	describe(`suppressions on ${name}`, () => {
		let subject: Subject;
		let api: Api;
		let suppressions: Suppressions;
		let counter = 0;
		const unique = (word: string) => `${word}${++counter}@suppressed.example`;
		beforeAll(async () => {
			subject = await open();
			api = subject.api;
			suppressions = await need(api, 'suppressions');
		});
		afterAll(() => subject.close());
		const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/;
		const invalid = (fields: object) => ({ code: 'invalid', fields });

		it('are added once, and found by address, reason and source', async () => {
			const email = unique('once');
			const made = await suppressions.create({ email: email.toUpperCase() });
			expect(made).toEqual({
				email,
				reason: 'MANUAL',
				list_id: null,
				source: 'API',
				date_created: expect.stringMatching(moment),
				expires_at: null,
			});
			expect(await suppressions.create({ email, reason: 'MANUAL' })).toEqual(made);
			await suppressions.create({ email, reason: 'COMPLAINED' });
			const found = async (filter: object) =>
				(await suppressions.page({ email__exact: email, ...filter })).results.map(({ reason }) => reason);
			expect(await found({})).toEqual(['COMPLAINED', 'MANUAL']);
			expect(await found({ reason: 'MANUAL' })).toEqual(['MANUAL']);
			expect(await found({ source: 'IMPORT' })).toEqual([]);
			expect((await suppressions.page({ email__icontains: email.slice(0, 5).toUpperCase() })).count).toBe(2);
		});

		it('can be filtered when listed by cursor or by page, and the links to other pages contain the filter', async () => {
			const emails = [unique('page'), unique('page'), unique('page')];
			for (const email of emails) await suppressions.create({ email });
			const filter = { email__icontains: 'page' };
			const page = await suppressions.page({ ...filter, page: 2, page_size: 2 });
			expect(page).toMatchObject({ count: 3, next: null, results: [{ email: emails[2] }] });
			expect(page.previous).toContain('email__icontains=page');
			const first = await suppressions.slice({ ...filter, limit: 2 });
			expect(first.results).toHaveLength(2);
			const rest = await suppressions.slice({ ...filter, limit: 2, cursor: first.next ?? '' });
			expect(rest).toMatchObject({ results: [{ email: emails[2] }], next: null });
		});

		it('reject a bad address, reason, expiry or cursor, and an expiry in the past', async () => {
			const email = unique('bad');
			await expect(suppressions.create({ email: 'nobody' })).rejects.toMatchObject(
				invalid({ email: [{ message: 'Enter a valid email address.' }] }),
			);
			await expect(suppressions.create({ email, reason: 'NO' as never })).rejects.toMatchObject(
				invalid({ reason: [{ message: '"NO" is not a valid choice.' }] }),
			);
			await expect(suppressions.create({ email, expires_at: 'soon' })).rejects.toMatchObject(
				invalid({ expires_at: [expect.anything()] }),
			);
			await expect(suppressions.create({ email, expires_at: '2020-01-01T00:00:00' })).rejects.toMatchObject(
				invalid({ expires_at: [{ message: 'This time is in the past.' }] }),
			);
			await refuses(suppressions.page({ reason: 'NO' as never }), 'invalid');
			await refuses(suppressions.slice({ limit: 9, cursor: 'x' }), 'invalid');
			expect((await suppressions.page({ email__exact: email })).count).toBe(0);
		});

		it('are stored in batches: bad rows are rejected, and repeated rows change nothing', async () => {
			const [kept, ended] = [unique('put'), unique('put')];
			const rows = [
				{
					email: kept,
					reason: 'UNSUBSCRIBED',
					source: 'RECIPIENT',
					date_created: '2025-05-01T10:00:00.000001',
				},
				{ email: 'nobody' },
				{ email: ended, expires_at: '2099-01-01T00:00:00' },
				{ reason: 'MANUAL' },
				'no object',
			] as never;
			const rejects = [
				{ row: 1, code: 'invalid', error: 'email: Enter a valid email address.' },
				{ row: 3, code: 'required', error: 'email: This field is required.' },
				{ row: 4, code: 'invalid', error: expect.any(String) },
			];
			const counts = { created: 2, updated: 0, unchanged: 0, rejected: 3 };
			expect(await suppressions.check(rows)).toEqual({ counts, rejects });
			expect(await suppressions.put(rows)).toEqual({ counts, rejects });
			expect((await suppressions.put(rows)).counts).toEqual({ ...counts, created: 0, unchanged: 2 });
			expect((await suppressions.page({ email__exact: kept })).results).toEqual([
				{
					email: kept,
					reason: 'UNSUBSCRIBED',
					list_id: null,
					source: 'RECIPIENT',
					date_created: '2025-05-01T10:00:00.000001',
					expires_at: null,
				},
			]);
			const many = Array.from({ length: 5_001 }, () => ({ email: kept }));
			await expect(suppressions.put(many)).rejects.toMatchObject({
				code: expect.stringMatching(/^(invalid|too_large)$/),
			});
		});

		it('block mail until a client removes them, one reason at a time or all at once', async () => {
			const email = unique('stop');
			const list = await api.lists.create({ name: email, email_reason: 'r' });
			const { id } = await api.subscribers(list.id).create({ email });
			for (const reason of ['HARDBOUNCED', 'UNSUBSCRIBED'] as const)
				await suppressions.create({ email, reason });
			expect(await api.subscribers(list.id).get(id)).toMatchObject({
				is_active: false,
				disable_reason: 'HARDBOUNCED',
			});
			const mail = { from: subject.sender, to: [email], subject: 'S', text_body: 'T' };
			expect((await api.send(mail)).messages_created).toBe(0);
			expect(await suppressions.remove({ email, reason: 'HARDBOUNCED' })).toMatchObject({
				removed: [{ email, reason: 'HARDBOUNCED' }],
				inactive_subscribers: 1,
			});
			expect((await api.send(mail)).messages_created).toBe(1);
			expect((await api.send({ ...mail, type: 'BULK' })).messages_created).toBe(0);
			await suppressions.remove({ email });
			await refuses(suppressions.remove({ email }), 'not_found');
			// The subscriber stays inactive, so bulk mail would be canceled at its lease.
			expect((await api.send({ ...mail, type: 'BULK' })).messages_created).toBe(0);
			await api.subscribers(list.id).patch(id, { is_active: true });
			expect((await api.send({ ...mail, type: 'BULK' })).messages_created).toBe(1);
		});

		it('end after a PUT of the subscriber only if the reason is UNSUBSCRIBED and is_active is true (api-decisions 14)', async () => {
			const list = await api.lists.create({ name: unique('put'), email_reason: 'r' });
			const subscribers = api.subscribers(list.id);
			for (const reason of ['UNSUBSCRIBED', 'HARDBOUNCED'] as const) {
				const email = unique('put');
				await suppressions.create({ email, reason });
				const { id } = await subscribers.create({ email });
				const renamed = { name: 'Ann', is_active: false, disable_reason: reason };
				expect(await subscribers.replace(id, { email, name: 'Ann' })).toMatchObject(renamed);
				expect((await suppressions.page({ email__exact: email })).count).toBe(1);
				const activated = subscribers.replace(id, { email, is_active: true });
				if (reason === 'HARDBOUNCED') await refuses(activated, 'invalid');
				else expect(await activated).toMatchObject({ is_active: true, disable_reason: null });
			}
			const other = await subscribers.create({ email: unique('put'), is_active: false });
			expect(await subscribers.replace(other.id, { email: other.email })).toMatchObject({ is_active: true });
		});

		it('with a list_id apply to this list only; others apply to all lists (api-decisions 40)', async () => {
			const email = unique('list');
			const lists = [];
			for (const name of ['One', 'Two']) lists.push(await api.lists.create({ name, email_reason: 'r' }));
			const [one, two] = lists.map(({ id }) => id);
			if (one === undefined || two === undefined) throw new Error('two lists are needed');
			for (const id of [one, two]) await api.subscribers(id).create({ email });
			const made = await suppressions.create({ email, reason: 'UNSUBSCRIBED', list_id: one });
			expect(made).toMatchObject({ reason: 'UNSUBSCRIBED', list_id: one });
			const active = async (id: number) => (await api.lists.get(id)).active_subscribers_count;
			expect([await active(one), await active(two)]).toEqual([0, 1]);
			await suppressions.create({ email, reason: 'UNSUBSCRIBED' });
			expect(await active(two)).toBe(0);
			const found = async (filter: object) =>
				(await suppressions.page({ email__exact: email, ...filter })).results.map(({ list_id }) => list_id);
			expect(await found({})).toEqual([null, one]);
			expect(await found({ list_id: one })).toEqual([one]);
			const first = await suppressions.slice({ email__exact: email, limit: 1 });
			const next = await suppressions.slice({ email__exact: email, limit: 1, cursor: first.next ?? '' });
			expect(next.results).toEqual([made]);
			expect(await suppressions.remove({ email, list_id: one })).toEqual({
				removed: [made],
				inactive_subscribers: 1,
			});
			expect(await found({})).toEqual([null]);
		});

		it('reject a list that does not exist, and any list unless the reason is UNSUBSCRIBED', async () => {
			const email = unique('nolist');
			const { id } = await api.lists.create({ name: 'One', email_reason: 'r' });
			await expect(suppressions.create({ email, reason: 'COMPLAINED', list_id: id })).rejects.toMatchObject(
				invalid({ list_id: [{ message: 'Only UNSUBSCRIBED can apply to a single list, not COMPLAINED.' }] }),
			);
			const gone = { email, reason: 'UNSUBSCRIBED', list_id: 999_999 } as const;
			await expect(suppressions.create(gone)).rejects.toMatchObject(
				invalid({ list_id: [{ message: 'There is no list 999999.' }] }),
			);
			expect(await suppressions.check([gone])).toMatchObject({ counts: { rejected: 1 } });
		});

		it('reject an erased address', async () => {
			const email = unique('erased');
			await (await need(api, 'erasures')).erase(email);
			await expect(suppressions.create({ email })).rejects.toMatchObject({
				code: 'invalid',
				fields: { email: [{ message: expect.stringMatching(/was erased/) }] },
			});
			expect((await suppressions.put([{ email }])).rejects).toMatchObject([{ row: 0, code: 'erased' }]);
		});
	});
}
