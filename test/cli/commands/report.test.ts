import { beforeAll, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../support/project.js';
import { startSmtpSink } from '../../support/smtp-sink.js';
import { stripped } from '../../support/stripped.js';
import { track } from '../../support/tracked.js';

describe('mailctl report', () => {
	let project: Project;
	const now = ['--now', '2026-11-07T12:00:00Z'];

	// Sends one mail on the 5th and three on the 7th.
	beforeAll(async () => {
		const sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		const send = (day: string, ...to: string[]) =>
			project.json([
				...['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T'],
				...['--now', `2026-11-${day}T12:00:00Z`],
				...to.flatMap((one) => ['--to', `${one}@example.com`]),
			]);
		await send('05', 'a');
		await send('07', 'a', 'b', 'c');
		await sink.close();
	});

	const days = async (...words: string[]) =>
		(
			(await project.json(['report', ...words, ...now])) as { data: { date: string; sent: number }[] }
		).data.map(({ date, sent }) => `${date} ${sent}`);

	it('accepts each documented form of --from, --to and --last, and a choice of events with --event', async () => {
		expect(await days('--from', '2026-11-06', '--to', '07.11.2026')).toEqual([
			'06.11.2026 0',
			'07.11.2026 3',
		]);
		expect(await days('--from', 'yesterday')).toEqual(['06.11.2026 0', '07.11.2026 3']);
		expect(await days('--from', '1w', '--to', '6d')).toEqual(['31.10.2026 0', '01.11.2026 0']);
		expect(await days('--last', '2d')).toEqual(['06.11.2026 0', '07.11.2026 3']);
		expect(await days('--last', '1w')).toHaveLength(7);
		expect(await days('--last', '2', '--to', '2026-11-05')).toEqual(['04.11.2026 0', '05.11.2026 1']);
		expect(await days('--last', '1d', '--event', 'opened')).toEqual(['07.11.2026 0']);
	});

	it('counts days in the time zone of the database', async () => {
		const other = await makeProject();
		await other.json(['engine', 'init', '--time-zone', 'Pacific/Kiritimati']);
		expect(await other.json(['report', '--last', '1d', ...now])).toMatchObject({
			data: [{ date: '08.11.2026' }],
		});
	});

	it.each([
		[['--last', '2d', '--from', '2026-11-01'], 2, 'use either --last or --from, not both'],
		[['--chart', 'bars', '-o', 'csv'], 2, '--chart bars: CSV output has no charts'],
		[['--last', 'x'], 2, '--last "x" is not a number of days, such as 14d or 2w'],
		[['--from', '2026-11-05', '--to', '2026-11-01'], 2, '--from 2026-11-05 is after --to 2026-11-01'],
		[['--last', '400d'], 5, /^date_/],
		[['--campaign', 'x'], 3, 'campaign "x" not found'],
		[['--campaign', '00000000-0000-4000-8000-000000000000'], 3, /^campaign "0{8}.*" not found$/],
		[['--fail-if', 'bounces>2'], 2, '--fail-if "bounces>2" is not a condition'],
		[['--fail-if', 'sent'], 2, '--fail-if "sent" is not a condition'],
		[
			['--fail-if', 'clicked_percent>1', '--event', 'sent,opened'],
			2,
			'--fail-if tests redirected_percent, which --event SENT,OPENED leaves out',
		],
	])('rejects %j', async (words, code, message) => {
		const result = await project.run(['report', ...words, ...now]);
		expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
		expect(result.stderr.split('\n')[0]?.replace('error: ', '')).toMatch(message);
	});

	it.each([
		['open_percent>2', 'did you mean opened_percent?'],
		['moon>2', /names are sent, opened, .*redirected_percent/],
	])('suggests names for the unknown figure in --fail-if %s', async (test, hint) => {
		const { stderr } = await project.run(['report', '--fail-if', test, ...now]);
		expect(stderr.split('\n')[1]).toMatch(hint);
	});

	it.each([
		['sent>4', 0],
		['sent>=4', 10],
		['sent!=4', 0],
		['sent<5', 10],
		['opened_percent <= 0', 10],
		['clicked_percent<1', 10],
	])('with --fail-if %s exits with %i', async (test, code) => {
		expect((await project.run(['report', '--fail-if', test, ...now, '-q'])).code).toBe(code);
	});

	it('omits the columns about bots if --human is given', async () => {
		expect((await project.run(['report', '--last', '1d', ...now, '-o', 'csv', '--human'])).stdout).toBe(
			'date,sent,opened,clicked,unsubscribed,complained,softbounced,hardbounced,created\r\n2026-11-07,3,0,0,0,0,0,0,3\r\n',
		);
	});

	describe('about opens, clicks and bounces', () => {
		let opened: Project;
		const figures = async (...words: string[]) =>
			(await opened.run(['report', ...words, ...now, '--no-color'], { columns: 80 })).stdout
				.split('\n')
				.filter((line) => line.startsWith('  '));
		beforeAll(async () => {
			const sink = await startSmtpSink();
			opened = await makeProject({ smtp: sink.port });
			const to = ['a', 'b', 'c', 'd', 'e'].flatMap((one) => ['--to', `${one}@example.com`]);
			await opened.json([
				...['send', '--from', 'news@example.com', '--subject', 'S', ...to],
				...['--html', '<a href="https://a.example">x</a>', '--now', '2026-11-07T10:00:00Z'],
			]);
			await sink.close();
			const sent = (await opened.json(['messages', 'list'])) as { id: string }[];
			const [a = '', b = '', c = '', d = ''] = sent.map(({ id }) => id);
			await track(opened.db, '2026-11-07T11:00:00Z', [
				{ message: a, type: 'OPENED' },
				{ message: b, type: 'OPENED', machine: true },
				{ message: a, type: 'REDIRECTED', link: 0 },
				{ message: b, type: 'REDIRECTED', link: 0, machine: true },
				{ message: a, type: 'UNSUBSCRIBED' },
				{ message: c, type: 'HARDBOUNCED' },
				{ message: d, type: 'SOFTBOUNCED' },
			]);
		});

		it('shows a percentage beside each count, and ignores bots with --human', async () => {
			const all = [
				'  sent          5',
				'  opened        2  40.00 %',
				'  clicked       2  40.00 %',
				'  unsubscribed  1  20.00 %',
				'  soft bounces  1  20.00 %',
				'  hard bounces  1  20.00 %',
			];
			const ofPeople = all.map((line) => line.replace('2  40', '1  20'));
			expect((await figures('--chart', 'none')).slice(0, 6)).toEqual(all);
			expect((await figures('--chart', 'none', '--human')).slice(0, 6)).toEqual(ofPeople);
			const ofEvents = async (...words: string[]) =>
				(await opened.run(['report', ...words, ...now], { columns: 80 })).stdout.split('\n').slice(1);
			expect(await ofEvents('--event', 'REDIRECTED')).toEqual(['', '  clicked    40.00 %', '']);
			expect((await ofEvents('--event', 'SENT,HARDBOUNCED')).slice(0, 4)).toEqual([
				'',
				'  sent          5',
				'  hard bounces     20.00 %',
				'',
			]);
			expect(await ofEvents('--event', 'CREATED')).toEqual(['', '  reports have no figures for CREATED', '']);
			const rows = await opened.run(['report', '--event', 'REDIRECTED', ...now, '-o', 'csv']);
			expect(rows.stderr).toContain('the daily figures of a report are SENT and OPENED');
			const year = await opened.run(['report', '--last', '365d', '--chart', 'none'], { columns: 80 });
			expect(year.stdout).toMatch(/ {2}clicked +\d+\.\d\d %/);
		});
	});

	describe('on a service without extensions', () => {
		it('ends the period of --last on the last day of the service’s default report', async () => {
			const asked: unknown[] = [];
			const connect = stripped({
				change: (api) => ({
					...api,
					report: async (query, call) => {
						asked.push(query);
						const report = await api.report(
							query.date_to === undefined ? { date_from: '01.11.2026', date_to: '08.11.2026' } : query,
							call,
						);
						// The eight rows are out of order, because the service document promises no order.
						return query.date_to === undefined ? { ...report, data: report.data.toReversed() } : report;
					},
				}),
			});
			const { data } = (await project.json(['report', '--last', '2d', ...now], { connect })) as {
				data: { date: string }[];
			};
			expect(data.map(({ date }) => date)).toEqual(['07.11.2026', '08.11.2026']);
			expect(asked).toEqual([{}, { date_from: '07.11.2026', date_to: '08.11.2026' }]);
		});

		it('rejects --tag and --human before any request', async () => {
			const connect = stripped({
				change: (api) => ({ ...api, report: () => Promise.reject(new Error('asked')) }),
			});
			for (const words of [['--tag', 'x'], ['--human'], ['--last', '7d', '--human']]) {
				const { code, stderr } = await project.run(['report', ...words], { connect });
				expect(code).toBe(2);
				const option = words.find((word) => /^--(tag|human)/.test(word));
				expect(stderr).toContain(`error: this service does not support ${option}: `);
			}
		});
	});
});
