import { describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';

const message = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];
const to = (domain: string, count: number) =>
	Array.from({ length: count }, (_, index) => ['--to', `p${index}@${domain}`]).flat();
const set = (project: Project, name: string, value: string) =>
	project.run(['engine', 'settings', 'set', name, value]);

/** Starts a mail server that records the time and the domain of each recipient. */
async function startCountingSink() {
	const times: { at: number; domain: string }[] = [];
	const sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			times.push({ at: performance.now(), domain: address.split('@')[1] ?? '' });
			callback();
		},
	});
	const mostIn = (windowMs: number) =>
		Math.max(...times.map(({ at }) => times.filter((one) => one.at >= at && one.at < at + windowMs).length));
	return { sink, times, mostIn };
}

describe('limits on sending', () => {
	it('slow down worker --drain, which still sends everything', async () => {
		const { sink, mostIn } = await startCountingSink();
		const project = await makeProject({ smtp: sink.port });
		expect(await set(project, 'recipient_domain_limits', 'example.net=2/1s')).toMatchObject({ code: 0 });
		await project.json([...message, ...to('example.net', 5)]);
		expect(await project.json(['worker', '--drain'])).toMatchObject({ sent: 5, deferred: 0 });
		await sink.close();
		expect(mostIn(1_000)).toBeLessThanOrEqual(2);
	});

	it('slow down only mail to the domain that has the limit', async () => {
		const { sink, times } = await startCountingSink();
		const project = await makeProject({ smtp: sink.port });
		await set(project, 'recipient_domain_limits', 'slow.test=1/1s');
		await project.json([...message, ...to('slow.test', 3), ...to('fast.test', 4)]);
		await project.json(['worker', '--drain']);
		await sink.close();
		expect(times.slice(-2).map(({ domain }) => domain)).toEqual(['slow.test', 'slow.test']);
	});

	it('appear in the output of worker --drain, with the time of the next message', async () => {
		const { sink } = await startCountingSink();
		const project = await makeProject({ smtp: sink.port });
		await set(project, 'send_limit', '1/1h');
		await project.json([...message, ...to('example.org', 2)]);
		const interrupted = new AbortController();
		const drained = await project.run(['worker', '--drain'], {
			interrupts: interrupted.signal,
			heard: (text) => {
				if (text.includes('a limit delays the other messages')) interrupted.abort();
			},
		});
		await sink.close();
		const delays = /a limit delays the other messages until \d{4}-\d\d-\d\d \d\d:\d\d UTC/g;
		expect(drained.stderr.match(delays)).toHaveLength(1);
		expect(sink.received).toHaveLength(1);
	});

	it('appear above the progress line on a terminal', async () => {
		const { sink } = await startCountingSink();
		const project = await makeProject({ smtp: sink.port });
		await set(project, 'send_limit', '1/1h');
		const sent = [...message.filter((word) => word !== '--no-wait'), '--wait-timeout', '5s'];
		const run = await project.run([...sent, ...to('example.org', 2), '--no-color'], { columns: 80 });
		await sink.close();
		const [before = '', after = ''] = run.stderr.split('warning: a limit delays the other messages');
		expect(before.endsWith('\r\x1b[K')).toBe(true);
		expect(after).toMatch(/^[^\r]*you stop waiting\nsending \d of 2/);
	});

	it('make send exit with 12 if no message leaves within --wait-timeout', async () => {
		const { sink } = await startCountingSink();
		const project = await makeProject({ smtp: sink.port });
		await set(project, 'send_limit', '1/1h');
		const sent = [...message.filter((word) => word !== '--no-wait'), '--wait-timeout', '5s'];
		const ended = /^error: no progress within --wait-timeout$/m;
		const here = await project.run([...sent, ...to('example.org', 2)]);
		const server = await startServer(project.db);
		const remote = ['--base-url', server.baseUrl, '--token-file', server.tokenFile];
		const there = await cli([...remote, ...sent, ...to('example.org', 1)]);
		await server.stop();
		await sink.close();
		expect([here.code, there.code]).toEqual([12, 12]);
		expect(here.stderr).toMatch(/^sent 1, still queued 1$/m);
		expect(here.stderr).toMatch(ended);
		expect(there.stderr).toMatch(ended);
	});

	it.each(['100/h', '7/m', '3599/h'])('can be set for a campaign with --rate %s', async (rate) => {
		const { sink } = await startCountingSink();
		const project = await makeProject({ smtp: sink.port });
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
		const words = ['--list', '1', '--campaign', 'c', '--yes', '--expect-count', '1', '--rate', rate];
		const { code } = await project.run([...message.slice(0, -1), ...words]);
		await sink.close();
		expect({ code, received: sink.received.length }).toEqual({ code: 0, received: 1 });
	});

	it('apply to two workers together', async () => {
		const { sink, mostIn } = await startCountingSink();
		const project = await makeProject({ smtp: sink.port });
		await project.json([...message, ...to('example.org', 24)]);
		const worker = () => project.json(['worker', '--drain', '--rate', '10/s']);
		await Promise.all([worker(), worker()]);
		await sink.close();
		expect(sink.received).toHaveLength(24);
		expect(mostIn(1_000)).toBeLessThanOrEqual(10);
	});

	it.each([
		['send_limit', 'gmail.com=1/s', '"gmail.com=1/s" is not a valid limit: use one such as 100/m.'],
		[
			'recipient_domain_limits',
			'100/1h',
			'"100/1h" is not a valid limit: use one such as gmail.com=100/h or *=10/s.',
		],
		[
			'sender_domain_limits',
			'a.test=0/1h',
			'"a.test=0/1h" is not a valid limit: use one such as example.com=100/h or *=10/s.',
		],
		[
			'recipient_domain_limits',
			'a.test=100/1h, a.test=3/60m',
			'"a.test=100/h" and "a.test=3/h" have the same period; use one of them.',
		],
	])('are rejected if the user sets %s to %s', async (name, value, why) => {
		const project = await makeProject();
		const refused = await set(project, name, value);
		expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`${name}: ${why}`) });
	});
});
