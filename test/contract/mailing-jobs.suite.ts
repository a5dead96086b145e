/** What a job needs of mailings besides recipients: its name, its rows' results, and send requests as rows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MailingSpec } from '../../src/api/capabilities.js';
import { need } from '../../src/api/capabilities.js';
import type { RequestRow } from '../../src/api/mailings.js';
import type { Subject } from './api.suite.js';

export function mailingJobsSuite(name: string, open: () => Promise<Subject>): void {
	describe(`mailings as jobs on ${name}`, () => {
		let subject: Subject;
		beforeAll(async () => {
			subject = await open();
		});
		afterAll(() => subject.close());

		let counter = 0;
		const unique = (word: string) => `${word}${++counter}`;
		const mailings = () => need(subject.api, 'mailings');
		const spec = (more: Partial<MailingSpec> = {}): MailingSpec => ({
			from: subject.sender,
			type: 'TRANSACTIONAL',
			subject: 's',
			text_body: 'Hi #name#',
			...more,
		});

		it('are found by their name, without their bodies, and listed in the order they were opened', async () => {
			const job = unique('job');
			const source = { kind: 'csv', path: '/a/people.csv', sha256: 'ab' };
			const { id } = await (await mailings()).open(job, spec({ source }));
			await (await mailings()).put(id, { first: 0, recipients: [{ to: 'ann@example.com' }] });
			const { results } = await (await mailings()).page({ key: job });
			expect(results).toEqual([
				{
					id,
					key: job,
					state: 'staged',
					counts: { staged: 1, suppressed: 0, rejected: 0 },
					position: 1,
					is_complete: false,
					type: 'TRANSACTIONAL',
					subject: 's',
					list_id: null,
					source,
					requests: false,
					date_created: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
				},
			]);
			expect((await (await mailings()).page({ key: `${job}x` })).results).toEqual([]);
			const next = unique('job');
			await (await mailings()).open(next, spec());
			const all = (await (await mailings()).page({ page_size: 1_000 })).results.map(({ key }) => key);
			expect(all.indexOf(next)).toBe(all.indexOf(job) + 1);
		});

		it('are the same mailing when their file was moved, and another one when it is another file', async () => {
			const job = unique('job');
			const from = (path: string, sha256: string) => spec({ source: { path, sha256 } });
			const { id } = await (await mailings()).open(job, from('/a', 'ab'));
			expect((await (await mailings()).open(job, from('/b', 'ab'))).id).toBe(id);
			await expect((await mailings()).open(job, from('/a', 'cd'))).rejects.toMatchObject({
				code: 'conflict',
			});
		});

		it('tell what became of each row, in order, with its line', async () => {
			const { id } = await (await mailings()).open(unique('job'), spec());
			const recipients = [
				{ to: 'b@example.com', line: 2 },
				{ to: 'nobody', line: 3 },
				{ to: 'B@example.com', line: 4 },
				{ to: 'x', line: 5, refused: { code: 'too_few_cells', error: 'few' } },
				{ to: 'a@example.com', line: 9 },
			];
			const ack = await (await mailings()).put(id, { first: 0, recipients });
			expect(ack.counts).toEqual({ staged: 2, suppressed: 0, rejected: 3 });
			const staged = {
				id: expect.stringMatching(/^[0-9a-f-]{36}$/),
				state: 'staged',
				code: null,
				text: null,
			};
			const whole = await (await mailings()).results(id, {});
			expect(whole).toEqual({
				results: [
					{ line: 2, to: 'b@example.com', ...staged, attempts: 0 },
					rejected(3, 'nobody', 'invalid', 'to: Enter a valid email address.'),
					rejected(4, 'B@example.com', 'duplicate', 'B@example.com is in this mailing already.'),
					rejected(5, 'x', 'too_few_cells', 'few'),
					{ line: 9, to: 'a@example.com', ...staged, attempts: 0 },
				],
				next: null,
			});
			await (await mailings()).release(id, { expect_count: 2 });
			const first = await (await mailings()).results(id, { limit: 3 });
			expect(first.results.map(({ state }) => state)).toEqual(['queued', 'rejected', 'rejected']);
			expect(first.next).not.toBeNull();
			const rest = await (await mailings()).results(id, { after: first.next ?? 0 });
			expect(rest.results.map(({ line }) => line)).toEqual([5, 9]);
			const findings = await (await mailings()).results(id, { only: 'findings' });
			expect(findings.results.map(({ line }) => line)).toEqual([3, 4, 5]);
			await expect(
				(await mailings()).results('00000000-0000-4000-8000-000000000000', {}),
			).rejects.toMatchObject({ code: 'not_found' });
		});

		it('are complete when they are said to be, at the right count alone, and take no row then', async () => {
			const { id } = await (await mailings()).open(unique('job'), spec());
			await (await mailings()).put(id, { first: 0, recipients: [{ to: 'ann@example.com' }] });
			await expect((await mailings()).complete(id, { position: 2 })).rejects.toMatchObject({
				code: 'conflict',
			});
			await (await mailings()).complete(id, { position: 1 });
			await (await mailings()).complete(id, { position: 1 });
			await expect(
				(await mailings()).put(id, { first: 1, recipients: [{ to: 'bob@example.com' }] }),
			).rejects.toMatchObject({ code: 'conflict' });
			await (await mailings()).release(id, { expect_count: 1 });
		});

		it('forget the rows of what was dropped', async () => {
			const { id } = await (await mailings()).open(unique('job'), spec());
			await (await mailings()).put(id, { first: 0, recipients: [{ to: 'ann@example.com' }, { to: 'no' }] });
			await (await mailings()).cancel(id);
			expect(await (await mailings()).results(id, {})).toEqual({ results: [], next: null });
		});

		describe('of send requests', () => {
			const opened = async () => {
				const job = unique('job');
				const { id } = await (await mailings()).open(job, { requests: true });
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

			it('send each as it is: its content, its context, whoever it is to', async () => {
				const { id, job } = await opened();
				const requests: RequestRow[] = [
					{ line: 1, request: request(['a@example.com', 'b@example.com', 'A@example.com']) },
					{ line: 2, request: request(['a@example.com'], { context: { x: '2' } }) },
				];
				const ack = await (await mailings()).putRequests(id, { first: 0, requests });
				expect(ack).toEqual({
					position: 2,
					counts: { staged: 3, suppressed: 0, rejected: 0 },
					rejects: [],
				});
				expect(await (await mailings()).putRequests(id, { first: 0, requests })).toEqual(ack);
				expect((await (await mailings()).page({ key: job })).results[0]).toMatchObject({
					requests: true,
					subject: null,
				});
				await (await mailings()).release(id, { expect_count: 3 });
				const messages = await need(subject.api, 'messages');
				expect((await messages.page({ campaign_unique_id: id })).results.map(({ to }) => to)).toEqual([
					'a@example.com',
					'b@example.com',
					'a@example.com',
				]);
			});

			it('reject what a send call would refuse, and the same message to the same address', async () => {
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
				await (await mailings()).putRequests(id, { first: 0, requests });
				const { results } = await (await mailings()).results(id, {});
				expect(results.map(({ line, state, code, text }) => [line, state, code, text])).toEqual([
					[1, 'rejected', 'empty', 'to: This list may not be empty.'],
					[2, 'rejected', 'invalid', 'from: Sender address is not verified.'],
					[3, 'rejected', 'does_not_exist', 'template_unique_id: Template not found.'],
					[
						4,
						'rejected',
						'invalid',
						'campaign_unique_id: Requests of one job are one mailing: leave it out.',
					],
					[5, 'rejected', 'missing_variable', 'ann@example.com: no value for #x#.'],
					[6, 'staged', null, null],
					[7, 'rejected', 'duplicate', 'ann@example.com is in this mailing already.'],
					[9, 'rejected', 'invalid', expect.stringContaining('Invalid data')],
					[10, 'rejected', 'bad_json', 'no JSON'],
				]);
			});

			it('and recipients do not mix, nor do lists', async () => {
				const { id } = await opened();
				await expect(
					(await mailings()).put(id, { first: 0, recipients: [{ to: 'ann@example.com' }] }),
				).rejects.toMatchObject({ code: 'conflict' });
				const other = await (await mailings()).open(unique('job'), spec());
				await expect(
					(await mailings()).putRequests(other.id, {
						first: 0,
						requests: [{ request: request(['ann@example.com']) }],
					}),
				).rejects.toMatchObject({ code: 'conflict' });
			});
		});
	});
}

function rejected(line: number, to: string, code: string, text: string) {
	return { line, to, id: null, state: 'rejected', code, text, attempts: 0 };
}
