// Every command of the service document against a service by another hand, which fails and throttles now and then.
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliResult, cli } from '../support/cli.js';
import { startWitness, type Witness, witnessMissing } from '../support/drf.js';
import { eventually } from '../support/eventually.js';
import { errorOf } from '../support/project.js';

const missing = await witnessMissing();

describe.skipIf(missing !== null)(
	`a Django REST framework deployment, 10 records a page${missing === null ? '' : ` (${missing})`}`,
	() => {
		let witness: Witness;
		let folder: string;

		beforeAll(async () => {
			witness = await startWitness({ pageSize: 10, flaky: true, retryAfter: 0, noChallenge: true });
			folder = await mkdtemp(join(tmpdir(), 'mailctl-witness-'));
		});
		afterAll(() => witness.stop());

		const run = (...argv: string[]): Promise<CliResult> =>
			cli(['--base-url', witness.baseUrl, '--no-input', ...argv], {
				env: { HOME: folder, MAILCTL_TOKEN: witness.token },
			});
		/** The document of a command that ends with 0, or with `code`. */
		const json = async (argv: readonly string[], code = 0): Promise<unknown> => {
			const result = await run(...argv, '-o', 'json');
			expect({ argv, code: result.code, stderr: code === 0 ? '' : result.stderr }).toEqual({
				argv,
				code,
				stderr: code === 0 ? '' : result.stderr,
			});
			return JSON.parse(result.stdout);
		};
		const lines = async (...argv: string[]): Promise<string[]> => {
			const { code, stdout, stderr } = await run(...argv);
			expect({ argv, code, stderr }).toMatchObject({ argv, code: 0 });
			return stdout.split('\n').slice(0, -1);
		};
		const file = async (name: string, content: string) => {
			await writeFile(join(folder, name), content);
			return join(folder, name);
		};
		const refusal = async (...argv: string[]) => {
			const result = await run(...argv, '-o', 'json');
			const { code, details } = errorOf(result);
			return { exit: result.code, code, details };
		};

		it('lists: created, shown page by page, changed, cleared, deleted', async () => {
			for (let at = 1; at <= 12; at += 1)
				expect(await lines('lists', 'create', '--name', `List ${at}`, '--email-reason', 'r', '-q')).toEqual([
					String(at),
				]);
			expect(await lines('lists', 'list', '-o', 'name')).toEqual(
				Array.from({ length: 12 }, (_, at) => `List ${at + 1}`),
			);
			expect(
				await json(['lists', 'get', 'List 12', '--fields', 'id,name,overall_subscribers_count']),
			).toEqual({
				id: 12,
				name: 'List 12',
				overall_subscribers_count: 0,
			});
			expect(await json(['lists', 'update', '12', '--name', 'Twelfth'])).toMatchObject({
				id: 12,
				name: 'Twelfth',
				email_reason: 'r',
			});
			expect(await refusal('lists', 'get', '99')).toMatchObject({ exit: 3 });
			expect(await refusal('lists', 'update', '12', '--name', 'x'.repeat(256))).toMatchObject({
				exit: 5,
				details: [{ path: 'name', message: 'Ensure this field has no more than 255 characters.' }],
			});
			await json(['subscribers', 'create', '-l', '12', '--email', 'a@example.com']);
			await json(['subscribers', 'create', '-l', '12', '--email', 'b@example.com']);
			expect(await json(['lists', 'clear', '12', '--confirm', 'Twelfth'])).toEqual({
				list_id: 12,
				deleted: 2,
			});
			expect(await json(['lists', 'delete', '12', '--confirm', 'Twelfth'])).toEqual({ deleted: [12] });
			expect(await lines('lists', 'list', '-o', 'name')).toHaveLength(11);
		});

		it('fields: created, refused twice, renamed only with consent, deleted', async () => {
			expect(await json(['fields', 'create', '--variable', 'city', '--name', 'City'])).toMatchObject({
				id: 1,
				variable: 'city',
				name: 'City',
			});
			await json(['fields', 'create', '--variable', 'plan', '--name', 'Plan']);
			await json(['fields', 'create', '--variable', 'old', '--name', 'Old']);
			expect(await refusal('fields', 'create', '--variable', 'city', '--name', 'C')).toMatchObject({
				exit: 5,
				details: [{ path: 'variable' }],
			});
			expect(await json(['fields', 'update', 'plan', '--name', 'The plan'])).toMatchObject({
				variable: 'plan',
				name: 'The plan',
			});
			// How many subscribers hold it cannot be counted there, so it may be many.
			expect(await refusal('fields', 'update', 'old', '--variable', 'older')).toMatchObject({ exit: 2 });
			expect(await refusal('fields', 'delete', 'old')).toMatchObject({ exit: 2 });
			expect(await json(['fields', 'delete', 'old', '--confirm', 'old'])).toEqual({ deleted: [3] });
			expect(await lines('fields', 'list', '--fields', 'variable')).toEqual(['city', 'plan']);
		});

		it('subscribers: created, found, changed with meta merged, switched, deleted', async () => {
			const inList = ['-l', 'List 1'];
			const ann = ['ann@example.com', ...inList];
			expect(
				await json(['subscribers', 'create', ...inList, '--email', 'ann@example.com', '--meta', 'city=Oslo']),
			).toMatchObject({ email: 'ann@example.com', name: '', is_active: true, meta: { city: 'Oslo' } });
			expect(await refusal('subscribers', 'create', ...inList, '--email', 'ann@example.com')).toMatchObject({
				exit: 5,
			});
			expect(await refusal('subscribers', 'create', ...inList, '--email', 'nobody')).toMatchObject({
				exit: 5,
				details: [{ path: 'email', message: 'Enter a valid email address: it has no @ (nobody)' }],
			});
			expect(
				await json(['subscribers', 'create', ...inList, '--email', 'ann@example.com', '--if-exists', 'skip']),
			).toMatchObject({ name: '' });
			expect(
				await json(['subscribers', 'update', ...ann, '--meta', 'plan=pro', '--name', 'Ann']),
			).toMatchObject({
				name: 'Ann',
				meta: { city: 'Oslo', plan: 'pro' },
			});
			expect(await json(['subscribers', 'update', ...ann, '--unset-meta', 'city'])).toMatchObject({
				meta: { plan: 'pro' },
			});
			expect(await refusal('subscribers', 'update', ...ann, '--meta', 'fax=1')).toMatchObject({
				exit: 5,
				details: [{ path: 'meta', message: 'There is no variable "fax".' }],
			});
			await json(['subscribers', 'create', '-l', '2', '--email', 'ann@example.com']);
			const found = (await json(['subscribers', 'find', 'ann@example.com'])) as { list_id: number }[];
			expect(found.map(({ list_id }) => list_id)).toEqual([1, 2]);
			expect(await json(['subscribers', 'deactivate', ...ann])).toMatchObject([{ is_active: false }]);
			expect(await lines('subscribers', 'list', ...inList, '--inactive', '-o', 'name')).toEqual([
				'ann@example.com',
			]);
			expect(await lines('subscribers', 'list', ...inList, '--active', '-o', 'name')).toEqual([]);
			expect(await json(['subscribers', 'activate', ...ann])).toMatchObject([{ is_active: true }]);
			expect(await json(['subscribers', 'get', ...ann])).toMatchObject({ name: 'Ann', is_active: true });
			expect(await refusal('subscribers', 'get', 'nobody@example.com', ...inList)).toMatchObject({ exit: 3 });
			const { id } = (await json(['subscribers', 'get', ...ann])) as { id: number };
			expect(await json(['subscribers', 'delete', ...ann, '-y'])).toEqual({ deleted: [id] });
			expect(await refusal('subscribers', 'get', ...ann)).toMatchObject({ exit: 3 });
		});

		it('an import of 150 rows, each counted once, rejects in a file; again: everything unchanged', async () => {
			const rows = Array.from(
				{ length: 140 },
				(_, at) => `p${at}@example.com,P${at},${at % 2 ? 'Oslo' : ''}`,
			);
			const bad = ['nobody,N,', 'x@,N,', `long@example.com,${'x'.repeat(256)},`, 'a,b,c,d', ',N,'];
			const twice = ['P1@example.com,Again,', 'p2@example.com,,', 'p3@example.com,,', 'p4@example.com,,'];
			const path = await file(
				'people.csv',
				['email,name,city', ...rows, ...bad, ...twice, 'last@example.com,,'].join('\n'),
			);
			const words = ['subscribers', 'import', path, '-l', 'List 3'];
			expect(await json([...words, '-n'])).toMatchObject({ dry_run: true, read: 150 });
			expect(await lines('subscribers', 'list', '-l', 'List 3', '-o', 'name')).toEqual([]);
			expect(await json(words, 9)).toEqual({
				read: 150,
				created: 141,
				updated: 0,
				unchanged: 0,
				duplicate: 4,
				rejected: 5,
			});
			const rejects = (await readFile(`${path}.rejects.csv`, 'utf8')).split('\n');
			expect(rejects.map((line) => line.replace(/x{256}/, 'x…'))).toEqual([
				'email,name,city,_line,_code,_error',
				'nobody,N,,142,invalid,email: Enter a valid email address: it has no @',
				'x@,N,,143,invalid,email: Enter a valid email address: nothing stands after @',
				'long@example.com,x…,,144,max_length,name: Ensure this field has no more than 255 characters.',
				'a,b,"c,d",145,too_many_cells,4 cells where the header has 3',
				',N,,146,blank,email: This field may not be blank.',
				'P1@example.com,Again,,147,duplicate,email: P1@example.com stands in this import already.',
				'p2@example.com,,,148,duplicate,email: p2@example.com stands in this import already.',
				'p3@example.com,,,149,duplicate,email: p3@example.com stands in this import already.',
				'p4@example.com,,,150,duplicate,email: p4@example.com stands in this import already.',
				'',
			]);
			expect(await json([...words, '--resume'], 9)).toMatchObject({ read: 150, unchanged: 141, rejected: 5 });
			// An import that goes on writes no reject twice.
			expect((await readFile(`${path}.rejects.csv`, 'utf8')).split('\n')).toEqual(rejects);
			expect(await json(['lists', 'get', 'List 3'])).toMatchObject({ overall_subscribers_count: 141 });
		});

		it('an import changes who is there, keeps what is not given, and activates nobody by itself', async () => {
			const inList = ['-l', 'List 4'];
			for (const argv of [
				['--email', 'ann@example.com', '--meta', 'city=Oslo', '--meta', 'plan=pro', '--name', 'Ann'],
				['--email', 'bob@example.com', '--inactive'],
			])
				await json(['subscribers', 'create', ...inList, ...argv]);
			const path = await file(
				'more.csv',
				'email,name,city,is_active\nann@example.com,,Rome,\nbob@example.com,Bob,,yes\nnew@example.com,,,no\n',
			);
			expect(await json(['subscribers', 'import', path, ...inList])).toMatchObject({
				created: 1,
				updated: 2,
			});
			const shown = ['subscribers', 'list', ...inList, '--fields', 'email,name,is_active,meta'];
			expect(await json(shown)).toEqual([
				{ email: 'ann@example.com', name: 'Ann', is_active: true, meta: { city: 'Rome', plan: 'pro' } },
				{ email: 'bob@example.com', name: 'Bob', is_active: false, meta: {} },
				{ email: 'new@example.com', name: '', is_active: false, meta: {} },
			]);
			expect(await json(['subscribers', 'import', path, ...inList, '--reactivate'])).toMatchObject({
				updated: 1,
				unchanged: 2,
			});
			expect(await refusal('subscribers', 'import', path, '-l', '99')).toMatchObject({ exit: 3 });
		});

		it('webhooks: created, shown without the password, changed, tested, deleted', async () => {
			const password = await file('password.txt', 'secret\n');
			const login = ['--login', 'me', '--password-file', password];
			expect(
				await json(['webhooks', 'create', '--url', 'https://example.com/in', '--type', 'OPENED', ...login]),
			).toMatchObject({ id: 1, type: 'OPENED', is_auth_enabled: true, login: 'me', password: null });
			expect(await json(['webhooks', 'get', '1', '--show-secrets'])).toMatchObject({ password: 'secret' });
			expect(await json(['webhooks', 'update', '1', '--type', 'HARDBOUNCED'])).toMatchObject({
				type: 'HARDBOUNCED',
				login: 'me',
			});
			expect(await json(['webhooks', 'get', '1', '--show-secrets'])).toMatchObject({ password: 'secret' });
			expect(await refusal('webhooks', 'create', '--url', 'nothing', '--type', 'OPENED')).toMatchObject({
				exit: 5,
				details: [{ path: 'url', message: 'Enter a valid URL. (nothing)' }],
			});
			// The client never repeats a test, and this service refuses some requests.
			await eventually(async () =>
				expect(await json(['webhooks', 'test', '1'])).toMatchObject({ result: true }),
			);
			await eventually(async () => expect(await refusal('webhooks', 'test', '9')).toMatchObject({ exit: 3 }));
			expect(await json(['webhooks', 'list'])).toMatchObject([{ id: 1 }]);
			expect(await json(['webhooks', 'delete', '1', '-y'])).toEqual({ deleted: [1] });
		});

		it('send: one call for all recipients, refused whole when something is wrong', async () => {
			const mail = ['send', '--from', witness.sender, '--subject', 'Hello', '--text', 'Hi #name#'];
			expect(await json([...mail, '--to', 'ann@example.com', '--context', 'name=Ann', '--tag', 't'])).toEqual(
				{
					messages: [{ to: 'ann@example.com', id: expect.stringMatching(/^[0-9a-f-]{36}$/) }],
					result: true,
					messages_created: 1,
				},
			);
			expect(
				await json([...mail, '--to', 'bob@example.com', '--to', 'carl@example.com', '--header', 'X-Id: 1']),
			).toMatchObject({
				messages: [{ to: 'bob@example.com' }, { to: 'carl@example.com' }],
				messages_created: 2,
			});
			expect(await refusal(...mail, '--to', 'nobody')).toMatchObject({
				exit: 5,
				details: [{ path: 'to.0', message: 'Enter a valid email address: it has no @ (nobody)' }],
			});
			const other = ['send', '--from', 'other@example.com', '--subject', 'S', '--text', 'T'];
			expect(await refusal(...other, '--to', 'ann@example.com')).toMatchObject({
				exit: 5,
				details: [{ path: 'from', message: 'This sender address is not verified. (other@example.com)' }],
			});
		});

		it('report: the days the service answers, which are eight by default there', async () => {
			const whole = (await json(['report'])) as { total: { sent: number }; data: unknown[] };
			expect({ sent: whole.total.sent, days: whole.data.length }).toEqual({ sent: 3, days: 8 });
			const week = (await json(['report', '--last', '7d'])) as { total: { sent: number }; data: unknown[] };
			expect({ sent: week.total.sent, days: week.data.length }).toEqual({ sent: 3, days: 7 });
			expect((await run('report', '--fail-if', 'sent>2')).code).toBe(10);
			expect((await run('report', '--campaign', 'x', '-o', 'json')).code).toBe(2);
		});

		it('a wrong token is exit 4, although it is answered with 403 there', async () => {
			const result = await cli(['--base-url', witness.baseUrl, 'lists', 'list'], {
				env: { HOME: folder, MAILCTL_TOKEN: 'wrong' },
			});
			expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 4, stdout: '' });
		});
	},
);
