import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('mailctl send at a time', () => {
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

	it('returns at once, keeps the campaign planned, and sends to those who are still wanted then', async () => {
		const at = ['--now', '2026-11-01T10:00:00Z'];
		const run = await project.run([...send('--at', '2026-12-01 09:00'), ...at, '-o', 'json']);
		expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { state: 'planned', staged: 2 }]);
		expect(run.stderr).toContain('planned for 2026-12-01 09:00 Europe/Berlin');
		expect(await project.json(['campaigns', 'list', '--state', 'planned', ...at])).toMatchObject([
			{ name: 'c', plan: { starts_at: '2026-12-01T08:00:00.000000' } },
		]);
		const shown = [
			'campaigns',
			'get',
			'c',
			'--no-color',
			'-o',
			'table',
			'--time-zone',
			'Europe/Berlin',
			...at,
		];
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
		[['--at', 'soon'], 'is no time'],
		[['--at', '2026-12-01'], 'has no time of the day'],
		[['--window', '9-18'], 'is no window'],
		[['--at', '2026-12-01 09:00', '--in', '2h'], 'give one'],
	])('refuses %j before anything is staged', async (words, message) => {
		const run = await project.run([...send(...words), '--now', '2026-11-01T10:00:00Z']);
		expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(message)]);
		expect(await project.json(['campaigns', 'list'])).toEqual([]);
	});

	it('waits for the window, and can be canceled wholly', async () => {
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
