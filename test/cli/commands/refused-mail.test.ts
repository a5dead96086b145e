import { afterEach, describe, expect, it } from 'vitest';
import { cli } from '../../support/cli.js';
import { makeProject, type Project } from '../../support/project.js';
import { startServer } from '../../support/running-server.js';
import { type FaultPhase, type FaultServer, startFaultServer } from '../../support/smtp-fault.js';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

/** Creates a list of 12 subscribers, and a mail server that refuses mail while `refusal` has an answer. */
async function start() {
	const refusal: { phase: FaultPhase; answer: string }[] = [];
	const server: FaultServer = await startFaultServer({
		on: (phase) => refusal.find((one) => one.phase === phase),
	});
	opened.push(server);
	const project = await makeProject({ smtp: server.port });
	await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
	const rows = Array.from({ length: 12 }, (_, at) => `r${at}@example.com`);
	await project.json([
		'subscribers',
		'import',
		await project.file('p.csv', `email\n${rows.join('\n')}\n`),
		'-l',
		'L',
	]);
	return { project, refusal, server };
}

const words = [
	'send',
	'--from',
	'news@example.com',
	'--list',
	'L',
	'--campaign',
	'c',
	'--subject',
	'S',
	'--text',
	'T',
];
const send = [...words, '--yes', '--expect-count', '12', '--connections', '1'];

interface Told {
	replies: { state: string; reply: string; count: number }[];
}

async function toldBy(project: Project, ...argv: string[]) {
	return ((await project.json(argv)) as Told).replies;
}

describe('a mail server’s refusal of the sender', () => {
	it('pauses the queue, and is printed by mailctl campaigns, engine queue stats and doctor', async () => {
		const { project, refusal } = await start();
		refusal.push({ phase: 'MAIL', answer: '553 5.7.1 Sender address rejected: not owned by user' });
		const { stderr, code } = await project.run(send);
		const said = '553 5.7.1 Sender address rejected: not owned by user';
		expect([code, stderr]).toEqual([14, expect.stringMatching(`\\d+ deferred: ${said}`)]);
		const replies = await toldBy(project, 'campaigns', 'get', 'c');
		expect(replies).toEqual([{ state: 'deferred', reply: said, count: expect.any(Number) }]);
		expect(replies[0]?.count).toBeGreaterThanOrEqual(5);
		expect(await toldBy(project, 'engine', 'queue', 'stats')).toEqual(replies);
		expect(await toldBy(project, 'campaigns', 'report', 'c')).toEqual(replies);
		expect((await project.run(['campaigns', 'report', 'c', '-o', 'table'])).stdout).toContain(said);
		expect((await project.run(['doctor', '--only', 'queue'])).stdout).toContain(`deferred: ${said}`);
		expect(await project.json(['engine', 'queue', 'stats'])).toMatchObject({
			paused: { kind: 'fault', reason: `the mail server refuses the sender news@example.com: mail: ${said}` },
			deferred: [],
		});
		expect(stderr).toContain(
			'so do not repeat the command: the mail server refuses the sender news@example.com: ',
		);
		expect(await project.json(['report'])).toMatchObject({
			total: { softbounced_percent: 0, hardbounced_percent: 0 },
		});
		refusal.length = 0;
		expect(await project.json(['engine', 'queue', 'resume'])).toEqual({ resumed: true });
		expect(await project.json(['worker', '--drain'])).toMatchObject({ sent: 12 });
	});

	it('makes mailctl defer the messages, and "campaigns resume" queues these messages again at once', async () => {
		const { project, refusal } = await start();
		refusal.push({ phase: 'MAIL', answer: '553 Sender unknown' });
		expect((await project.run(send)).code).toBe(14);
		refusal.splice(0, 1, { phase: 'RCPT', answer: '451 4.7.1 Greylisted' });
		const first = await project.run(['campaigns', 'resume', 'c']);
		expect(first.stderr).toMatch(
			/\d+ deferred messages queued again[\s\S]*12 deferred: 451 4.7.1 Greylisted/,
		);
		expect((await project.run(['campaigns', 'resume', 'c'])).stderr).not.toContain('Greylisted');
		await project.json(['campaigns', 'cancel', 'c', '--yes']);
		const again = await project.run(['campaigns', 'cancel', 'c', '--yes']);
		expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('is canceled already')]);
		expect(await project.json(['campaigns', 'get', 'c'])).not.toHaveProperty('replies');
	});

	it.each([
		['--to', 'a@example.com'],
		['--list', 'L', '--test-to', 'a@example.com'],
	])('is reported by send %s %s, which exits with 14', async (...whom) => {
		const { project, refusal } = await start();
		refusal.push({ phase: 'RCPT', answer: '554 Relay access denied' });
		const argv = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', ...whom];
		const { code, stderr } = await project.run(argv);
		expect([code, stderr]).toEqual([
			14,
			expect.stringMatching(
				/refuses the sender news@example\.com: 554 Relay[\s\S]*hint: nothing is lost: allow the sender at the mail server, then run .*queue resume\s+and .*worker --drain/,
			),
		]);
	});
});

describe('a failed message', () => {
	const fail = async () => {
		const { project, refusal, server } = await start();
		refusal.push({ phase: 'dot', answer: '554 5.7.1 Message looks like spam, id 4711-0815-AB' });
		expect((await project.run(send)).code).toBe(9);
		expect(await project.json(['campaigns', 'get', 'c'])).toMatchObject({
			messages: { failed: 12 },
			softbounced: 0,
		});
		refusal.length = 0;
		return { project, server };
	};

	it('is sent again by "campaigns resume --failed" on a local database', async () => {
		const { project, server } = await fail();
		const { stderr } = await project.run(['campaigns', 'resume', 'c', '--failed', '--dry-run']);
		expect(stderr).toContain('12 failed messages would be sent again');
		expect(await project.json(['campaigns', 'resume', 'c', '--failed'])).toMatchObject({
			messages: { sent: 12 },
		});
		expect(server.bodies).toHaveLength(24);
	});

	it('is sent again by "campaigns resume --failed" through a server', async () => {
		const { project } = await fail();
		const { baseUrl, token, stop } = await startServer(project.db);
		opened.push({ close: stop });
		const env = { MAILCTL_TOKEN: token, HOME: project.folder };
		const argv = ['--base-url', baseUrl, 'campaigns', 'resume', 'c', '--failed', '-o', 'json'];
		const { stdout, code } = await cli(argv, { env });
		expect([code, JSON.parse(stdout)]).toMatchObject([0, { messages: { sent: 12 } }]);
	});
});

it('send uses the stored Reply-To of the sender unless --reply-to is given', async () => {
	const { project, server } = await start();
	const sender = { from_email: 'desk@example.com', full_name: 'Desk', reply_to_email: 'help@example.com' };
	await project.json(['api', 'POST', '/senders/', '--data', JSON.stringify(sender)]);
	const mail = [
		'send',
		'--from',
		'desk@example.com',
		'--to',
		'a@example.com',
		'--subject',
		'S',
		'--text',
		'T',
	];
	await project.json(mail);
	await project.json([...mail, '--reply-to', 'other@example.com']);
	const fields = server.bodies.map((body) => /^Reply-To: (.*)$/m.exec(body)?.[1]?.trim());
	expect(fields).toEqual(['help@example.com', 'other@example.com']);
});
