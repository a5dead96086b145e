import { createHash } from 'node:crypto';
import PostalMime from 'postal-mime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../src/api/api.js';
import type { CampaignSpec } from '../../src/api/campaigns.js';
import type { Extensions } from '../../src/api/capabilities.js';
import { tupleKeyNames, tupleKeys } from '../../src/api/exports.js';
import type { KeySlice, Message } from '../../src/api/records.js';
import { refuses } from '../support/refuses.js';
import type { Subject } from './api.suite.js';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function extensionsSuite(name: string, open: () => Promise<Subject>): void {
	describe(`the extensions on ${name}`, () => {
		let subject: Subject;
		let api: Api;
		let counter = 0;
		const unique = (word: string) => `${word}${++counter}`;
		let ext: Extensions;
		const newList = () => api.lists.create({ name: unique('list'), email_reason: 'You asked for it' });
		const people = async (listId: number) => (await api.subscribers(listId).page({})).results;
		const parsed = async (id: string) =>
			PostalMime.parse(Buffer.from((await ext.messages.raw(id)).raw_base64, 'base64'));

		beforeAll(async () => {
			subject = await open();
			api = subject.api;
			ext = (await api.capabilities()).ext as Extensions;
		});
		afterAll(() => subject.close());

		it('are announced with the name of the service (37)', async () => {
			const { service, idempotentSend, ext: offered } = await api.capabilities();
			expect({ service, idempotentSend }).toEqual({ service: 'mailctl', idempotentSend: true });
			expect(Object.keys(offered)).toEqual(
				expect.arrayContaining(['imports', 'campaigns', 'messages', 'templates']),
			);
		});

		it('turn off tracking for a call or campaign on request (46)', async () => {
			const html_body = '<a href="https://example.com/">x</a>';
			const mail = { from: subject.sender, subject: 'Off', html_body };
			for (const disable_tracking of [true, false]) {
				const to = [`${unique('off')}@example.com`];
				const { messages: sent } = await api.send({ ...mail, to, disable_tracking });
				const { id } = await ext.campaigns.open(unique('off'), {
					...mail,
					type: 'TRANSACTIONAL',
					disable_tracking,
				});
				await ext.campaigns.put(id, { first: 0, recipients: [{ to: `${unique('off')}@example.com` }] });
				await ext.campaigns.release(id, { expect_count: 1 });
				const [row] = (await ext.campaigns.results(id, {})).results;
				const batch = await ext.campaigns.open(unique('off'), { requests: true });
				const requests = [
					{ line: 1, request: { ...mail, to: [`${unique('off')}@example.com`], disable_tracking } },
				];
				await ext.campaigns.putRequests(batch.id, { first: 0, requests });
				const [requested] = (await ext.campaigns.results(batch.id, {})).results;
				const ids = [sent[0]?.id, row?.id, requested?.id];
				const tracking = ids.map(async (one) => (await ext.messages.get(one ?? '')).tracking);
				expect(await Promise.all(tracking)).toEqual(Array(3).fill(disable_tracking ? 'off' : 'on'));
			}
		});

		it('list the links of a campaign, and reject an unknown campaign', async () => {
			const campaign_unique_id = '77777777-0000-4000-8000-000000000001';
			const { links } = ext.reports;
			await refuses(links(campaign_unique_id), 'not_found');
			const html_body = '<a href="https://example.com/&quot;x&quot;">x</a>';
			const mail = { from: subject.sender, to: ['links@example.com'], subject: 'S', html_body };
			await api.send({ ...mail, campaign_unique_id } as typeof mail);
			const none = { people: 0, clicks: 0, machine_people: 0, machine_clicks: 0, share: 0 };
			expect(await links(campaign_unique_id)).toEqual({
				results: [{ url: 'https://example.com/"x"', position: 1, ...none }],
				left_out: 0,
			});
		});

		describe('imports (14, 15, 38)', () => {
			const spec = (list_id: number) => ({ list_id, on_conflict: 'update' as const, reactivate: false });
			const columns = ['email', 'name'];

			it('create people with the source IMPORT, keep the old value for a null cell, and reject duplicates', async () => {
				const list = await newList();
				await api.subscribers(list.id).create({ email: 'old@example.com', name: 'Old' });
				const { id, position } = await ext.imports.open(unique('key'), spec(list.id));
				expect(position).toBe(0);
				const rows = [
					['new@example.com', 'New'],
					['OLD@example.com', null],
					['new@EXAMPLE.com', 'Again'],
				];
				const cells = [...rows.flat(), 'nonsense', 'x'];
				const ack = await ext.imports.put(id, { first: 0, columns, cells });
				expect(ack).toMatchObject({
					position: 4,
					counts: { created: 1, updated: 0, unchanged: 1, duplicate: 1, rejected: 1 },
				});
				expect(ack.rejects.map(({ row, code }) => [row, code])).toEqual([
					[2, 'duplicate'],
					[3, expect.any(String)],
				]);
				expect(await ext.imports.finish(id)).toEqual(ack.counts);
				expect(await people(list.id)).toMatchObject([
					{ email: 'old@example.com', name: 'Old', source: 'API' },
					{ email: 'new@example.com', name: 'New', source: 'IMPORT', is_active: true },
				]);
			});

			it('repeat the answer to a repeated batch, reject a gap between batches, and report their position when reopened', async () => {
				const list = await newList();
				const key = unique('key');
				const { id } = await ext.imports.open(key, spec(list.id));
				const batch = { first: 0, columns: ['email'], cells: ['a@example.com', 'b@example.com'] };
				const ack = await ext.imports.put(id, batch);
				expect(await ext.imports.put(id, batch)).toEqual(ack);
				await refuses(ext.imports.put(id, { ...batch, first: 5 }), 'conflict');
				expect(await ext.imports.open(key, spec(list.id))).toEqual({ id, position: 2, counts: ack.counts });
				await refuses(ext.imports.open(key, { ...spec(list.id), reactivate: true }), 'conflict');
				expect((await api.lists.get(list.id)).overall_subscribers_count).toBe(2);
			});

			it('leave a subscriber inactive if is_active is true but reactivate is false (14)', async () => {
				const list = await newList();
				await api.subscribers(list.id).create({ email: 'a@example.com', is_active: false });
				const { id } = await ext.imports.open(unique('key'), spec(list.id));
				await ext.imports.put(id, {
					first: 0,
					columns: ['email', 'is_active'],
					cells: ['a@example.com', 'true'],
				});
				expect(await people(list.id)).toMatchObject([{ is_active: false }]);
			});

			it('reject an unknown list and unknown columns', async () => {
				await refuses(ext.imports.open(unique('key'), spec(999_999)), 'not_found');
				const { id } = await ext.imports.open(unique('key'), spec((await newList()).id));
				const bad = { first: 0, columns: ['email', 'shoe'], cells: ['a@example.com', '44'] };
				await refuses(ext.imports.put(id, bad), 'invalid');
			});
		});

		describe('deliveries of webhooks (32, 38)', () => {
			const newHook = () => api.webhooks.create({ url: 'https://hooks.example.com/in', type: 'OPENED' });
			const other = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';

			it('do not exist before the first event, so there is nothing to replay', async () => {
				const { id } = await newHook();
				const empty = { count: 0, next: null, previous: null, results: [] };
				expect(await ext.deliveries.page(id, {})).toEqual(empty);
				expect(
					await ext.deliveries.page(id, { state: 'failed', since: '2026-01-01T00:00:00.000000' }),
				).toEqual(empty);
				expect(await ext.deliveries.replay(id, { failed: true })).toBe(0);
				expect(await ext.deliveries.replay(id, { all: true })).toBe(0);
				expect((await ext.deliveries.stopped()).map(({ webhook_id }) => webhook_id)).not.toContain(id);
			});

			it('cannot be read or replayed with an unknown webhook, id or state, or an invalid time', async () => {
				const { id } = await newHook();
				for (const call of [
					() => ext.deliveries.page(999_999, {}),
					() => ext.deliveries.get(id, other),
					() => ext.deliveries.replay(999_999, {}),
				])
					await refuses(call(), 'not_found');
				for (const call of [
					() => ext.deliveries.page(id, { state: 'lost' as never }),
					() => ext.deliveries.page(id, { since: 'yesterday' }),
					() => ext.deliveries.replay(id, { deliveries: [other] }),
				])
					await refuses(call(), 'invalid');
			});

			it('use the same secret until a rotation, and both the old and new secrets after the rotation', async () => {
				const [first] = await ext.deliveries.secrets();
				expect(first?.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
				expect((await ext.deliveries.secrets())[0]).toEqual(first);
				const [second, before, ...more] = await ext.deliveries.rotateSecret();
				expect(second).toMatchObject({ date_retired: null });
				expect(second?.secret).not.toBe(first?.secret);
				expect(before).toMatchObject({ secret: first?.secret, date_retired: expect.any(String) });
				expect(more).toEqual([]);
			});
		});

		describe('attachments', () => {
			const bytes = Buffer.from([0, 1, 2, 0xff, 0x0a]);
			const shaOf = (content: Buffer) => createHash('sha256').update(content).digest('hex');
			const sha256 = shaOf(bytes);
			const pdf = { name: 'Übersicht.pdf', type: 'application/pdf', sha256 };
			const mail = () => ({ from: subject.sender, to: ['a@example.com'], subject: 'S', text_body: 'T' });

			it('are uploaded once and then referenced by messages', async () => {
				await refuses(ext.attachments.find(sha256), 'not_found');
				expect(await ext.attachments.put(sha256, bytes)).toEqual({ sha256, size: 5 });
				expect(await ext.attachments.put(sha256, bytes)).toEqual({ sha256, size: 5 });
				expect(await ext.attachments.find(sha256)).toEqual({ sha256, size: 5 });
				const { messages } = await api.send({ ...mail(), attachments: [pdf] });
				const id = messages[0]?.id ?? '';
				expect((await ext.messages.get(id)).attachments).toEqual([{ ...pdf, size: 5 }]);
				const [file] = (await parsed(id)).attachments;
				expect(file).toMatchObject({ filename: pdf.name, mimeType: pdf.type });
				expect(Buffer.from(file?.content as ArrayBuffer)).toEqual(bytes);
			});

			it('must match their hash, can be empty, and have a maximum size', async () => {
				const nothing = Buffer.alloc(0);
				expect(await ext.attachments.put(shaOf(nothing), nothing)).toMatchObject({ size: 0 });
				await expect(ext.attachments.put(sha256, Buffer.from('x'))).rejects.toMatchObject({
					code: 'invalid',
					fields: { sha256: [{ code: 'invalid' }] },
				});
				const huge = Buffer.alloc(20 * 1024 * 1024 + 1);
				const code = expect.stringMatching(/^(too_large|invalid)$/);
				await expect(ext.attachments.put(shaOf(huge), huge)).rejects.toMatchObject({ code });
				const largest = huge.subarray(1);
				expect(await ext.attachments.put(shaOf(largest), largest)).toMatchObject({ size: 20 * 1024 * 1024 });
			});

			it.each([
				['no name', { ...pdf, name: '' }, { 0: { name: [{ code: 'blank' }] } }],
				['a path', { ...pdf, name: '../x' }, { 0: { name: [{ code: 'invalid' }] } }],
				['a line break in its name', { ...pdf, name: 'a\rb' }, { 0: { name: [{ code: 'invalid' }] } }],
				['an invalid media type', { ...pdf, type: 'pdf' }, { 0: { type: [{ code: 'invalid' }] } }],
				['the type of a mail', { ...pdf, type: 'message/rfc822' }, { 0: { type: [{ code: 'invalid' }] } }],
				['an invalid hash', { ...pdf, sha256: 'x' }, { 0: { sha256: [{ code: 'invalid' }] } }],
				['a hash that was never uploaded', { ...pdf, sha256: '0'.repeat(64) }, [{ code: 'does_not_exist' }]],
			])('are rejected with %s', async (_, attachment, errors) => {
				await expect(api.send({ ...mail(), attachments: [attachment] })).rejects.toMatchObject({
					code: 'invalid',
					fields: { attachments: errors },
				});
			});

			it('are rejected if a cid: link matches two of them', async () => {
				await ext.attachments.put(sha256, bytes);
				const two = {
					...mail(),
					html_body: '<img src="cid:a.png">',
					attachments: [1, 2].map(() => ({ ...pdf, name: 'a.png' })),
				};
				await expect(api.send(two)).rejects.toMatchObject({ fields: { attachments: [{ code: 'unique' }] } });
			});
		});

		describe('a list that is created if missing', () => {
			it('is still reported as new if a client repeats the first call with the same idempotency key', async () => {
				const key = { idempotencyKey: unique('key') };
				const body = { name: unique('kept'), email_reason: 'You asked' };
				const added = await ext.lists.add(body, key);
				expect(added.is_new).toBe(true);
				expect(await ext.lists.add(body, key)).toEqual(added);
				expect(await ext.lists.add(body)).toEqual({ is_new: false, list: added.list });
				await refuses(ext.lists.add({ ...body, email_reason: 'Other' }, key), 'unprocessable');
				await api.lists.delete(added.list.id);
				expect(await ext.lists.add(body, key)).toMatchObject({ is_new: true });
			});

			it('is created by the first call, and returned by later calls', async () => {
				const name = unique('once');
				const first = await ext.lists.add({ name, email_reason: 'You asked' });
				expect(first).toEqual({ is_new: true, list: await api.lists.get(first.list.id) });
				const others = await Promise.all([1, 2, 3].map(() => ext.lists.add({ name, email_reason: 'Other' })));
				for (const other of others) expect(other).toEqual({ is_new: false, list: first.list });
				await expect(ext.lists.add({ name: '', email_reason: '' })).rejects.toMatchObject({
					code: 'invalid',
					fields: { name: [{ code: 'blank' }], email_reason: [{ code: 'blank' }] },
				});
				await api.lists.delete(first.list.id);
			});
		});

		describe('details of lists', () => {
			it('contain a public name, which a client clears with an empty text or null', async () => {
				const list = await newList();
				const { id } = list;
				expect(await ext.lists.get(id)).toEqual({ id, public_name: null });
				expect(await ext.lists.patch(id, { public_name: ' Monthly <news> ' })).toEqual({
					id,
					public_name: 'Monthly <news>',
				});
				expect(await ext.lists.patch(id, {})).toEqual({ id, public_name: 'Monthly <news>' });
				expect(await api.lists.get(id)).toEqual(list);
				expect(await ext.lists.patch(id, { public_name: '' })).toEqual({ id, public_name: null });
				await ext.lists.patch(id, { public_name: 'é'.repeat(255) });
				expect(await ext.lists.patch(id, { public_name: null })).toEqual({ id, public_name: null });
			});
		});

		describe('erasures', () => {
			it('clear the person’s messages, delete the subscriber, and block the address until a client lifts the block', async () => {
				const list = await newList();
				const email = `${unique('gone')}@example.com`;
				await api.subscribers(list.id).create({ email, name: 'Gone' });
				const mail = { from: subject.sender, to: [email], subject: 'Hello Gone', text_body: 'x' };
				const { messages } = await api.send(mail);
				const erased = { subscribers: 1, messages: 1, canceled: 1, suppressions: 0 };
				expect(await ext.erasures.erase(email.toUpperCase())).toEqual(erased);
				expect(await people(list.id)).toEqual([]);
				const message = await ext.messages.get(messages[0]?.id ?? '');
				const emptied = { to: 'erased@erased.invalid', subject: '(erased)', state: 'canceled' };
				expect(message).toMatchObject(emptied);
				await expect(api.subscribers(list.id).create({ email })).rejects.toMatchObject({
					code: 'invalid',
					fields: { email: [{ message: expect.stringMatching(/was erased/) }] },
				});
				await ext.erasures.lift(email);
				await refuses(ext.erasures.lift(email), 'not_found');
				expect(await api.subscribers(list.id).create({ email })).toMatchObject({ email, name: '' });
			});

			it('reject a bad address', async () => {
				await refuses(ext.erasures.erase('nobody'), 'invalid');
				await refuses(ext.erasures.lift('nobody'), 'invalid');
			});
		});

		describe('exports', () => {
			it('return subscribers in slices after a given id, with the same filters as pages', async () => {
				const list = await newList();
				const made = [];
				for (const name of ['a', 'b', 'c'])
					made.push(
						await api.subscribers(list.id).create({ email: `${name}@example.com`, is_active: name !== 'b' }),
					);
				const first = await ext.exports.slice(list.id, { after: 0, limit: 2 });
				expect(first).toEqual({ results: made.slice(0, 2), next: made[1]?.id });
				const last = await ext.exports.slice(list.id, { after: made[1]?.id ?? 0, limit: 2 });
				expect(last).toEqual({ results: made.slice(2), next: null });
				const found = async (filter: object) =>
					(await ext.exports.slice(list.id, { ...filter, after: 0, limit: 9 })).results.map(
						({ email }) => email,
					);
				expect(await found({ is_active: true })).toEqual(['a@example.com', 'c@example.com']);
				expect(await found({ email__icontains: 'B@' })).toEqual(['b@example.com']);
				await refuses(ext.exports.slice(999_999, { after: 0, limit: 1 }), 'not_found');
				await refuses(ext.exports.slice(list.id, { after: -1, limit: 1 }), 'invalid');
			});

			it('return the same values whether subscribers are tuples or records', async () => {
				const [exports, tuples, list] = [ext.exports, ext.tuples, await newList()];
				for (const name of ['a', '"b", \u2028 <é>', 'c'])
					await api.subscribers(list.id).create({ email: `${name.charCodeAt(0)}@example.com`, name });
				for (const keys of tupleKeyNames) {
					for (const after of [0, 1_000_000]) {
						const request = { after, limit: 2, is_active: true };
						const { results, next } = await exports.slice(list.id, request);
						expect(await tuples.slice(list.id, { ...request, keys })).toEqual({
							results: results.map((record) => tupleKeys[keys].map((key) => record[key])),
							next,
						});
					}
				}
				const request = { after: 0, limit: 1, keys: 'all' } as const;
				await refuses(tuples.slice(999_999, request), 'not_found');
				const refused = { ...request, after: -1 };
				await refuses(tuples.slice(list.id, refused), 'invalid');
			});
		});

		describe('senders (48)', () => {
			const none = { full_name: '', reply_to_email: '', is_verified: true };
			const taken = { fields: { from_email: [{ code: 'unique' }] } };

			it('can be created, changed and deleted, but an address is unique whatever its letter case', async () => {
				const { senders } = api;
				const from_email = `${unique('Desk')}@example.com`;
				const made = await senders.create({ from_email });
				expect(made).toEqual({ ...made, ...none, from_email });
				await expect(senders.create({ from_email: from_email.toUpperCase() })).rejects.toMatchObject(taken);
				const both = { from_email: from_email.toLowerCase(), full_name: 'x'.repeat(256) };
				await expect(senders.create(both)).rejects.toMatchObject({
					fields: { ...taken.fields, full_name: [{ code: 'max_length' }] },
				});
				await expect(senders.patch(made.id, { from_email: subject.sender })).rejects.toMatchObject(taken);
				const named = { full_name: 'The desk', reply_to_email: 'desk@example.org' };
				expect(await senders.patch(made.id, named)).toEqual({ ...made, ...named });
				const upper = { from_email: from_email.toUpperCase() };
				expect(await senders.replace(made.id, upper)).toEqual({ ...made, ...upper });
				expect(await senders.get(made.id)).toEqual({ ...made, ...upper });
				expect((await senders.page({})).results).toContainEqual({ ...made, ...upper });
				await senders.delete(made.id);
				await refuses(senders.get(made.id), 'not_found');
				await refuses(senders.patch(made.id, {}), 'not_found');
				await refuses(senders.delete(made.id), 'not_found');
			});

			it('can be used right after their creation, and only with their current address', async () => {
				const from_email = `${unique('moved')}@example.com`;
				const { id } = await api.senders.create({ from_email });
				const mail = (from: string) => ({ from, to: ['a@example.com'], subject: 'S', text_body: 'T' });
				await api.send(mail(from_email));
				await api.senders.patch(id, { from_email: `new-${from_email}` });
				await api.send(mail(`new-${from_email}`));
				await expect(api.send(mail(from_email))).rejects.toMatchObject({
					fields: { from: [{ code: 'not_verified' }] },
				});
			});
		});

		describe('templates (23)', () => {
			it('have a unique name, which becomes the subject of a mail without a subject', async () => {
				const made = await ext.templates.create({
					name: unique('Welcome '),
					html_body: '<p>Hello #name#</p>',
				});
				expect(made).toMatchObject({
					id: expect.stringMatching(uuid),
					text_body: '',
					html_body: '<p>Hello #name#</p>',
				});
				await refuses(ext.templates.create({ name: made.name, text_body: 'x' }), 'invalid');
				const { messages } = await api.send({
					from: subject.sender,
					to: ['a@example.com'],
					template_unique_id: made.id,
					context: { name: '<Ann> & co' },
				});
				const mail = await parsed(messages[0]?.id ?? '');
				expect(mail.subject).toBe(made.name);
				expect(mail.html).toContain('Hello &lt;Ann&gt; &amp; co');
				expect(mail.text?.trim()).toBe('Hello <Ann> & co');
				const { name } = made;
				expect(await ext.templates.replace(made.id, { name, text_body: 'Hi' })).toMatchObject({
					...{ id: made.id, name, text_body: 'Hi', html_body: '' },
				});
				await refuses(ext.templates.replace(made.id, { text_body: 'Hi' } as never), 'invalid');
				await ext.templates.delete(made.id);
				await refuses(ext.templates.get(made.id), 'not_found');
			});
		});

		describe('variables (24)', () => {
			const text_body = '#name#|#email#|#color#|#unknown#|#fff#';
			const send = async (more: object) => {
				const request = {
					from: subject.sender,
					to: ['Var@example.com'],
					subject: 'for #name#',
					text_body,
					...more,
				};
				const { messages } = await api.send(request);
				const id = messages[0]?.id ?? '';
				const mail = await parsed(id);
				const [listed] = (await ext.messages.page({ ordering: '-date_created' })).results;
				const { subject: told } = await ext.messages.get(id);
				expect([told, listed?.subject]).toEqual([mail.subject, mail.subject]);
				return [mail.subject, mail.text?.trim()];
			};

			it('take their values from the context first, then from the subscriber, then from built-in values', async () => {
				await api.fields.create({ variable: 'color', name: 'Colour' });
				expect(await send({})).toEqual(['for', '|Var@example.com|#color#|#unknown#|#fff#']);
				const [one, two] = [await newList(), await newList()];
				await api
					.subscribers(one.id)
					.create({ email: 'var@example.com', name: 'One', meta: { color: 'red' } });
				expect(await send({})).toEqual(['for One', 'One|Var@example.com|red|#unknown#|#fff#']);
				await api
					.subscribers(two.id)
					.create({ email: 'var@example.com', name: 'Two', meta: { color: 'blue' } });
				// The address is in two lists, so only `list_id` says whose values fill the variables.
				expect((await send({}))[1]).toContain('#color#');
				expect(await send({ list_id: two.id })).toEqual([
					'for Two',
					'Two|Var@example.com|blue|#unknown#|#fff#',
				]);
				expect((await send({ list_id: two.id, context: { color: '#name#' } }))[1]).toBe(
					'Two|Var@example.com|#name#|#unknown#|#fff#',
				);
			});
		});

		describe('campaigns (28, 38)', () => {
			const mail = { type: 'BULK', subject: 's', text_body: 'Hello #name#' } as const;
			const spec = (): CampaignSpec => ({ from: subject.sender, ...mail });

			it('stage each subscriber once, and are released only if the expected count is right', async () => {
				const list = await newList();
				const subscribers = api.subscribers(list.id);
				for (const email of ['a@example.com', 'b@example.com']) await subscribers.create({ email });
				await subscribers.create({ email: 'off@example.com', is_active: false });
				const job = unique('job');
				const { id } = await ext.campaigns.open(job, spec());
				const { counts } = await ext.campaigns.addList(id, list.id);
				expect(counts).toEqual({ staged: 2, suppressed: 0, rejected: 0, left_out: 1 });
				await ext.campaigns.addList(id, list.id);
				expect(await ext.campaigns.status(id)).toMatchObject({
					key: job,
					state: 'staged',
					messages: { staged: 2 },
				});
				await refuses(ext.campaigns.release(id, { expect_count: 3 }), 'conflict');
				expect(await ext.campaigns.status(id)).toMatchObject({ state: 'staged' });
				await ext.campaigns.release(id, { expect_count: 2 });
				expect(await ext.campaigns.status(id)).toMatchObject({ state: 'released', messages: { queued: 2 } });
				await refuses(ext.campaigns.open(job, { ...spec(), subject: 'other' }), 'conflict');
				const { results } = await ext.messages.page({ campaign_unique_id: id });
				expect(results.map(({ to, type }) => [to, type])).toEqual([
					['a@example.com', 'BULK'],
					['b@example.com', 'BULK'],
				]);
			});

			it('with strict_vars reject a subscriber without a value for a variable', async () => {
				const list = await newList();
				const variable = unique('town');
				await api.fields.create({ variable, name: 'Town' });
				await api.subscribers(list.id).create({ email: 'with@example.com', meta: { [variable]: 'Oslo' } });
				await api.subscribers(list.id).create({ email: 'without@example.com' });
				const { id } = await ext.campaigns.open(unique('job'), {
					...spec(),
					text_body: `In #${variable}#`,
					strict_vars: true,
				});
				const { counts, rejects } = await ext.campaigns.addList(id, list.id);
				expect(counts).toEqual({ staged: 1, suppressed: 0, rejected: 1 });
				expect(rejects[0]?.error).toContain('without@example.com');
				// A client that resumes may have lost the first answer, so adding the list again repeats its rejects.
				expect((await ext.campaigns.addList(id, list.id)).rejects).toEqual(rejects);
			});

			it('cancel waiting mail when their list is deleted (17), and cannot be released after a cancellation', async () => {
				const list = await newList();
				await api.subscribers(list.id).create({ email: 'a@example.com' });
				const { id } = await ext.campaigns.open(unique('job'), spec());
				await ext.campaigns.addList(id, list.id);
				await ext.campaigns.release(id, { expect_count: 1 });
				await api.lists.delete(list.id);
				expect((await ext.campaigns.status(id)).messages).toEqual({ canceled: 1 });
				const other = await ext.campaigns.open(unique('job'), spec());
				await ext.campaigns.cancel(other.id);
				expect((await ext.campaigns.status(other.id)).state).toBe('canceled');
				await refuses(ext.campaigns.release(other.id, { expect_count: 0 }), 'conflict');
			});
		});

		describe('recipients added to a campaign (24, 38)', () => {
			const text_body = '#name#|#plan#|#city#';
			const opened = async (more: Partial<CampaignSpec> = {}) => {
				const job = unique('job');
				const given = { from: subject.sender, type: 'BULK', subject: 's', text_body } as const;
				const spec: CampaignSpec = { ...given, strict_vars: false, ...more };
				const { id, position } = await ext.campaigns.open(job, spec);
				expect(position).toBe(0);
				return { campaigns: ext.campaigns, id, reopen: () => ext.campaigns.open(job, spec) };
			};
			const nobody = '00000000-0000-4000-8000-000000000000';
			const textsOf = async (id: string) => {
				const { results } = await ext.messages.page({ campaign_unique_id: id });
				return Promise.all(results.map(async ({ id: one }) => (await parsed(one)).text?.trim()));
			};

			it('take values from their own context first, then from the campaign’s context, then from meta', async () => {
				const variable = unique('town');
				await api.fields.create({ variable, name: 'Town' });
				const list = await newList();
				await api
					.subscribers(list.id)
					.create({ email: 'ann@example.com', name: 'Ann', meta: { [variable]: 'Oslo' } });
				const { campaigns, id } = await opened({
					text_body: `#name#|#plan#|#${variable}#`,
					context: { plan: 'all' },
					list_id: list.id,
				});
				const { counts } = await campaigns.put(id, {
					first: 0,
					recipients: [
						{ to: 'ann@example.com' },
						{ to: ' Bob@example.com ', context: { name: 'Bob', plan: 'mine', [variable]: 'Rome' } },
						{ to: 'ANN+2@example.com', context: { plan: '', unused: 'x' } },
					],
				});
				expect(counts).toEqual({ staged: 3, suppressed: 0, rejected: 0 });
				await campaigns.release(id, { expect_count: 3 });
				expect(await textsOf(id)).toEqual(['Ann|all|Oslo', 'Bob|mine|Rome', `||#${variable}#`]);
				const { results } = await ext.messages.page({ campaign_unique_id: id });
				expect(results.map(({ to, list_id }) => [to, list_id])).toEqual([
					['ann@example.com', list.id],
					['Bob@example.com', list.id],
					['ANN+2@example.com', list.id],
				]);
			});

			it('are counted once if a batch is repeated, and rejected if a batch overlaps or leaves a gap', async () => {
				const { campaigns, id, reopen } = await opened();
				const recipients = [
					{ to: 'a@example.com' },
					{ to: 'nonsense' },
					{ to: '' },
					{ to: 'A@example.com' },
					{ to: 'b@example.com', context: { name: 'a\u0000b' } },
				];
				const ack = await campaigns.put(id, { first: 0, recipients });
				expect(ack).toEqual({
					position: 5,
					counts: { staged: 1, suppressed: 0, rejected: 4 },
					rejects: [
						{ row: 1, code: 'invalid', error: 'to: Enter a valid email address.' },
						{ row: 2, code: 'blank', error: 'to: This field may not be blank.' },
						{ row: 3, code: 'duplicate', error: 'A@example.com is in this campaign already.' },
						{
							row: 4,
							code: 'null_characters_not_allowed',
							error: 'context.name: Null characters are not allowed.',
						},
					],
				});
				expect(await campaigns.put(id, { first: 0, recipients })).toEqual(ack);
				for (const first of [1, 6]) {
					await refuses(campaigns.put(id, { first, recipients }), 'conflict');
				}
				expect(await reopen()).toMatchObject({ id, position: 5 });
				expect(await campaigns.put(id, { first: 5, recipients: [] })).toEqual({
					position: 5,
					counts: { staged: 0, suppressed: 0, rejected: 0 },
					rejects: [],
				});
				expect(await campaigns.put(id, { first: 5, recipients: [{ to: 'c@example.com' }] })).toMatchObject({
					position: 6,
					counts: { staged: 1 },
				});
				expect((await campaigns.status(id)).counts).toEqual({ staged: 2, suppressed: 0, rejected: 4 });
			});

			it.each([
				['true', { strict_vars: true }],
				['not set', { strict_vars: undefined }],
				['the text "true", as in a form', { strict_vars: 'true' }],
			])('need a value for every variable if strict_vars is %s', async (_, strict) => {
				const { campaigns, id } = await opened({ ...(strict as object), context: { plan: 'all' } });
				const recipients = [{ to: 'a@example.com', context: { city: '' } }, { to: 'b@example.com' }];
				expect(await campaigns.put(id, { first: 0, recipients })).toMatchObject({
					counts: { staged: 1, suppressed: 0, rejected: 1 },
					rejects: [{ row: 1, code: 'missing_variable', error: 'b@example.com: no value for #city#.' }],
				});
			});

			it('are rejected for a released, canceled or unknown campaign', async () => {
				const recipients = [{ to: 'a@example.com' }];
				const { campaigns, id: released } = await opened();
				await campaigns.put(released, { first: 0, recipients });
				await campaigns.release(released, { expect_count: 1 });
				const { id: canceled } = await opened();
				await campaigns.put(canceled, { first: 0, recipients });
				await campaigns.cancel(canceled);
				for (const id of [released, canceled]) {
					for (const first of [0, 1]) {
						await refuses(campaigns.put(id, { first, recipients }), 'conflict');
					}
				}
				expect((await campaigns.status(canceled)).messages).toEqual({});
				await refuses(campaigns.put(nobody, { first: 0, recipients }), 'not_found');
			});

			it.each([
				['a text in place of recipients', { first: 0, recipients: 'a@example.com' }, 'recipients'],
				['no recipients', { first: 0 }, 'recipients'],
				['an address in place of a recipient', { first: 0, recipients: ['a@example.com'] }, 'recipients'],
				['a recipient without address', { first: 0, recipients: [{ context: {} }] }, 'recipients'],
				[
					'a context that is not an object',
					{ first: 0, recipients: [{ to: 'a@example.com', context: ['x'] }] },
					'recipients',
				],
				[
					'a value that is not a text',
					{ first: 0, recipients: [{ to: 'a@example.com', context: { name: { first: 'A' } } }] },
					'recipients',
				],
			])('are rejected as a whole if the batch contains %s', async (_, batch, field) => {
				const { campaigns, id, reopen } = await opened();
				await expect(campaigns.put(id, batch as never)).rejects.toMatchObject({
					code: 'invalid',
					fields: { [field]: expect.anything() },
				});
				expect(await reopen()).toMatchObject({ id, position: 0 });
			});

			it('are limited to ten thousand and 4 MiB per batch', async () => {
				const { campaigns, id } = await opened();
				const recipients = Array.from({ length: 10_000 }, (_, n) => ({
					to: `n${n}@example.com`,
					context: { name: `Number ${n}`, plan: 'free', city: 'Oslo' },
				}));
				expect(await campaigns.put(id, { first: 0, recipients })).toEqual({
					position: 10_000,
					counts: { staged: 10_000, suppressed: 0, rejected: 0 },
					rejects: [],
				});
				const many = [...recipients, ...recipients];
				await expect(campaigns.put(id, { first: 10_000, recipients: many })).rejects.toMatchObject({
					code: expect.stringMatching(/^(too_large|invalid)$/),
				});
				const large = [{ to: 'x@example.com', context: { name: 'x'.repeat(4 * 1024 * 1024) } }];
				await refuses(campaigns.put(id, { first: 10_000, recipients: large }), 'too_large');
				await campaigns.cancel(id);
			});
		});

		describe('actions on a message (38)', () => {
			const accepted = async () => {
				const to = [`${unique('person')}@example.net`];
				const { messages } = await api.send({ from: subject.sender, to, subject: 'Hi', text_body: 'Hello' });
				return messages[0]?.id ?? '';
			};

			it('cancel a waiting message for good, and return it', async () => {
				const id = await accepted();
				expect(await ext.messages.retry(id)).toMatchObject({ id, state: 'queued' });
				expect(await ext.messages.cancel(id)).toMatchObject({ id, state: 'canceled', delivery_attempts: [] });
				expect(await ext.messages.cancel(id)).toMatchObject({ id, state: 'canceled' });
				await expect(ext.messages.retry(id)).rejects.toMatchObject({
					code: 'invalid',
					fields: { state: [{ message: 'The message was canceled; it cannot be retried.' }] },
				});
				expect(await ext.messages.get(id)).toMatchObject({ state: 'canceled' });
			});

			it('reject unknown ids', async () => {
				const nobody = '00000000-0000-4000-8000-00000000ffff';
				await refuses(ext.messages.cancel(nobody), 'not_found');
				await refuses(ext.messages.retry(nobody), 'not_found');
			});
		});

		it('continue a page of messages or suppressions from its cursor, in the same order', async () => {
			const [messages, suppressions] = [ext.messages, ext.suppressions];
			const mail = { from: subject.sender, subject: 's', text_body: 't' };
			for (const at of [1, 2, 3, 4, 5]) {
				await api.send({ ...mail, to: [`key${at}@example.org`] });
				await suppressions.create({ email: `key${at}@example.net`, reason: 'MANUAL' });
			}
			for (const ordering of ['date_created', '-date_created'] as const) {
				const whole = await messages.page({ ordering, page_size: 1000 });
				expect(whole.cursor).toBeUndefined();
				const first = await messages.page({ ordering, page_size: 2 });
				const found = [...first.results];
				for (let cursor: string | null = first.cursor ?? null; cursor !== null; ) {
					const slice: KeySlice<Message> = await messages.slice({ ordering, cursor, limit: 2 });
					found.push(...slice.results);
					cursor = slice.next;
				}
				expect(found).toEqual(whole.results);
			}
			await refuses(messages.slice({ cursor: 'x', limit: 2 }), 'invalid');
			const [one, ...others] = (await suppressions.page({ page_size: 1000 })).results;
			const { results, cursor = '' } = await suppressions.page({ page_size: 1 });
			expect(results).toEqual([one]);
			expect((await suppressions.slice({ cursor, limit: 1000 })).results).toEqual(others);
		});

		describe('the progress of a send', () => {
			it('covers one submission or campaign, and is empty for an unknown one', async () => {
				const accepted: (string | null)[] = [];
				await api.send(
					{ from: subject.sender, to: ['a@example.com', 'b@example.com'], subject: 's', text_body: 't' },
					{ onAccepted: ({ submission }) => accepted.push(submission) },
				);
				expect(await ext.messages.progress({ submission: accepted[0] ?? '' })).toMatchObject({
					messages: { queued: 2 },
				});
				const { id } = await ext.campaigns.open(unique('job'), {
					from: subject.sender,
					type: 'BULK',
					subject: 's',
					text_body: 't',
				});
				await ext.campaigns.put(id, { first: 0, recipients: [{ to: 'a@example.com' }] });
				expect((await ext.messages.progress({ campaign: id })).messages).toEqual({ staged: 1 });
				await ext.campaigns.release(id, { expect_count: 1 });
				expect(await ext.messages.progress({ campaign: id })).toEqual({
					messages: { queued: 1 },
					paused: null,
					has_worker: expect.any(Boolean),
				});
				const unknown = '00000000-0000-4000-8000-000000000000';
				for (const scope of [{ submission: unknown }, { campaign: unknown }]) {
					expect((await ext.messages.progress(scope)).messages).toEqual({});
				}
			});
		});

		describe('combined operations (13, 16)', () => {
			it('add a missing subscriber, and skip or update an existing one', async () => {
				const [a, b] = [unique('a_'), unique('b_')];
				for (const variable of [a, b]) await api.fields.create({ variable, name: variable });
				const list = await newList();
				const { add } = ext.subscribers;
				const first = await add(
					list.id,
					{ email: 'Ann@example.com', name: 'Ann', meta: { [a]: '1' } },
					{ if_exists: 'skip' },
				);
				expect(first).toMatchObject({
					email: 'Ann@example.com',
					name: 'Ann',
					is_active: true,
					source: 'API',
				});
				const other = { email: 'ann@EXAMPLE.com', name: 'Anna', meta: { [b]: 2 }, is_active: false };
				expect(await add(list.id, other, { if_exists: 'skip' })).toEqual(first);
				expect(await add(list.id, other, { if_exists: 'update' })).toEqual({
					...first,
					name: 'Anna',
					meta: { [a]: '1', [b]: 2 },
					is_active: false,
				});
				expect(await add(list.id, { email: 'ann@example.com' }, { if_exists: 'update' })).toMatchObject({
					name: 'Anna',
					is_active: false,
				});
				const many = await Promise.all(
					[1, 2, 3, 4, 5, 6, 7, 8].map(() =>
						add(list.id, { email: 'bob@example.com' }, { if_exists: 'skip' }),
					),
				);
				expect(new Set(many.map(({ id }) => id)).size).toBe(1);
				expect((await api.subscribers(list.id).page({})).count).toBe(2);
				await expect(add(list.id, { email: 'nobody' }, { if_exists: 'skip' })).rejects.toMatchObject({
					code: 'invalid',
					fields: { email: expect.anything() },
				});
				await expect(
					add(list.id, { email: 'bob@example.com', meta: { unheard_of: 1 } }, { if_exists: 'update' }),
				).rejects.toMatchObject({ fields: { meta: expect.anything() } });
				await refuses(add(999_999_999, { email: 'nobody' }, { if_exists: 'skip' }), 'not_found');
			});

			it('merge meta, count the uses of a field, and clear a list', async () => {
				const [a, b] = [unique('a_'), unique('b_')];
				const field = await api.fields.create({ variable: a, name: 'A' });
				await api.fields.create({ variable: b, name: 'B' });
				const list = await newList();
				const { id } = await api.subscribers(list.id).create({ email: 'm@example.com', meta: { [a]: '1' } });
				const merged = await ext.subscribers.merge(list.id, id, {
					patch: { name: 'M' },
					set: { [b]: 2 },
					unset: [],
				});
				expect(merged).toMatchObject({ name: 'M', meta: { [a]: '1', [b]: 2 } });
				expect(await ext.fields.countUses(field.id)).toBe(1);
				expect((await ext.subscribers.merge(list.id, id, { patch: {}, set: {}, unset: [a] })).meta).toEqual({
					[b]: 2,
				});
				expect(await ext.subscribers.clear(list.id)).toBe(1);
				expect(await api.lists.get(list.id)).toMatchObject({ overall_subscribers_count: 0 });
			});
		});
	});
}
