/** The contract of campaigns, without their audiences: names, results of rows, and send requests as rows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CampaignSpec, RequestRow } from '../../src/api/campaigns.js';
import type { Extensions } from '../../src/api/capabilities.js';
import { refuses } from '../support/refuses.js';
import type { Subject } from './api.suite.js';

const none = {
	...{ created: 0, sent: 0, opened: 0, machine_opened: 0, clicked: 0, machine_clicked: 0 },
	...{ unsubscribed: 0, softbounced: 0, hardbounced: 0 },
};

export function campaignJobsSuite(name: string, open: () => Promise<Subject>): void {
	describe(`campaigns as jobs on ${name}`, () => {
		let subject: Subject;
		let ext: Extensions;
		beforeAll(async () => {
			subject = await open();
			ext = (await subject.api.capabilities()).ext as Extensions;
		});
		afterAll(() => subject.close());

		let counter = 0;
		const unique = (word: string) => `${word}${++counter}`;
		const spec = (more: Partial<CampaignSpec> = {}): CampaignSpec => ({
			from: subject.sender,
			type: 'TRANSACTIONAL',
			subject: 's',
			text_body: 'Hi #name#',
			...more,
		});

		it('are found by name, are listed in order of creation, and show no bodies', async () => {
			const job = unique('job');
			const source = { kind: 'csv', path: '/a/people.csv', sha256: 'ab' };
			const { id } = await ext.campaigns.open(job, spec({ source }));
			await ext.campaigns.put(id, { first: 0, recipients: [{ to: 'ann@example.com' }] });
			const { results } = await ext.campaigns.page({ key: job });
			expect(results).toEqual([
				{
					id,
					key: job,
					state: 'staged',
					is_finished: false,
					counts: { staged: 1, suppressed: 0, rejected: 0 },
					position: 1,
					is_complete: false,
					type: 'TRANSACTIONAL',
					subject: 's',
					from: subject.sender,
					list_id: null,
					source,
					requests: false,
					date_created: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
					date_released: null,
					figures: none,
				},
			]);
			expect((await ext.campaigns.page({ key: `${job}x` })).results).toEqual([]);
			const next = unique('job');
			await ext.campaigns.open(next, spec());
			const all = (await ext.campaigns.page({ page_size: 1_000 })).results.map(({ key }) => key);
			expect(all.indexOf(next)).toBe(all.indexOf(job) + 1);
		});

		it('can be reopened with any notation of their UUID', async () => {
			const key = unique('job');
			const campaign_unique_id = `0000000000004000800000000000${String(1_000 + counter)}`;
			const { id } = await ext.campaigns.open(key, spec({ campaign_unique_id }));
			for (const form of [id, id.toUpperCase(), `urn:uuid:${id}`])
				expect(await ext.campaigns.open(key, spec({ campaign_unique_id: form }))).toMatchObject({ id });
			expect(await ext.campaigns.open(key, spec())).toMatchObject({ id });
			for (const other of ['00000000-0000-4000-8000-000000000000', 7 as never])
				await refuses(ext.campaigns.open(key, spec({ campaign_unique_id: other })), 'conflict');
		});

		it('are rejected if a campaign with the same mail was released recently', async () => {
			const mine = spec({ subject: unique('again') });
			const { id, key } = await ext.campaigns.open(null, mine);
			await ext.campaigns.put(id, { first: 0, recipients: [{ to: 'ann@example.com' }] });
			await ext.campaigns.complete(id, { position: 1 });
			await ext.campaigns.release(id, { expect_count: 1 });
			for (const name of [null, unique('job')])
				await expect(ext.campaigns.open(name, mine, { unless: 'sent' })).rejects.toMatchObject({
					code: 'conflict',
					fields: { sent: [{ message: key }] },
				});
			await expect(ext.campaigns.check(null, mine, { unless: 'sent' })).rejects.toMatchObject({
				fields: { sent: [{ message: key }] },
			});
			const checked = unique('job');
			await ext.campaigns.check(checked, mine);
			expect((await ext.campaigns.page({ key: checked })).results).toEqual([]);
			expect((await ext.campaigns.open(key, mine, { unless: 'sent' })).id).toBe(id);
			expect((await ext.campaigns.open(null, mine)).key).not.toBe(key);
		});

		it('cannot repeat a mail while an earlier repetition is unfinished', async () => {
			const [first, second] = [unique('job'), unique('job')];
			const mine = spec({ subject: unique('repeated') });
			const unless = { unless: 'repeating' } as const;
			await ext.campaigns.open(first, mine);
			const { id } = await ext.campaigns.open(second, mine, unless);
			const again = [
				ext.campaigns.open(null, mine, unless),
				ext.campaigns.check(unique('job'), mine, unless),
				ext.campaigns.open(null, mine, { unless: 'repeated' }),
			];
			for (const refused of await Promise.allSettled(again))
				expect(refused).toMatchObject({
					reason: { code: 'conflict', fields: { sent: [{ message: second }] } },
				});
			await ext.campaigns.cancel(id);
			expect((await ext.campaigns.open(second, mine, unless)).id).not.toBe(id);
		});

		it('can be reopened if their file was moved, but not if its content differs', async () => {
			const job = unique('job');
			const from = (path: string, sha256: string) => spec({ source: { path, sha256 } });
			const { id } = await ext.campaigns.open(job, from('/a', 'ab'));
			expect((await ext.campaigns.open(job, from('/b', 'ab'))).id).toBe(id);
			await refuses(ext.campaigns.open(job, from('/a', 'cd')), 'conflict');
		});

		it('report the outcome of each row, in order and with its line number', async () => {
			const { id } = await ext.campaigns.open(unique('job'), spec());
			const recipients = [
				{ to: 'b@example.com', line: 2 },
				{ to: 'nobody', line: 3 },
				{ to: 'B@example.com', line: 4 },
				{ to: 'x', line: 5, refused: { code: 'too_few_cells', error: 'few' } },
				{ to: 'a@example.com', line: 9 },
			];
			const ack = await ext.campaigns.put(id, { first: 0, recipients });
			expect(ack.counts).toEqual({ staged: 2, suppressed: 0, rejected: 3 });
			const staged = {
				id: expect.stringMatching(/^[0-9a-f-]{36}$/),
				state: 'staged',
				code: null,
				text: null,
			};
			const whole = await ext.campaigns.results(id, {});
			expect(whole).toEqual({
				results: [
					{ line: 2, to: 'b@example.com', ...staged, attempts: 0 },
					rejected(3, 'nobody', 'invalid', 'to: Enter a valid email address.'),
					rejected(4, 'B@example.com', 'duplicate', 'B@example.com is in this campaign already.'),
					rejected(5, 'x', 'too_few_cells', 'few'),
					{ line: 9, to: 'a@example.com', ...staged, attempts: 0 },
				],
				next: null,
			});
			await ext.campaigns.release(id, { expect_count: 2 });
			const first = await ext.campaigns.results(id, { limit: 3 });
			expect(first.results.map(({ state }) => state)).toEqual(['queued', 'rejected', 'rejected']);
			expect(first.next).not.toBeNull();
			const rest = await ext.campaigns.results(id, { after: first.next ?? 0 });
			expect(rest.results.map(({ line }) => line)).toEqual([5, 9]);
			const findings = await ext.campaigns.results(id, { only: 'findings' });
			expect(findings.results.map(({ line }) => line)).toEqual([3, 4, 5]);
			await refuses(ext.campaigns.results('00000000-0000-4000-8000-000000000000', {}), 'not_found');
		});

		it('lose their rows when they are canceled before their release', async () => {
			const { id } = await ext.campaigns.open(unique('job'), spec());
			await ext.campaigns.put(id, { first: 0, recipients: [{ to: 'ann@example.com' }, { to: 'no' }] });
			await ext.campaigns.cancel(id);
			expect(await ext.campaigns.results(id, {})).toEqual({ results: [], next: null });
		});

		it('can be deleted as a whole, but only before their release', async () => {
			const job = unique('job');
			const gone = unique('gone');
			await ext.suppressions.put([{ email: `${gone}@example.com`, reason: 'HARDBOUNCED' }]);
			const recipients = [{ to: 'ann@example.com' }, { to: 'no' }, { to: `${gone}@example.com` }];
			const { id } = await ext.campaigns.open(job, spec());
			await ext.campaigns.put(id, { first: 0, recipients });
			await ext.campaigns.cancel(id, { forget: true });
			await refuses(ext.campaigns.status(id), 'not_found');
			expect((await ext.campaigns.page({ key: job })).results).toEqual([]);
			await refuses(ext.campaigns.cancel(id, { forget: true }), 'not_found');
			const { id: released } = await ext.campaigns.open(job, spec());
			await ext.campaigns.put(released, { first: 0, recipients: [{ to: 'ann@example.com' }] });
			await ext.campaigns.complete(released, { position: 1 });
			await ext.campaigns.release(released, { expect_count: 1 });
			await expect(ext.campaigns.cancel(released, { forget: true })).rejects.toMatchObject({
				...{ code: 'conflict', message: 'This campaign was released; nothing was canceled.' },
			});
			expect(await ext.campaigns.status(released)).toMatchObject({
				...{ state: 'released', messages: { queued: 1 } },
			});
			await ext.campaigns.cancel(released);
			await refuses(ext.campaigns.cancel(released, { forget: true }), 'conflict');
			expect(await ext.campaigns.status(released)).toMatchObject({ messages: { canceled: 1 } });
		});

		describe('made of send calls', () => {
			const sendBulk = async (to: readonly string[], more: object = {}) => {
				let id = '';
				const request = { from: subject.sender, type: 'BULK', to, subject: 'S', text_body: 'T', ...more };
				await subject.api.send(request as Parameters<typeof subject.api.send>[0], {
					onAccepted: ({ campaign }) => {
						id = campaign ?? '';
					},
				});
				return id;
			};

			it('have their UUID as their name, and are not listed with other campaigns', async () => {
				const gone = `${unique('gone')}@example.com`;
				await ext.suppressions.put([{ email: gone, reason: 'UNSUBSCRIBED' }]);
				const id = await sendBulk(['a@example.com', gone, 'b@example.com']);
				const { results } = await ext.campaigns.page({ id });
				expect(results).toEqual([
					{
						...{ id, key: id, state: 'released', is_finished: false },
						counts: { staged: 2, suppressed: 1, rejected: 0 },
						...{ position: 0, is_complete: true, type: 'BULK', subject: 'S', list_id: null, source: null },
						from: subject.sender,
						...{ requests: false, date_created: expect.stringMatching(/^\d{4}-/) },
						...{ date_released: results[0]?.date_created, figures: { ...none, created: 2 } },
					},
				]);
				expect((await ext.campaigns.page({ key: id })).results).toEqual([]);
				const all = (await ext.campaigns.page({ page_size: 1_000 })).results;
				expect(all.map((one) => one.id)).not.toContain(id);
				expect(await ext.campaigns.status(id)).toEqual({
					...{ id, key: id, state: 'released', is_finished: false },
					...{ messages: { queued: 2 }, counts: { staged: 2, suppressed: 1, rejected: 0 } },
				});
				const told = await ext.campaigns.results(id, {});
				expect(told.results.map(({ to, state }) => [to, state])).toEqual([
					['a@example.com', 'queued'],
					['b@example.com', 'queued'],
				]);
				const first = await ext.campaigns.results(id, { limit: 1 });
				expect(await ext.campaigns.results(id, { after: first.next ?? 0 })).toEqual({
					...{ results: told.results.slice(1), next: null },
				});
				expect(await ext.audiences.leftOut(id, {})).toEqual({
					results: [{ to: gone, list_id: null, code: 'suppressed', detail: 'UNSUBSCRIBED' }],
					next: null,
				});
				const person = await ext.people.get(gone);
				expect(person.left_out).toMatchObject([{ campaign: id, key: id, code: 'suppressed' }]);
			});

			it('can be canceled, but reject new recipients and a second release', async () => {
				const id = await sendBulk(['a@example.com']);
				const released = {
					code: 'conflict',
					message:
						'A send call created and released this campaign: it can be canceled, but takes no more recipients.',
				};
				const { id: list } = await subject.api.lists.create({ name: unique('list'), email_reason: 'r' });
				const recipients = [{ to: 'b@example.com' }];
				for (const change of [
					async () => ext.campaigns.put(id, { first: 0, recipients }),
					async () => ext.campaigns.complete(id, { position: 0 }),
					async () => ext.campaigns.addList(id, list),
					async () => ext.campaigns.release(id, { expect_count: 1 }),
				])
					await expect(change()).rejects.toMatchObject(released);
				await expect(ext.campaigns.cancel(id, { forget: true })).rejects.toMatchObject({
					...{ code: 'conflict', message: 'This campaign was released; nothing was canceled.' },
				});
				await ext.campaigns.cancel(id);
				expect(await ext.campaigns.status(id)).toMatchObject({
					...{ state: 'released', is_finished: true, messages: { canceled: 1 } },
				});
			});
		});

		describe('with send requests as rows', () => {
			const opened = async () => {
				const job = unique('job');
				const { id } = await ext.campaigns.open(job, { requests: true });
				return { job, id };
			};
			const request = (to: readonly string[], more: object = {}) => ({
				from: subject.sender,
				to,
				subject: 'S',
				text_body: 'Hi #x#',
				context: { x: '1' },
				...more,
			});

			it('create the messages of each request, even several to one address', async () => {
				const { id, job } = await opened();
				const requests: RequestRow[] = [
					{ line: 1, request: request(['a@example.com', 'b@example.com', 'A@example.com']) },
					{ line: 2, request: request(['a@example.com'], { context: { x: '2' } }) },
				];
				const ack = await ext.campaigns.putRequests(id, { first: 0, requests });
				expect(ack).toEqual({ position: 2, counts: { staged: 3, suppressed: 0, rejected: 0 }, rejects: [] });
				expect(await ext.campaigns.putRequests(id, { first: 0, requests })).toEqual(ack);
				expect((await ext.campaigns.page({ key: job })).results[0]).toMatchObject({
					requests: true,
					subject: null,
				});
				await ext.campaigns.release(id, { expect_count: 3 });
				expect((await ext.messages.page({ campaign_unique_id: id })).results.map(({ to }) => to)).toEqual([
					'a@example.com',
					'b@example.com',
					'a@example.com',
				]);
			});

			it('reject invalid requests and a repeated mail to the same address, each with a reason', async () => {
				const { id } = await opened();
				const rows = [
					{ to: [] },
					{ from: 'evil@example.org' },
					{ template_unique_id: '00000000-0000-4000-8000-000000000000', text_body: undefined },
					{ campaign_unique_id: '00000000-0000-4000-8000-000000000000' },
					{ context: {} },
					{},
					{},
				];
				const requests: RequestRow[] = rows.map((more, at) => ({
					line: at + 1,
					request: request(['ann@example.com'], more),
				}));
				requests.push(
					{ line: 9, request: 'text' },
					{ line: 10, request: null, refused: { code: 'bad_json', error: 'no JSON' } },
				);
				await ext.campaigns.putRequests(id, { first: 0, requests });
				const { results } = await ext.campaigns.results(id, {});
				expect(results.map(({ line, state, code, text }) => [line, state, code, text])).toEqual([
					[1, 'rejected', 'empty', 'to: This list may not be empty.'],
					[2, 'rejected', 'not_verified', 'from: Sender address is not verified.'],
					[3, 'rejected', 'does_not_exist', 'template_unique_id: Template not found.'],
					[
						4,
						'rejected',
						'invalid',
						'campaign_unique_id: All requests of a batch belong to one campaign: leave this field out.',
					],
					[5, 'rejected', 'missing_variable', 'ann@example.com: no value for #x#.'],
					[6, 'staged', null, null],
					[7, 'rejected', 'duplicate', 'ann@example.com is in this campaign already.'],
					[9, 'rejected', 'invalid', expect.stringContaining('Invalid data')],
					[10, 'rejected', 'bad_json', 'no JSON'],
				]);
			});

			it('reject plain recipients, while other campaigns reject send requests', async () => {
				const { id } = await opened();
				await refuses(
					ext.campaigns.put(id, { first: 0, recipients: [{ to: 'ann@example.com' }] }),
					'conflict',
				);
				const other = await ext.campaigns.open(unique('job'), spec());
				await refuses(
					ext.campaigns.putRequests(other.id, {
						first: 0,
						requests: [{ request: request(['ann@example.com']) }],
					}),
					'conflict',
				);
			});
		});
	});
}

function rejected(line: number, to: string, code: string, text: string) {
	return { line, to, id: null, state: 'rejected', code, text, attempts: 0 };
}
