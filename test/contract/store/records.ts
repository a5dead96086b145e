import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import { day, fixedClock, newUuid, noon, type OpenEmpty } from './fixture.js';

export function describeRecords(open: OpenEmpty): void {
	describe('webhooks, templates, senders and settings', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			return () => store.close();
		});

		it('keeps a webhook with its password, and ids for good', async () => {
			const input = {
				url: 'https://example.org/hook',
				type: 'OPENED',
				is_auth_enabled: true,
				login: 'me',
				password: ' s ',
			} as const;
			const record = { id: 1, ...input, date_created: '2026-03-10T12:00:00.000000' };
			expect(await store.writes.createWebhook({ input, now: noon })).toEqual({ kind: 'written', record });
			const patched = { ...record, is_auth_enabled: false };
			expect(await store.writes.patchWebhook({ id: 1, patch: { is_auth_enabled: false } })).toEqual({
				kind: 'written',
				record: patched,
			});
			expect(await store.reads.pageWebhooks({ page: 1, page_size: 9 })).toEqual({
				count: 1,
				results: [patched],
			});
			expect([
				await store.writes.deleteWebhook({ id: 1 }),
				await store.writes.deleteWebhook({ id: 1 }),
			]).toEqual([true, false]);
			expect(await store.writes.createWebhook({ input, now: noon })).toMatchObject({ record: { id: 2 } });
			expect(await store.writes.patchWebhook({ id: 1, patch: {} })).toEqual({ kind: 'not_found' });
		});

		it('keeps names of templates unique, and their order of making', async () => {
			const input = { name: 'Welcome', text_body: 'Hi', html_body: '' };
			const [first, second] = [newUuid(), newUuid()];
			await store.writes.createTemplate({ id: second, input, now: noon });
			const refused = { kind: 'refused', errors: { name: [{ code: 'unique' }] } };
			expect(await store.writes.createTemplate({ id: first, input, now: noon })).toMatchObject(refused);
			await store.writes.createTemplate({ id: first, input: { ...input, name: 'Bye' }, now: noon });
			const renamed = { id: first, patch: { name: 'Welcome' }, now: noon };
			expect(await store.writes.patchTemplate(renamed)).toMatchObject(refused);
			const patched = await store.writes.patchTemplate({
				id: first,
				patch: { text_body: 'Ho' },
				now: noon + day,
			});
			expect(patched).toMatchObject({
				record: { text_body: 'Ho', name: 'Bye', date_updated: '2026-03-11T12:00:00.000000' },
			});
			const page = await store.reads.pageTemplates({ page: 1, page_size: 9 });
			expect(page.results.map(({ name }) => name)).toEqual(['Welcome', 'Bye']);
			expect(await store.writes.deleteTemplate({ id: first })).toBe(true);
			expect(await store.reads.getTemplate({ id: first })).toBeNull();
		});

		it('finds a sender by its key and takes it once', async () => {
			const sender = { from_email: 'Desk@example.org', email_key: 'desk@example.org', now: noon };
			expect(await store.writes.createSender(sender)).toMatchObject({
				record: { id: 1, from_email: 'Desk@example.org', full_name: '' },
			});
			expect(await store.writes.createSender(sender)).toMatchObject({ kind: 'refused' });
			expect(await store.reads.findSender({ email_key: 'desk@example.org' })).toMatchObject({ id: 1 });
			expect(await store.writes.deleteSender({ id: 1 })).toBe(true);
			expect(await store.reads.findSender({ email_key: 'desk@example.org' })).toBeNull();
			expect((await store.reads.pageSenders({ page: 1, page_size: 9 })).count).toBe(0);
		});

		it('changes settings together, and forgets those set to null', async () => {
			await store.writes.putSettings({ values: { time_zone: 'Europe/Oslo', public_url: 'x' }, now: noon });
			await store.writes.putSettings({ values: { public_url: null }, now: noon });
			expect(await store.reads.getSettings()).toEqual({ time_zone: 'Europe/Oslo' });
		});

		it('makes a key once, however often it is asked for', async () => {
			const ask = (id: number) =>
				store.writes.ensureKey({
					purpose: 'tracking',
					fresh: { id, secret: `s${id}` },
					rotateAfter: 90 * 86_400_000_000,
					now: noon,
				});
			const [one, other] = await Promise.all([ask(7), ask(8)]);
			// Whichever comes first makes it.
			const made = [7, 8].map((id) => [{ id, secret: `s${id}`, created_at: noon }]);
			expect(made).toContainEqual(one);
			expect(other).toEqual(one);
		});
	});
}
