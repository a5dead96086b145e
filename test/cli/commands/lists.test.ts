import { describe, expect, it, onTestFinished } from 'vitest';
import { cli } from '../../support/cli.js';
import { connectTo, someList } from '../../support/fake-deployment.js';
import { makeProject } from '../../support/project.js';
import { startServer } from '../../support/running-server.js';

describe('mailctl lists', () => {
	const two = () => [someList(1), someList(2, { name: 'News', unheard_of: { a: 1 } })];

	it('prints the API’s objects unchanged in one JSON array', async () => {
		const { stdout } = await cli(['-o', 'json', 'lists', 'ls'], { connect: connectTo(two()) });
		expect(JSON.parse(stdout)).toEqual(two());
	});

	it('prints Unicode line and paragraph separators unchanged', async () => {
		const odd = [someList(1, { name: 'a\u2028b\u2029c\nd' })];
		const { stdout } = await cli(['-o', 'json', 'lists', 'ls'], { connect: connectTo(odd) });
		expect(JSON.parse(stdout)).toEqual(odd);
	});

	it('shows 50 rows and the total on a terminal', async () => {
		const many = Array.from({ length: 1240 }, (_, at) => someList(at + 1));
		const { stdout, stderr } = await cli(['lists', 'list'], { connect: connectTo(many), columns: 80 });
		expect(stdout.split('\n')).toHaveLength(54);
		expect(stderr).toBe('showing 50 of 1,240; --all\n');
		const all = await cli(['lists', 'list', '--all'], { connect: connectTo(many), columns: 80 });
		expect(all.stdout.split('\n')).toHaveLength(1244);
	});

	it('prints a table on a terminal of 80 columns, and a card per row on a terminal of 20 columns', async () => {
		const lists = [
			someList(1, { name: '日本語ニュース 👩‍👩‍👧' }),
			someList(12, { name: `a${'b'.repeat(80)}` }),
		];
		const wide = await cli(['lists', 'list', '--no-color'], { connect: connectTo(lists), columns: 80 });
		expect(wide.stdout).toBe(
			[
				`ID  NAME${' '.repeat(38)}ACTIVE  INACTIVE  CREATED`,
				` 1  日本語ニュース 👩‍👩‍👧${' '.repeat(30)}2         1  2026-11-01 10:00`,
				`12  a${'b'.repeat(25)}…${'b'.repeat(13)}       2         1  2026-11-01 10:00`,
				'',
				'Times: UTC',
				'',
			].join('\n'),
		);
		const narrow = await cli(['lists', 'list', '--no-color'], { connect: connectTo(lists), columns: 20 });
		expect(narrow.stdout.split('\n')[0]).toBe('ID        1');
	});

	it('rejects a name that several lists have, and prints their ids', async () => {
		const { code, stderr } = await cli(['lists', 'get', 'A'], {
			connect: connectTo([someList(1, { name: 'A' }), someList(2, { name: 'A' })]),
		});
		expect({ code, stderr }).toEqual({
			code: 2,
			stderr: 'error: 2 lists are called "A"\nhint: give the id: 1, 2\n',
		});
	});

	it('deletes a list only with its name as confirmation, not with -y', async () => {
		const lists = two();
		const refused = await cli(['lists', 'delete', '2', '-y'], { connect: connectTo(lists) });
		expect(refused).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: this will delete list 2 "News" with 3 subscribers for good\nhint: add --confirm News to agree\n',
		});
		const done = await cli(['lists', 'delete', '2', '--confirm', 'News', '-o', 'json'], {
			connect: connectTo(lists),
		});
		expect(JSON.parse(done.stdout)).toEqual({ deleted: [2] });
		expect(lists.map(({ id }) => id)).toEqual([1]);
	});

	it('prints the valid fields if --fields contains an unknown name, and creates nothing', async () => {
		const lists = two();
		const { code, stderr } = await cli(
			['lists', 'create', '--name', 'X', '--email-reason', 'r', '--fields', 'nam'],
			{ connect: connectTo(lists) },
		);
		expect(code).toBe(2);
		expect(stderr).toContain('unknown field "nam"');
		expect(stderr).toContain('valid: id, name, public_name, active_subscribers_count');
		expect(lists).toHaveLength(2);
	});
});

describe.each(['a database', 'a mailctl server'])('a list’s public name on %s', (place) => {
	async function start() {
		const { db, run } = await makeProject();
		if (place === 'a database') return run;
		const server = await startServer(db, ['--no-worker']);
		onTestFinished(async () => void (await server.stop()));
		return (words: readonly string[]) =>
			cli(['--base-url', server.baseUrl, ...words], { env: { MAILCTL_TOKEN: server.token } });
	}
	const named = [
		'lists',
		'create',
		'--name',
		'2026 import DE',
		'--email-reason',
		'r',
		'--public-name',
		'News',
	];

	it('can be set, changed and cleared, and is in JSON only with --fields public_name', async () => {
		const run = await start();
		const made = await run([...named, '-o', 'json']);
		expect(made).toMatchObject({ code: 0, stderr: '' });
		expect(JSON.parse(made.stdout)).toMatchObject({ id: 1, name: '2026 import DE' });
		expect(JSON.parse(made.stdout)).not.toHaveProperty('public_name');
		expect((await run(['lists', 'get', '1', '-o', 'json'])).stdout).toBe(made.stdout);
		expect((await run(['lists', 'get', '1', '-o', 'table'])).stdout).toMatch(/^PUBLIC NAME +News$/m);
		const asked = await run(['lists', 'get', '1', '--fields', 'id,public_name', '-o', 'json']);
		expect(JSON.parse(asked.stdout)).toEqual({ id: 1, public_name: 'News' });
		const update = ['lists', 'update', '1', '-o', 'wide'];
		expect((await run([...update, '--public-name', 'Nyheter'])).stdout).toMatch(/^PUBLIC NAME +Nyheter$/m);
		const both = await run([...update, '--name', 'Else', '--public-name', '']);
		expect(both.stdout).toMatch(/^NAME +Else$/m);
		expect(both.stdout).not.toContain('Nyheter');
		expect((await run(['lists', 'get', '1', '--fields', 'public_name'])).stdout).toBe('\n');
	});

	it('is rejected if it has over 255 characters, and nothing changes', async () => {
		const run = await start();
		const { code, stderr } = await run([...named.slice(0, 7), 'x'.repeat(256)]);
		expect(code).toBe(5);
		expect(stderr).toContain('public_name: Ensure this field has no more than 255 characters.');
		expect((await run(['lists', 'list'])).stdout).toBe('');
		await run(named);
		const update = ['lists', 'update', '1', '--name', 'Else', '--public-name', 'x'.repeat(256)];
		expect((await run(update)).code).toBe(5);
		expect((await run(['lists', 'get', '1', '-o', 'name'])).stdout).toBe('2026 import DE\n');
	});
});

describe('a list’s public name on a service other than mailctl', () => {
	it('is not shown, and mailctl rejects --fields public_name', async () => {
		const connect = connectTo([someList(1)]);
		expect((await cli(['lists', 'get', '1', '-o', 'table'], { connect })).stdout).not.toContain('PUBLIC');
		const { code, stderr } = await cli(['lists', 'get', '1', '--fields', 'public_name'], { connect });
		expect({ code, stderr }).toEqual({
			code: 2,
			stderr: expect.stringContaining('this service does not support'),
		});
	});
});
