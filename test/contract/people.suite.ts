import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../src/api/api.js';
import { need } from '../../src/api/capabilities.js';
import type { People } from '../../src/api/people.js';
import type { Subject } from './api.suite.js';

export function peopleSuite(name: string, open: () => Promise<Subject>): void {
	describe(`a look-up of a person on ${name}`, () => {
		let subject: Subject;
		let api: Api;
		let people: People;
		beforeAll(async () => {
			subject = await open();
			api = subject.api;
			people = await need(api, 'people');
		});
		afterAll(() => subject.close());

		const sendTo = async (to: string, more: object = {}) => {
			const mail = { from: subject.sender, to: [to], subject: 'S', text_body: 'T', ...more };
			return (await api.send(mail as Parameters<Api['send']>[0])).messages[0]?.id ?? '';
		};

		it('finds an address in lists, suppressions, messages and copies even if case or punycode differs', async () => {
			const list = await api.lists.create({ name: 'Straße', email_reason: 'r' });
			await api.subscribers(list.id).create({ email: 'Ann@Bücher.example', name: 'Ann' });
			await (await need(api, 'suppressions')).create({ email: 'ann@bücher.example', reason: 'UNSUBSCRIBED' });
			const own = await sendTo('ANN@bücher.example');
			const copied = await sendTo('bob@people.example', { cc: ['Ann <ann@xn--bcher-kva.example>'] });
			await sendTo('joann@bücher.example');
			const ann = await people.get('aNN@BÜCHER.example');
			expect(ann).toMatchObject({
				email: 'ann@xn--bcher-kva.example',
				subscribers: [
					{ list_id: list.id, list_name: 'Straße', is_active: false, disable_reason: 'UNSUBSCRIBED' },
				],
				suppressions: [{ reason: 'UNSUBSCRIBED', source: 'API', list_id: null }],
				date_erased: null,
				date_sender: null,
				left_out: [],
				copies: [copied],
				messages: 1,
				is_known: true,
			});
			const { results, next } = await people.messages('ann@xn--bcher-kva.example', { limit: 9 });
			expect({ next, results }).toMatchObject({
				next: null,
				results: [
					{ id: own, events: [{ type: 'CREATED' }], visits: [], variables: {}, webhook_deliveries: [] },
				],
			});
		});

		it('lists messages in slices, newest first, back to a given time', async () => {
			const ids: string[] = [];
			for (let at = 0; at < 3; at += 1) ids.unshift(await sendTo('slices@people.example'));
			const first = await people.messages('slices@people.example', { limit: 2 });
			const rest = await people.messages('slices@people.example', { limit: 2, before: first.next ?? 0 });
			expect([...first.results, ...rest.results].map(({ id }) => id)).toEqual(ids);
			expect(rest.next).toBe(null);
			const since = '2999-01-01T00:00:00.000000';
			expect((await people.messages('slices@people.example', { limit: 2, since })).results).toEqual([]);
		});

		it('reports an erasure, and nothing else about the person', async () => {
			await sendTo('gone@people.example');
			await (await need(api, 'erasures')).erase('gone@people.example');
			expect(await people.get('Gone@people.example')).toMatchObject({
				...{ subscribers: [], suppressions: [], messages: 0, copies: [], is_known: true },
				date_erased: expect.stringMatching(/^\d{4}-/),
			});
		});

		it('reports that an address is unknown, and rejects an invalid address, time or limit', async () => {
			expect(await people.get('unknown@people.example')).toMatchObject({ is_known: false, messages: 0 });
			expect(await people.messages('unknown@people.example', { limit: 1 })).toEqual({
				results: [],
				next: null,
			});
			const refused = (field: string) => ({ code: 'invalid', fields: { [field]: [expect.anything()] } });
			await expect(people.get('nobody')).rejects.toMatchObject(refused('email'));
			const email = 'unknown@people.example';
			await expect(people.messages(email, { limit: 1, since: 'soon' })).rejects.toMatchObject(
				refused('since'),
			);
			await expect(people.messages(email, { limit: 0 })).rejects.toMatchObject(refused('limit'));
		});
	});
}
