import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, makeProject, type Project } from '../../support/project.js';
import { type FaultServer, startFaultServer } from '../../support/smtp-fault.js';

describe('mailctl why', () => {
	let project: Project;
	let server: FaultServer;
	const now = ['--now', '2026-11-03T10:00:00Z'];
	const later = ['--now', '2026-11-05T10:00:00Z'];

	const send = (to: string) =>
		project.run([
			...['send', '--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hi', '--to', to],
			...now,
		]);

	beforeAll(async () => {
		server = await startFaultServer({
			on: (phase, line) =>
				phase === 'RCPT' && line.includes('ann@') ? { answer: '550 5.1.1 No such user \x1b[31m' } : undefined,
		});
		project = await makeProject({ smtp: server.port });
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r', ...now]);
		for (const email of ['Ann@example.com', 'bob@example.com', 'eve@example.com'])
			await project.json(['subscribers', 'create', '-l', '1', '--email', email, ...now]);
		for (const to of ['ann@example.com', 'bob@example.com']) await send(to);
		await project.json(['subscribers', 'deactivate', 'eve@example.com', '-l', '1', ...now]);
	});
	afterAll(() => server.close());

	const why = async (...words: string[]) => project.run(['why', ...words, ...later, '-o', 'table']);

	it('shows the last reply and the next attempt of a deferred message', async () => {
		const slow = await startFaultServer({
			on: (phase) => (phase === 'RCPT' ? { answer: '451 4.7.1 Greylisted' } : undefined),
		});
		const other = await makeProject({ smtp: slow.port });
		const words = ['send', '--from', 'news@example.com', '--subject', 'Slow', '--text', 'Hi', ...now];
		await other.run([...words, '--to', 'ann@example.com']);
		await slow.close();
		const last = async (at: string) =>
			/The last message.*/.exec((await other.run(['why', 'ann@example.com', '--now', at])).stdout)?.[0];
		const put = 'attempt 1 was deferred: 451 4.7.1 Greylisted.';
		expect(await last('2026-11-03T10:00:05Z')).toMatch(
			/^The last message, "Slow" of 2026-11-03, waits for attempt 2 at 2026-11-03 10:\d\d UTC; attempt 1 was deferred: 451 4.7.1 Greylisted\.$/,
		);
		expect(await last('2026-11-04T10:00:00Z')).toBe(
			`The last message, "Slow" of 2026-11-03, is due for attempt 2; ${put}`,
		);
	});

	it('prints that a hard bounce suppressed the address, and the commands that lift the suppression', async () => {
		const { code, stdout, stderr } = await why('ANN@example.com');
		expect({ code, isHostile: stdout.includes('\x1b') }).toEqual({ code: 0, isHostile: false });
		expect(stdout.replace(/[0-9a-f-]{36}/, 'ID')).toBe(
			[
				'ann@example.com gets no mail: a hard bounce suppressed the address on 2026-11-03: 550 5.1.1 No such user [31m.',
				'',
				'Lists',
				'  Readers (list 1, subscriber 1): inactive (HARDBOUNCED 2026-11-03 10:00), added 2026-11-03 10:00 by the API or a command',
				'',
				'Suppressions',
				'  HARDBOUNCED of all lists, set 2026-11-03 10:00 by a delivery',
				'',
				'Messages of the last 30 days, the newest first',
				'  2026-11-03 10:00 bounced "Hello" ID',
				'    1. 2026-11-03 10:00 bounced at rcpt: 550 5.1.1 No such user [31m',
				'',
				'Left out of campaigns: none',
				'',
				'Times: UTC',
				'',
			].join('\n'),
		);
		expect(stderr).toBe(
			[
				`hint: when the mailbox accepts mail again: mailctl --db ${project.db} suppressions remove ann@example.com --reason HARDBOUNCED --yes`,
				`hint: then mailctl --db ${project.db} subscribers activate ann@example.com --list 1`,
				'',
			].join('\n'),
		);
	});

	it('prints the lists of an address that gets mail, and the server’s last reply', async () => {
		const { stdout } = await why('bob@example.com');
		expect(stdout.split('\n').slice(0, 2)).toEqual([
			'bob@example.com gets the mail of list Readers.',
			expect.stringMatching(
				/^The last message, "Hello" of 2026-11-03, was accepted by .* on 2026-11-03: 250/,
			),
		]);
	});

	it('reports an inactive subscriber', async () => {
		const { stdout, stderr } = await why('eve@example.com');
		expect(stdout).toContain(
			'eve@example.com gets no mail from list Readers: the subscriber is inactive, as set by hand or by an import.',
		);
		expect(stderr).toContain('subscribers activate eve@example.com --list 1');
	});

	it('prints whether an import or a command suppressed the address, and when', async () => {
		const rows = 'email,reason\nx@e.org,cleaned\ny@e.org,spam\nz@e.org,manual\nu@e.org,unsubscribed\n';
		const path = await project.file('stopped.csv', rows);
		await project.json(['suppressions', 'import', path, '--map', 'reason=reason', ...now]);
		await project.json(['suppressions', 'add', 'v@e.org', '--reason', 'HARDBOUNCED', ...now]);
		const said = async (name: string) => (await why(`${name}@e.org`)).stdout.split('\n')[0];
		expect(await Promise.all(['x', 'y', 'z', 'u', 'v'].map(said))).toEqual([
			'x@e.org gets no mail: an import suppressed the address on 2026-11-03 (bounced).',
			'y@e.org gets no mail: an import suppressed the address on 2026-11-03 (complaint).',
			'z@e.org gets no bulk mail from any list: an import suppressed the address on 2026-11-03.',
			'u@e.org gets no bulk mail from any list: an import suppressed the address on 2026-11-03 (unsubscribed).',
			'v@e.org gets no mail: the API or a command suppressed the address on 2026-11-03 (bounced).',
		]);
	});

	it('shows messages of the last 30 days, or all with --all', async () => {
		const days = (stdout: string) => stdout.match(/2026-11-03 10:00 sent "Hello"/g)?.length ?? 0;
		const winter = ['--now', '2027-01-05T10:00:00Z', '-o', 'table'];
		const recent = await project.run(['why', 'bob@example.com', ...winter]);
		expect([days(recent.stdout), recent.stdout.includes('1 older: --all')]).toEqual([0, true]);
		expect(days((await project.run(['why', 'bob@example.com', '--all', ...winter])).stdout)).toBe(1);
	});

	it('prints the whole record as JSON', async () => {
		expect(await project.json(['why', 'bob@example.com', '--all', ...later])).toMatchObject({
			email: 'bob@example.com',
			answer: expect.any(Array),
			subscribers: [{ list_name: 'Readers', is_active: true }],
			...{ suppressions: [], date_erased: null, date_sender: null, left_out: [], copies: [] },
			message_count: 1,
			messages: [{ to: 'bob@example.com', variables: {}, visits: [], webhook_deliveries: [] }],
		});
	});

	it('exits with 3 for an unknown address and with 2 for an invalid one', async () => {
		const unknown = await project.run(['why', 'unknown@example.com', '-o', 'json']);
		expect({ code: unknown.code, error: errorOf(unknown) }).toMatchObject({
			code: 3,
			error: {
				code: 'not_found',
				message: expect.stringContaining('is in no list, and no mail went to it'),
			},
		});
		expect((await project.run(['why', 'nobody'])).code).toBe(2);
	});

	it('prints which campaigns left the address out, and why', async () => {
		await project.json([
			...['send', '--from', 'news@example.com', '--subject', 'News', '--text', 'Hi', '--list', '1', '--yes'],
			...['--expect-count', '1', '--campaign', 'november', '--now', '2026-11-04T10:00:00Z'],
		]);
		const leftOut = async (email: string) =>
			((await project.json(['why', email, ...later])) as { left_out: object[] }).left_out;
		expect(await leftOut('ann@example.com')).toMatchObject([
			{ key: 'november', state: 'released', code: 'inactive', error: 'inactive (HARDBOUNCED)' },
		]);
		expect((await why('ann@example.com')).stdout).toMatch(/ november \([\w-]+\): inactive \(HARDBOUNCED\)$/m);
		expect(await leftOut('eve@example.com')).toMatchObject([
			{ key: 'november', code: 'inactive', error: 'inactive' },
		]);
		expect(await leftOut('bob@example.com')).toEqual([]);
	});

	it('ends a sentence with one full stop', async () => {
		await project.run([
			...['send', '--from', 'news@example.com', '--subject', 'News', '--text', 'Hi #plan#', '--list', '1'],
			...['--yes', '--expect-count', '0', '--skip-invalid', '--campaign', 'plans', ...later],
		]);
		const { stdout } = await why('bob@example.com');
		expect(stdout).toMatch(/^Campaign plans left out this address: .*no value for #plan#\.$/m);
	});

	it('prints when planned mail will leave, and that unsubscribing cancels it', async () => {
		await project.json(['lists', 'create', '--name', 'Plans', '--email-reason', 'r', ...now]);
		const { id } = (await project.json([
			...['subscribers', 'create', '-l', 'Plans', '--email', 'kim@example.com', ...now],
		])) as { id: number };
		await project.json([
			...'send --from news@example.com --subject Soon --text Hi --list Plans --yes'.split(' '),
			...['--expect-count', '1', '--at', '2026-11-06T09:00:00Z', '--no-wait', ...later],
		]);
		const answer = async () => (await why('kim@example.com')).stdout.split('\n\n')[0];
		expect(await answer()).toBe(
			'kim@example.com gets the mail of list Plans.\n' +
				'The last message, "Soon" of 2026-11-05 (campaign soon-2026-11-05), is planned for 2026-11-06 09:00 UTC.',
		);
		await project.json(['subscribers', 'deactivate', String(id), '-l', 'Plans', ...later]);
		expect(await answer()).toContain(
			'The last message, "Soon" of 2026-11-05 (campaign soon-2026-11-05), is not sent: the address no longer gets mail from the list of this message.',
		);
	});

	it('suggests the command `engine queue resume` if a message is due and the queue is paused', async () => {
		await project.run(['engine', 'queue', 'pause', ...later]);
		await send('lee@example.com');
		const { stdout, stderr } = await why('lee@example.com');
		await project.run(['engine', 'queue', 'resume', ...later]);
		expect([stdout, stderr]).toEqual([
			expect.stringContaining('is due and waits for its first delivery.'),
			`hint: the queue is paused: mailctl --db ${project.db} engine queue resume\n`,
		]);
	});

	describe('for a person in several campaigns', () => {
		const reader = 'zoe@example.com';
		const december = (day: string) => ['--now', `2026-12-${day}T10:00:00Z`];
		beforeAll(async () => {
			await project.json(['lists', 'create', '--name', 'Weekly', '--email-reason', 'r']);
			const add = ['subscribers', 'create', '-l', '2', '--email', reader, '--name', 'Zoe'];
			await project.json([...add, ...december('01')]);
			for (const day of ['01', '08', '15', '22'])
				await project.json([
					...[
						'send',
						'--from',
						'news@example.com',
						'--subject',
						`#name|Friend#, news of #${day}`,
						'--text',
						'Hi',
					],
					...['--list', '2', '--yes', '--expect-count', '1', ...december(day)],
				]);
		});
		const page = async (...words: string[]) =>
			(await project.run(['why', reader, ...words, ...december('23'), '-o', 'table'])).stdout;

		it('replaces the variables in subjects with the person’s values', async () => {
			expect(await page()).toContain('The last message, "Zoe, news of #22" of 2026-12-22');
			expect(await page()).not.toContain('#name');
			const { messages } = (await project.json(['why', reader, ...december('23')])) as { messages: object[] };
			expect(messages[0]).toMatchObject({ subject: 'Zoe, news of #22' });
		});

		it('prints fewer than 24 lines, with the history of the newest message, and mentions --all', async () => {
			const shown = await page();
			expect(shown.split('\n').length).toBeLessThan(24);
			expect(shown.match(/1\. 2026-12-.* sent/g)).toHaveLength(1);
			expect(shown).toContain('replies, opens and clicks of all messages: --all');
			expect((await page('--all')).match(/1\. 2026-12-.* sent/g)).toHaveLength(4);
		});
	});
});
