import { describe, expect, it } from 'vitest';
import { Interrupted } from '../../../src/cli/frame/errors.js';
import { makeProject } from '../../support/project.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

const none = { sent: 0, deferred: 0, bounced: 0, failed: 0, uncertain: 0, canceled: 0, queued: 0 };
const queue = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];

describe('mailctl worker', () => {
	it('--drain sends what is due and exits', async () => {
		const sink = await startSmtpSink();
		const project = await makeProject({ smtp: sink.port });
		expect(await project.json(['worker', '--drain'])).toEqual(none);
		await project.json([...queue, '--to', 'a@example.com', '--to', 'b@example.com']);
		expect(await project.json(['worker', '--drain', '-n'])).toMatchObject({
			dry_run: true,
			messages: { queued: 2 },
		});
		expect(sink.received).toEqual([]);
		expect(await project.json(['worker', '--drain', '--connections', '1', '--rate', '100/s'])).toEqual({
			...none,
			sent: 2,
		});
		await sink.close();
	});

	it('sends new messages while it runs, and exits with 0 when it is stopped', async () => {
		const sink = await startSmtpSink();
		const project = await makeProject({ smtp: sink.port });
		const stop = new AbortController();
		const running = project.json(['worker'], { interrupts: stop.signal });
		await project.json([...queue, '--to', 'a@example.com']);
		await sink.until(1);
		stop.abort(new Interrupted('SIGTERM'));
		expect(await running).toEqual({ ...none, sent: 1 });
		await sink.close();
	});

	it('exits with 2 without a mail server or with an invalid rate', async () => {
		const project = await makeProject();
		expect((await project.run(['worker', '--drain'])).code).toBe(2);
		const other = await makeProject({ smtp: 2525 });
		expect(await other.run(['worker', '--rate', '0'])).toMatchObject({
			code: 2,
			stderr: 'error: --rate "0" is not a rate, such as 10/s, 600/m or 100/h\n',
		});
	});

	it('exits with 2 if --base-url names a server', async () => {
		const project = await makeProject();
		const { code, stderr } = await project.run(['--base-url', 'http://127.0.0.1:9', 'worker']);
		expect(code).toBe(2);
		expect(stderr).toMatch(/^error: /);
	});
});
