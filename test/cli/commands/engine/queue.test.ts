import { afterEach, describe, expect, it } from 'vitest';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { eventually } from '../../../support/eventually.js';
import { makeProject } from '../../../support/project.js';
import { type FaultServer, startFaultServer } from '../../../support/smtp-fault.js';

const queue = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];
const send = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T'];
const none = { sent: 0, deferred: 0, bounced: 0, failed: 0, uncertain: 0, canceled: 0, queued: 0 };
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/);

let server: FaultServer | undefined;
afterEach(async () => {
	await server?.close();
	server = undefined;
});

describe('mailctl engine queue', () => {
	it('shows waiting messages, and the last reply of each domain that defers mail', async () => {
		server = await startFaultServer({ at: { RCPT: { answer: '451 4.7.1 Greylisted' } } });
		const project = await makeProject({ smtp: server.port });
		await project.json([...send, '--to', 'a@slow.example', '--to', 'b@slow.example']);
		await project.json([...queue, '--to', 'c@example.com']);
		expect(await project.json(['engine', 'queue', 'stats'])).toEqual({
			paused: null,
			messages: { deferred: 2, queued: 1 },
			due: 1,
			held: 0,
			oldest: time,
			next_due: time,
			workers: [],
			deferred: [{ domain: 'slow.example', messages: 2, next_due: time, last_reply: '451 4.7.1 Greylisted' }],
			replies: [{ state: 'deferred', reply: '451 4.7.1 Greylisted', count: 2 }],
			limits: [],
		});
		const shown = await project.run(['engine', 'queue', 'stats'], { columns: 120 });
		expect(shown.stdout).toMatch(
			/^the queue is not paused\n[\s\S]*; oldest waiting message: 2[\s\S]*slow\.example: 2, next .*451 4\.7\.1 Greylisted\n[\s\S]*\n {2}2 deferred: 451 4\.7\.1 Greylisted\n$/,
		);
	});

	it('shows each limit that delays messages, the number of delayed messages, and the next sending time', async () => {
		server = await startFaultServer({});
		const project = await makeProject({ smtp: server.port });
		const limits = 'slow.example=1/1h, *=2/1h';
		await project.json(['engine', 'settings', 'set', 'recipient_domain_limits', limits]);
		const to = ['a@slow.example', 'b@slow.example', 'c@slow.example', 'a@b.test', 'b@b.test', 'c@b.test'];
		await project.json([...queue, ...to.flatMap((address) => ['--to', address])]);
		const worker = new AbortController();
		const running = project.run(['worker'], { interrupts: worker.signal });
		await eventually(() => expect(server?.bodies).toHaveLength(3));
		worker.abort(new Interrupted('SIGTERM'));
		await running;
		const setting = 'recipient_domain_limits';
		expect(await project.json(['engine', 'queue', 'stats'])).toMatchObject({
			messages: { sent: 3, queued: 3 },
			limits: [
				{ setting, limit: 'slow.example=1/h', domain: 'slow.example', messages: 2, next: time, last: time },
				{ setting, limit: '*=2/h', domain: 'b.test', messages: 1, next: time, last: time },
			],
		});
		const shown = await project.run(['engine', 'queue', 'stats'], { columns: 120 });
		expect(shown.stdout).toMatch(
			/\ndelayed by limits:\n {2}recipient_domain_limits slow\.example=1\/h: 2, next 20\S+ [\d:]{8} UTC, last 20\S+ [\d:]{8} UTC\n {2}recipient_domain_limits \*=2\/h \(b\.test\): 1, /,
		);
	});

	it('"pause" makes "send" and "worker --drain" exit with 14 until the user runs "resume"', async () => {
		server = await startFaultServer({});
		const project = await makeProject({ smtp: server.port });
		const paused = { kind: 'manual', reason: 'moving', since: time, retry_at: null, faults: 0 };
		expect(await project.json(['engine', 'queue', 'pause', '--reason', 'moving'])).toEqual(paused);
		for (const words of [
			[...send, '--to', 'a@example.com'],
			['worker', '--drain'],
		]) {
			const { code, stderr } = await project.run(words);
			expect([code, stderr]).toEqual([
				14,
				expect.stringMatching(
					/error: (accepted and queued, so do not repeat the command: )?the queue is paused \(moving\)\nhint: .*engine queue resume/,
				),
			]);
		}
		expect(server.connections).toBe(0);
		expect(await project.json(['engine', 'queue', 'stats'])).toMatchObject({
			paused,
			messages: { queued: 1 },
		});
		expect(await project.run(['engine', 'queue', 'resume'])).toEqual({
			code: 0,
			stdout: 'true\n',
			stderr: expect.stringMatching(/^hint: no worker is running: mailctl .*worker\n$/),
		});
		expect(await project.json(['worker', '--drain'])).toEqual({ ...none, sent: 1 });
	});

	it('shows a fault until a worker sends a message or the user sets smtp_url', async () => {
		let isBroken = true;
		server = await startFaultServer({
			on: (phase) => (phase === 'connect' && isBroken ? { answer: '554 5.3.2 Not today' } : undefined),
		});
		const project = await makeProject({ smtp: server.port });
		const { code, stderr } = await project.run([...send, '--to', 'a@example.com']);
		expect([code, stderr]).toEqual([14, expect.stringContaining('greeting: 554 5.3.2 Not today')]);
		const stats = () => project.json(['engine', 'queue', 'stats']);
		expect(await stats()).toMatchObject({
			paused: { kind: 'fault', reason: 'greeting: 554 5.3.2 Not today', retry_at: time, faults: 1 },
			messages: { queued: 1 },
		});
		expect(await project.json(['messages', 'list'])).toMatchObject([{ state: 'queued', attempts: 0 }]);
		isBroken = false;
		expect(await project.json(['worker', '--drain'])).toEqual({ ...none, sent: 1 });
		expect(await stats()).toMatchObject({ paused: null });
		isBroken = true;
		await project.run([...send, '--to', 'b@example.com']);
		await project.json(['engine', 'settings', 'set', 'smtp_url', `smtp://127.0.0.1:${server.port}`]);
		expect(await stats()).toMatchObject({ paused: null, messages: { queued: 1 } });
	});
});
