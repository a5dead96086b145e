import { afterEach, expect, it } from 'vitest';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { makeProject } from '../../../support/project.js';
import { type FaultServer, startFaultServer } from '../../../support/smtp-fault.js';

let server: FaultServer | undefined;
afterEach(async () => {
	await server?.close();
	server = undefined;
});

it('mailctl messages get shows which limit delays a message, and when the delay ends', async () => {
	server = await startFaultServer({});
	const project = await makeProject({ smtp: server.port });
	await project.json(['engine', 'settings', 'set', 'recipient_domain_limits', 'slow.example=1/1h']);
	const words = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];
	await project.json([...words, '--to', 'a@slow.example', '--to', 'b@slow.example']);
	const worker = new AbortController();
	const running = project.run(['worker'], {
		interrupts: worker.signal,
		heard: (text) => {
			if (text.includes('a limit delays the other messages')) worker.abort(new Interrupted('SIGTERM'));
		},
	});
	expect((await running).code).toBe(0);
	const { stdout } = await project.run(['messages', 'list', '--sort', 'date_created', '-o', 'name']);
	const [sent = '', held = ''] = stdout.trim().split('\n');
	expect(await project.json(['messages', 'get', held])).toMatchObject({
		state: 'queued',
		attempts: 0,
		held_by: [
			{
				setting: 'recipient_domain_limits',
				limit: 'slow.example=1/h',
				domain: 'slow.example',
				until: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
			},
		],
	});
	const shown = await project.run(['messages', 'get', held], { columns: 120 });
	expect(shown.stdout).toMatch(
		/delayed by the limit slow\.example=1\/h of recipient_domain_limits, at least until \d{4}-\d\d-\d\d \d\d:\d\d$/m,
	);
	expect(await project.json(['messages', 'get', sent])).toMatchObject({ state: 'sent', held_by: [] });
});
