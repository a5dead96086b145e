import { beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../support/project.js';

const list = ['-l', 'Readers'];

describe('mailctl subscribers', () => {
	let project: Project;
	const ann = {
		...{ id: 1, list_id: 1, email: 'ann@example.com', name: 'Ann', is_active: true, disable_reason: null },
		...{ is_email_verified: false, meta: { city: 'Oslo' }, source: 'API', opt_in_signed: null },
		date_created: '2026-11-01T10:00:00.000000',
	};

	beforeEach(async () => {
		project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		for (const variable of ['city', 'plan'])
			await project.json(['fields', 'create', '--variable', variable, '--name', variable]);
		await project.json([
			...['subscribers', 'create', ...list, '--email', 'ann@example.com', '--name', 'Ann'],
			...['--meta', 'city=Oslo', '--now', '2026-11-01T10:00:00Z'],
		]);
	});

	const add = (email: string, ...more: string[]) =>
		project.json(['subscribers', 'create', ...list, '--email', email, ...more]);
	const metaOf = async (who: string) =>
		((await project.json(['subscribers', 'get', who, ...list])) as { meta: unknown }).meta;
	const emailsOf = async (...words: string[]) =>
		((await project.json(['subscribers', 'list', ...list, ...words])) as { email: string }[]).map(
			({ email }) => email,
		);

	it('shows a subscriber’s API record for an id, or for an address in any letter case', async () => {
		expect(await project.json(['subscribers', 'list', ...list])).toEqual([ann]);
		expect(await project.json(['subscribers', 'get', '1', ...list])).toEqual(ann);
		expect(await project.json(['subscribers', 'get', 'ANN@Example.COM', '-l', '1'])).toEqual(ann);
		expect((await project.run(['subscribers', 'list'], { env: { MAILCTL_LIST: 'Readers' } })).stdout).toBe(
			'1\tann@example.com\tAnn\ttrue\t\n',
		);
	});

	it('finds a person’s subscriptions in all lists', async () => {
		await project.json(['lists', 'create', '--name', 'Other', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', 'Other', '--email', 'Ann@example.com']);
		await project.json(['subscribers', 'create', '-l', 'Other', '--email', 'bann@example.com']);
		const found = (await project.json(['subscribers', 'find', 'ann@EXAMPLE.com'])) as { list_id: number }[];
		expect(found.map(({ list_id }) => list_id)).toEqual([1, 2]);
		expect(await project.json(['subscribers', 'find', 'nobody@example.com'])).toEqual([]);
		const count = ((await project.json(['lists', 'list'])) as unknown[]).length;
		const where = `mailctl searched ${count} ${count === 1 ? 'list' : 'lists'}\n`;
		expect(await project.run(['subscribers', 'find', 'nobody@example.com'])).toEqual({
			code: 0,
			stdout: '',
			stderr: `no subscriber has the address nobody@example.com: ${where}`,
		});
	});

	describe('list', () => {
		beforeEach(async () => {
			await add('x_y@example.com', '--meta', 'city=Oslo');
			await add('xay@example.com', '--inactive');
			await add('100%@example.com', '--meta-json', '{"city": 5}');
		});

		it('filters by address, activity and meta values', async () => {
			expect(await emailsOf('--email', 'XAY@example.com')).toEqual(['xay@example.com']);
			expect(await emailsOf('--inactive')).toEqual(['xay@example.com']);
			expect(await emailsOf('--active', '--where', 'meta.city=Oslo')).toEqual([
				'ann@example.com',
				'x_y@example.com',
			]);
			expect(await emailsOf('--where', 'meta.city=5')).toEqual(['100%@example.com']);
			expect(await emailsOf('--where', 'meta.city=Oslo', '--limit', '1')).toEqual(['ann@example.com']);
			expect(await emailsOf('--where', 'meta.city~OSL', '--where', 'email~ann')).toEqual(['ann@example.com']);
			expect(await emailsOf('--where', 'meta.city>4')).toEqual(['100%@example.com']);
			expect(await emailsOf('--sort', '-email', '--limit', '2')).toEqual([
				'xay@example.com',
				'x_y@example.com',
			]);
		});
	});

	describe('create', () => {
		it.each([
			[['--meta', 'city'], '--meta: "city" is not KEY=VALUE'],
			[['--meta-json', '[1]'], '--meta-json is not a JSON object'],
			[['--meta-json', '@/nowhere'], '--meta-json: /nowhere: no such file'],
		])('rejects %j without a request', async (words, message) => {
			const { code, stderr } = await project.run([
				...['subscribers', 'create', ...list, '--email', 'b@example.com', ...words],
			]);
			expect({ code, first: stderr.split('\n')[0] }).toEqual({ code: 2, first: `error: ${message}` });
		});

		it('reads meta from JSON, a file or stdin, and --meta overrides single values', async () => {
			const path = await project.file('meta.json', '{"city": "Rome", "plan": 1}');
			await add('b@example.com', '--meta-json', '{"city": null, "plan": true}');
			await add('c@example.com', '--meta-json', `@${path}`, '--meta', 'plan=pro');
			await project.json(['subscribers', 'create', ...list, '--email', 'd@example.com', '--meta-json', '-'], {
				stdin: '{"city": 1.5}',
			});
			expect([
				await metaOf('b@example.com'),
				await metaOf('c@example.com'),
				await metaOf('d@example.com'),
			]).toEqual([{ city: null, plan: true }, { city: 'Rome', plan: 'pro' }, { city: 1.5 }]);
		});

		it('reports, skips or updates an existing person, and -q prints only the id', async () => {
			const again = ['subscribers', 'create', ...list, '--email', 'Ann@example.com', '--meta', 'plan=pro'];
			expect((await project.run([...again, '-q'])).code).toBe(5);
			expect((await project.run([...again, '--if-exists', 'skip', '-q'])).stdout).toBe('1\n');
			expect(await metaOf('1')).toEqual({ city: 'Oslo' });
			expect(await project.json([...again, '--if-exists', 'update', '--name', 'Anna'])).toEqual({
				...ann,
				name: 'Anna',
				meta: { city: 'Oslo', plan: 'pro' },
			});
		});
	});

	describe('update', () => {
		const update = (...words: string[]) =>
			project.json(['subscribers', 'update', 'ann@example.com', ...list, ...words]);

		it('merges --meta, removes --unset-meta, and replaces all values with --meta-json', async () => {
			expect(await update('--meta', 'plan=pro')).toMatchObject({ meta: { city: 'Oslo', plan: 'pro' } });
			expect(await update('--unset-meta', 'city', '--meta', 'plan=free')).toMatchObject({
				meta: { plan: 'free' },
			});
			expect(await update('--meta-json', '{"city": 1}')).toMatchObject({ meta: { city: 1 } });
			expect(await update('--meta-json', '{}')).toHaveProperty('meta', {});
		});

		it('keeps both changes if two processes change different variables', async () => {
			await Promise.all([update('--meta', 'city=Rome'), update('--meta', 'plan=pro')]);
			expect(await metaOf('1')).toEqual({ city: 'Rome', plan: 'pro' });
		});

		it('rejects contradictory options', async () => {
			const refused = async (...words: string[]) =>
				(await project.run(['subscribers', 'update', '1', ...list, ...words])).stderr.split('\n')[0];
			expect([
				await refused(),
				await refused('--unset-meta', 'city', '--meta-json', '{}'),
				await refused('--unset-meta', 'city', '--meta', 'city=x'),
				await refused('--replace', '--name', 'X'),
				await refused('--replace', '--active', '--unset-meta', 'city'),
				await refused('--active', '--inactive'),
			]).toEqual([
				'error: nothing to change: give one of --email, --name, --meta, --meta-json, --unset-meta, --active, --inactive',
				'error: --unset-meta cannot be used with --meta-json or --replace, which replace all variables',
				'error: --meta and --unset-meta both name "city"',
				'error: --replace needs --active or --inactive: without either, a PUT would activate the subscriber',
				'error: --unset-meta cannot be used with --meta-json or --replace, which replace all variables',
				"error: use either '--active' or '--inactive', not both",
			]);
			expect(await project.json(['subscribers', 'get', '1', ...list])).toEqual(ann);
		});
	});

	describe('with several ids', () => {
		it('activates and deactivates several people, and prints an array', async () => {
			await add('bob@example.com');
			expect(
				await project.json(['subscribers', 'deactivate', 'ann@example.com', '2', ...list]),
			).toMatchObject([
				{ id: 1, is_active: false, disable_reason: null },
				{ id: 2, is_active: false },
			]);
			expect(
				await project.json(['subscribers', 'activate', '-', ...list], {
					stdin: '1\n\nbob@example.com\r\n1\n',
				}),
			).toMatchObject([
				{ id: 1, is_active: true },
				{ id: 2, is_active: true },
			]);
		});

		it('requires a confirmation to activate people who unsubscribed', async () => {
			const reason = ['--reason', 'UNSUBSCRIBED', '--list', '1'];
			await project.json(['suppressions', 'add', 'ann@example.com', ...reason]);
			for (const words of [
				['activate', '1', ...list],
				['update', '1', '--active', ...list],
			]) {
				const { code, stderr } = await project.run(['subscribers', ...words]);
				expect([code, stderr]).toEqual([
					2,
					expect.stringMatching(/ and lift the unsubscription.*\nhint: add --yes to agree\n/),
				]);
			}
			const { code, stderr } = await project.run(['subscribers', 'activate', '1', ...list, '--yes']);
			expect([code, stderr]).toEqual([0, 'warning: lifted the unsubscription of ann@example.com\n']);
		});

		it('changes nobody if one id is unknown', async () => {
			expect((await project.run(['subscribers', 'deactivate', '1', '9', ...list])).code).toBe(3);
			expect(await project.json(['subscribers', 'get', '1', ...list])).toEqual(ann);
		});

		it('requires the count as confirmation for more than 100 people, even with -y', async () => {
			const rows = Array.from({ length: 101 }, (_, at) => `p${at}@example.com`);
			const path = await project.file('people.csv', `email\n${rows.join('\n')}\n`);
			await project.json(['subscribers', 'import', path, ...list]);
			const run = (...words: string[]) =>
				project.run(['subscribers', 'delete', '-', ...list, ...words], { stdin: rows.join('\n') });
			expect(await run('-y')).toEqual({
				code: 2,
				stdout: '',
				stderr:
					'error: this will delete 101 subscribers of list 1 "Readers"\nhint: add --confirm 101 to agree\n',
			});
			expect((await run('--confirm', '100')).code).toBe(2);
			expect((await run('--confirm', '101')).code).toBe(0);
			expect(await emailsOf()).toEqual(['ann@example.com']);
		});
	});
});
