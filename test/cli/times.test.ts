import { beforeAll, describe, expect, it } from 'vitest';
import { cli } from '../support/cli.js';
import { errorOf, makeProject, type Project } from '../support/project.js';

describe('times', () => {
	let project: Project;
	const oslo = ['--time-zone', 'Europe/Oslo'];
	const at = (time: string) => ['--now', time];

	beforeAll(async () => {
		project = await makeProject();
		const add = (email: string, ...words: string[]) =>
			project.json(['suppressions', 'add', email, ...words, ...at('2026-07-01T23:30:00Z')]);
		await add('ann@example.com');
		await project.json([
			...['lists', 'create', '--name', 'Readers', '--email-reason', 'r'],
			...at('2026-11-21T12:00:00Z'),
		]);
	});
	const run = async (...argv: string[]) => (await project.run(argv)).stdout;

	it('in a table are in one zone, which is printed once below the table', async () => {
		expect(await run('lists', 'list', ...oslo, '-o', 'table')).toBe(
			'ID  NAME     ACTIVE  INACTIVE  CREATED\n' +
				' 1  Readers       0         0  2026-11-21 13:00\n' +
				'\nTimes: Europe/Oslo (UTC+1)\n',
		);
		expect(await run('lists', 'get', '1', ...oslo, '-o', 'wide')).toMatch(
			/CREATED {7}2026-11-21 13:00\n\nTimes: Europe\/Oslo \(UTC\+1\)\n$/,
		);
		expect(await run('lists', 'list', ...oslo, '-o', 'markdown')).toContain(
			'| 2026-11-21 13:00 |\n\nTimes: Europe/Oslo (UTC+1)\n',
		);
	});

	it('have their zone printed below the table even if the table shows only dates', async () => {
		const shown = await run('suppressions', 'list', ...oslo, '-o', 'table');
		expect(shown).toContain('2026-07-02\n\nTimes: Europe/Oslo (UTC+2)\n');
	});

	it('get no zone line below the table if --no-header is set or no column shows a time', async () => {
		expect(await run('lists', 'list', '--fields', 'id,name', '-o', 'table')).not.toContain('Times');
		expect(await run('lists', 'list', '--no-header', '-o', 'table')).not.toContain('Times');
		expect(await run('fields', 'list', '-o', 'table')).toBe('');
	});

	it('are in UTC with a final Z in tsv and csv; json keeps the text of the API', async () => {
		const time = '2026-11-21T12:00:00.000000';
		expect(await run('lists', 'list', ...oslo)).toBe(`1\tReaders\t0\t0\t${time}Z\n`);
		expect(await run('lists', 'list', ...oslo, '-o', 'csv')).toContain(`,${time}Z\r\n`);
		expect(await run('lists', 'list', ...oslo, '-o', 'json')).toContain(`"date_created": "${time}"`);
		expect(await run('lists', 'list', ...oslo, '-o', 'ndjson')).toContain(`"date_created":"${time}"`);
	});

	it('use the zone of the option, the environment, the profile or the machine, in this order', async () => {
		const home = { HOME: project.folder };
		const zone = async (argv: readonly string[], env: Record<string, string> = {}) => {
			const { stdout } = await cli(['config', 'explain', '-o', 'json', ...argv], {
				env: { ...home, ...env },
			});
			return (JSON.parse(stdout) as { key: string }[]).find(({ key }) => key === 'timeZone');
		};
		const named = { MAILCTL_TIME_ZONE: 'Asia/Tokyo' };
		const machines = { key: 'timeZone', value: 'UTC', level: 'default', source: null };
		expect(await zone([])).toEqual(machines);
		expect((await cli(['config', 'set', 'time-zone', 'America/Lima'], { env: home })).code).toBe(0);
		expect(await zone([])).toMatchObject({ value: 'America/Lima', level: 'profile' });
		expect(await zone([], named)).toMatchObject({ value: 'Asia/Tokyo', source: 'MAILCTL_TIME_ZONE' });
		expect(await zone(oslo, named)).toMatchObject({ value: 'Europe/Oslo', source: '--time-zone' });
		expect((await cli(['config', 'unset', 'timeZone'], { env: home })).code).toBe(0);
		expect(await zone([])).toEqual(machines);
	});

	it.each([
		['Europe/Olso', 'did you mean Europe/Oslo'],
		['+01:00', 'time zones: UTC, Europe/Oslo, America/New_York'],
		['\x1b[31m/../x', 'time zones: UTC'],
	])('cannot use the unknown zone %j', async (zone, hint) => {
		const listed = await project.run(['lists', 'list', `--time-zone=${zone}`, '-o', 'json']);
		expect(listed.code).toBe(2);
		expect(errorOf(listed)['hint']).toContain(hint);
		const env = { HOME: project.folder };
		expect((await cli(['config', 'set', 'timeZone', zone], { env })).code).toBe(2);
	});

	it('can use UTC and renamed zones', async () => {
		const caption = async (zone: string) =>
			/Times: .*/.exec(await run('lists', 'list', '--time-zone', zone, '-o', 'table'))?.[0];
		expect(await caption('UTC')).toBe('Times: UTC');
		expect(await caption('Europe/Kyiv')).toBe('Times: Europe/Kyiv (UTC+2)');
	});

	it('in options are read in the chosen zone', async () => {
		let count = 0;
		const expires = async (end: string, ...zone: string[]) => {
			count += 1;
			const argv = ['suppressions', 'add', `bob${count}@example.com`, '--expires', end, ...zone];
			const added = await project.json([...argv, ...at('2026-11-01T22:30:00Z')]);
			return (added as { expires_at: string }).expires_at.slice(0, 19);
		};
		expect(await expires('2026-12-01', ...oslo)).toBe('2026-11-30T23:00:00');
		expect(await expires('2026-12-01T18:00:00', ...oslo)).toBe('2026-12-01T17:00:00');
		expect(await expires('2026-12-01T18:00:00Z', ...oslo)).toBe('2026-12-01T18:00:00');
		// It is 23:30 in Oslo, so tomorrow is the 2nd there and the 3rd in Auckland.
		expect(await expires('tomorrow', ...oslo)).toBe('2026-11-01T23:00:00');
		expect(await expires('tomorrow', '--time-zone', 'Pacific/Auckland')).toBe('2026-11-02T11:00:00');
	});

	it('in reports get their zone from engine init, which rejects unknown zones', async () => {
		const made = await makeProject();
		const settings = await made.json(['engine', 'init', ...oslo]);
		expect(settings).toMatchObject({ settings: { time_zone: 'Europe/Oslo' } });
		expect((await made.run(['engine', 'init', '--time-zone', 'Mars'])).code).toBe(2);
	});
});

describe('relative times', () => {
	it('appear only in lists on a terminal', async () => {
		const project = await makeProject({ env: { MAILCTL_TIME_ZONE: 'Europe/Oslo', NO_COLOR: '1' } });
		const send = (name: string, now: string) =>
			project.run(
				[
					...['send', '--batch', '-', '--campaign', name, '--yes', '--expect-count', '1'],
					...['--no-wait', '--again', '--now', now],
				],
				{ stdin: batch },
			);
		const batch = `${JSON.stringify({ from: 'news@example.com', to: ['a@example.com'], subject: 's', text_body: 't' })}\n`;
		await send('old', '2026-11-19T11:00:00Z');
		await send('today', '2026-11-21T09:00:00Z');
		await send('just', '2026-11-21T11:55:30Z');
		await send('now', '2026-11-21T12:00:00Z');
		const list = ['campaigns', 'list', '--fields', 'name,start', '--now', '2026-11-21T12:00:00Z'];
		const { stdout } = await project.run(list, { columns: 80 });
		expect(stdout).toBe(
			'NAME   START\nnow    now\njust   4 min ago\ntoday  3 h ago\nold    2026-11-19 12:00\n' +
				'\nTimes: Europe/Oslo (UTC+1)\n',
		);
		const kept = await project.run([...list, '-o', 'table']);
		expect(kept.stdout).toContain('just   2026-11-21 12:55\n');
		const shown = await project.run(['campaigns', 'get', 'just', '--fields', 'date_created'], {
			columns: 80,
		});
		expect(shown.stdout).toContain('2026-11-21 12:55\n');
	});
});
