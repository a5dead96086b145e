import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';
import { typing } from '../../../support/typing.js';

describe('mailctl send at a given time', () => {
	let project: Project;
	let sink: SmtpSink;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		await project.json(['engine', 'settings', 'set', 'time_zone', 'Europe/Berlin']);
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked.']);
		const file = await project.file('a.csv', 'email\nann@example.com\nbob@example.com\n');
		await project.json(['subscribers', 'import', file, '-l', '1']);
	});
	afterEach(() => sink.close());

	const mail = ['send', '--from', 'news@example.com', '--list', '1', '--subject', 'News', '--text', 'Hi'];
	const send = (...more: string[]) => [...mail, ...more, '--yes', '--expect-count', '2', '--campaign', 'c'];

	it('plans the campaign, returns at once, and omits people suppressed before the planned time', async () => {
		const at = ['--now', '2026-11-01T10:00:00Z'];
		const run = await project.run([...send('--at', '2026-12-01 09:00'), ...at, '-o', 'json']);
		expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { state: 'planned', staged: 2 }]);
		expect(run.stderr).toMatch(/planned for 2026-12-01 09:00 Europe\/Berlin[\s\S]* or mailctl .*serve /);
		expect(await project.json(['campaigns', 'list', '--state', 'planned', ...at])).toMatchObject([
			{ name: 'c', plan: { starts_at: '2026-12-01T08:00:00.000000' } },
		]);
		const shown = [...'campaigns get c --no-color -o table --time-zone Europe/Berlin'.split(' '), ...at];
		expect((await project.run(shown)).stdout).toMatch(/^STARTS +2026-12-01 09:00$/m);
		await project.json(['suppressions', 'add', 'ann@example.com', '--yes', ...at]);
		expect((await project.run(['campaigns', 'resume', 'c', ...at])).code).toBe(0);
		expect(sink.received).toEqual([]);
		const then = ['--now', '2026-12-01T08:00:01Z'];
		await project.run(['campaigns', 'resume', 'c', ...then]);
		expect(sink.received.flatMap(({ to }) => to)).toEqual(['bob@example.com']);
	});

	it.each([
		[['--at', '2026-10-31 09:00'], 'is in the past'],
		[['--at', 'soon'], 'is not a time'],
		[['--at', 'T'.repeat(100_000)], `"${'T'.repeat(100)}…" is not a time`],
		[['--at', '2026-12-01'], 'needs a time of day'],
		[['--window', '9-18'], 'is not a window'],
		[['--at', '2026-12-01 09:00', '--in', '2h'], 'use either --at or --in, not both'],
	])('rejects %j before it stages anything', async (words, message) => {
		const run = await project.run([...send(...words), '--now', '2026-11-01T10:00:00Z']);
		expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(message)]);
		expect(await project.json(['campaigns', 'list'])).toEqual([]);
	});

	it.each([
		['--preview', 'text'],
		['--eml', '-'],
		['--test-to', 'me@example.com'],
	])('rejects an invalid time even with %s', async (...look) => {
		for (const words of [
			['--at', '2026-10-31 09:00'],
			['--window', '9-18'],
		]) {
			const run = await project.run([...send(...words), ...look, '--now', '2026-11-01T10:00:00Z']);
			expect([run.code, run.stdout]).toEqual([2, '']);
		}
		expect(sink.received).toEqual([]);
	});

	it.each([
		['2026-03-29 02:30', 'clocks in Europe/Berlin skip that time; using 2026-03-29 03:00'],
		['2026-10-25 02:30', 'clocks in Europe/Berlin show that time twice; using the first'],
	])('warns if clocks skip or repeat the time %s', async (at, message) => {
		const run = await project.run([...send('--at', at), '--dry-run', '--now', '2026-03-01T10:00:00Z']);
		expect([run.code, run.stderr]).toEqual([0, expect.stringContaining(`warning: ${message}`)]);
	});

	const rows = ['--subject', 'Row', '--text', 'Hi', '--from', 'news@example.com', '--csv'];
	it('prints the planned time in both zones if --time-zone and the setting time_zone differ in UTC offset', async () => {
		const now = ['--now', '2026-11-01T10:00:00Z'];
		const at = async (...zone: string[]) =>
			(await project.run([...send('--at', '2026-12-01 09:00', '-n'), ...zone, ...now])).stderr;
		const here = 'planned for 2026-12-01 09:00 Europe/Berlin';
		expect(await at('--time-zone', 'America/New_York')).toContain(`${here} (2026-12-01 03:00 UTC-5)\n`);
		expect(await at('--time-zone', 'Europe/Rome')).toContain(`${here}\n`);
	});

	const request = (to: string) =>
		JSON.stringify({
			from: 'news@example.com',
			to: [to],
			subject: 'Own',
			text_body: 'Hi',
			html_body: '<p>Hi</p>',
		});

	it.each(['--csv', '--batch'])('plans a campaign from %s', async (flag) => {
		const file =
			flag === '--csv'
				? await project.file('rows.csv', 'email\nzoe@example.com\nyan@example.com\n')
				: await project.file('rows.ndjson', `${request('zoe@example.com')}\n${request('yan@example.com')}\n`);
		const words = flag === '--csv' ? ['send', ...rows, file] : ['send', '--batch', file];
		const at = ['--now', '2026-11-01T10:00:00Z'];
		const dry = await project.run([...words, '--in', '2h', '-n', '--yes', '--expect-count', '2', ...at]);
		expect(dry).toMatchObject({ code: 0, stderr: expect.stringContaining('planned for 2026-11-01 13:00') });
		const consent = ['--yes', '--expect-count', '2', '--campaign', 'r'];
		const planned = await project.run([...words, '--in', '2h', '--window', '14:00-15:00', ...consent, ...at]);
		expect(planned).toMatchObject({
			code: 0,
			stderr: expect.stringContaining('planned for 2026-11-01 14:00 Europe/Berlin, each day 14:00-15:00'),
		});
		expect(await project.json(['campaigns', 'get', 'r', ...at])).toMatchObject({
			state: 'planned',
			staged: 2,
		});
		await project.run(['campaigns', 'resume', 'r', '--now', '2026-11-01T12:59:59Z']);
		expect(sink.received).toEqual([]);
		await project.run(['campaigns', 'resume', 'r', '--now', '2026-11-01T13:00:00Z']);
		expect(sink.received.flatMap(({ to }) => to).sort()).toEqual(['yan@example.com', 'zoe@example.com']);
	});

	it.each([
		'on a database',
		'on a server',
	])('exits with 14 if the hours of --window are over before the mail is sent, %s', async (where) => {
		const open = ['--now', '2026-11-01T16:59:00Z'];
		await project.json([...send('--window', '09:00-18:00'), '--no-wait', ...open]);
		const resume = ['campaigns', 'resume', 'c', '--results', join(project.folder, 'results.csv')];
		const closed = ['--now', '2026-11-01T17:00:00Z'];
		// With a worker, the server would notice the closed window before the command does.
		const served =
			where === 'on a database' ? null : await startServer(project.db, ['--no-worker', ...closed]);
		onTestFinished(async () => void (await served?.stop()));
		const env = { HOME: project.folder, MAILCTL_TOKEN: served?.token ?? '' };
		let isOver = false;
		const run =
			served === null
				? await project.run([...resume, ...closed])
				: await cli(['--base-url', served.baseUrl, ...resume], {
						env,
						heard: (text) => {
							if (isOver || !text.includes('campaign c,')) return;
							isOver = true;
							void project.run(['worker', '--drain', ...closed]);
						},
					});
		expect(run).toMatchObject({ code: 14, stdout: expect.stringContaining('{"queued":2}') });
		expect(run.stderr).toContain(
			'accepted and queued, so do not repeat the command: the sending hours are over, and sending continues at 2026-11-02 09:00 Europe/Berlin',
		);
		expect(run.stderr).toContain('must be running');
		expect(sink.received).toEqual([]);
		expect(await readFile(join(project.folder, 'results.csv'), 'utf8')).toContain('queued');
		if (served !== null) return;
		await project.run(['worker', '--drain', '--now', '2026-11-02T07:59:59Z']);
		expect(sink.received).toEqual([]);
		await project.run(['worker', '--drain', '--now', '2026-11-02T08:00:00Z']);
		expect(sink.received).toHaveLength(2);
	});

	describe('that continues a staged campaign', () => {
		const at = ['--now', '2026-11-01T10:00:00Z'];
		const stage = (...more: string[]) =>
			project.run([...mail, ...more, '--campaign', 'early', '--yes', '--expect-count', '99', ...at]);
		const resume = (...more: string[]) =>
			typing(
				[
					['Resume it?', 'y'],
					['Continue?', 'y'],
				],
				(options) => project.run([...mail, ...more, ...at], options),
				300,
			);

		it('uses the time of the new command, and prints this time in the question', async () => {
			await stage();
			const run = await resume('--in', '2h', '--window', '09:00-14:00');
			const plan = 'planned for 2026-11-01 13:00 Europe/Berlin, each day 09:00-14:00';
			expect(stripVTControlCharacters(run.stderr)).toContain(
				`This will send "News" to 2 recipients, ${plan} (2026-11-01 12:00 UTC). Continue?`,
			);
			expect(await project.json(['campaigns', 'list', ...at])).toMatchObject([
				{ name: 'early', state: 'planned', plan: { starts_at: '2026-11-01T12:00:00.000000' } },
			]);
			expect([run.code, sink.received]).toEqual([0, []]);
		});

		it('keeps the time of the earlier command if the new command has none, and prints this time in the question', async () => {
			await stage('--at', '2026-12-01 09:00');
			const run = await resume();
			expect(stripVTControlCharacters(run.stderr)).toContain(
				'This will send "News" to 2 recipients, planned for 2026-12-01 09:00 Europe/Berlin',
			);
			expect(await project.json(['campaigns', 'list', ...at])).toMatchObject([
				{ name: 'early', state: 'planned', plan: { starts_at: '2026-12-01T08:00:00.000000' } },
			]);
			expect([run.code, sink.received]).toEqual([0, []]);
		});

		it('rejects options that differ from those of the earlier command, and leaves the campaign staged', async () => {
			await stage('--tag', 'old');
			const run = await typing(
				[['Resume it?', 'y']],
				(options) => project.run([...mail, '--tag', 'new', '--in', '2h', ...at], options),
				300,
			);
			expect(run).toMatchObject({
				code: 5,
				stderr: expect.stringContaining('the name "early" belongs to another campaign'),
			});
			expect(await project.json(['campaigns', 'list', ...at])).toMatchObject([
				{ name: 'early', state: 'staged' },
			]);
		});
	});

	it('plans the campaign for the next start of --window; the user can cancel this campaign', async () => {
		const at = ['--now', '2026-11-01T20:00:00Z'];
		const run = await project.run([...send('--window', '09:00-18:00'), ...at]);
		expect([run.code, run.stderr]).toEqual([
			0,
			expect.stringContaining('planned for 2026-11-02 09:00 Europe/Berlin, each day 09:00-18:00'),
		]);
		await project.json(['campaigns', 'cancel', 'c', '--yes', ...at]);
		expect(await project.json(['campaigns', 'get', 'c'])).toMatchObject({ state: 'canceled' });
	});
});
