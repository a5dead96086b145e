// An interrupted send counts each released message exactly once.
import { afterEach, expect, it } from 'vitest';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { cli } from '../../../support/cli.js';
import { eventually } from '../../../support/eventually.js';
import { makeProject } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';
import { type Fault, startFaultServer } from '../../../support/smtp-fault.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';
import { startTampering } from '../../../support/tampering.js';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

/** Starts a mail server that answers for an address only after `pass(address)`, except for the first one. */
async function startGate() {
	const waiting = new Map<string, () => void>();
	const open = new Set(['first@example.com']);
	const sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			if (open.has(address)) callback();
			else waiting.set(address, () => callback());
		},
	});
	const pass = (address: string) => {
		open.add(address);
		waiting.get(address)?.();
	};
	opened.push(sink);
	return { sink, pass };
}

it('an interrupted send counts messages that the server sent after Ctrl-C', async () => {
	const { sink, pass } = await startGate();
	const project = await makeProject({ smtp: sink.port });
	const server = await startServer(project.db);
	opened.push({ close: () => server.stop() });
	const stop = new AbortController();
	const proxy = await startTampering(server.baseUrl, async (passing, ask) => {
		if (stop.signal.aborted) {
			pass('second@example.com');
			await sink.until(2);
			await eventually(async () =>
				expect(await project.json(['messages', 'list', '--status', 'sent'])).toHaveLength(2),
			);
		}
		return ask(passing);
	});
	opened.push(proxy, { close: () => pass('third@example.com') });
	const people = await project.file(
		'people.csv',
		'email\nfirst@example.com\nsecond@example.com\nthird@example.com\n',
	);
	const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--csv', people];
	const { code, stderr } = await cli(
		['--base-url', proxy.baseUrl, 'send', ...mail, '--yes', '--expect-count', '3'],
		{
			env: { MAILCTL_TOKEN: server.token },
			columns: 100,
			interrupts: stop.signal,
			heard: (text) => {
				if (text.includes('sending 1 of 3')) stop.abort(new Interrupted('SIGINT'));
			},
		},
	);
	expect(code).toBe(130);
	expect(stderr).toMatch(/^sent 2, still queued 1$/m);
});

it('send prints bounces even if the server finishes the campaign before it answers the release request', async () => {
	const faulty = await startFaultServer({
		on: (phase, line) =>
			phase === 'RCPT' && line.includes('b@') ? { answer: '550 5.1.1 No such user' } : undefined,
	});
	const project = await makeProject({ smtp: faulty.port });
	const server = await startServer(project.db);
	const proxy = await startTampering(server.baseUrl, async (passing, ask) => {
		const answered = await ask(passing);
		if (passing.path.endsWith('/release/'))
			await eventually(async () =>
				expect(await project.json(['campaigns', 'list'])).toMatchObject([{ state: 'finished' }]),
			);
		return answered;
	});
	opened.push(faulty, { close: () => server.stop() }, proxy);
	const file = await project.file('two.csv', 'email\na@example.com\nb@example.com\n');
	const mail = `send --from news@example.com --subject S --text T --csv ${file} --yes --expect-count 2`;
	const argv = ['--base-url', proxy.baseUrl, ...mail.split(' ')];
	const { code, stderr } = await cli(argv, { env: { MAILCTL_TOKEN: server.token }, columns: 100 });
	expect([code, stderr]).toEqual([9, expect.stringMatching(/^1 bounced: 550 5.1.1 No such user$/m)]);
});

/** Interrupts a send on a local database after the mail server got the message and before it answers. */
async function interruptedAtTheDot(answer: Fault) {
	const stop = new AbortController();
	const server = await startFaultServer({
		on: (phase) => {
			if (phase !== 'dot') return undefined;
			stop.abort(new Interrupted('SIGINT'));
			return answer;
		},
	});
	opened.push(server);
	const project = await makeProject({ smtp: server.port });
	const mail = ['--from', 'news@example.com', '--to', 'ann@example.com', '--subject', 'S', '--text', 'T'];
	const { code, stderr } = await project.run(['send', ...mail], { interrupts: stop.signal });
	return { code, stderr };
}

it('an interrupted send does not count a message as queued if it was sent', async () => {
	expect(await interruptedAtTheDot({ answer: '250 ok' })).toEqual({
		code: 130,
		stderr: 'sent 1\ninterrupted\n',
	});
});

it('an interrupted send prints which message may have arrived', async () => {
	const { code, stderr } = await interruptedAtTheDot({ drop: true });
	expect(code).toBe(130);
	expect(stderr).toContain('sent 0, uncertain 1\n');
	expect(stderr).toMatch(/^hint: mailctl .*messages list --status uncertain shows/m);
	expect(stderr).not.toContain('stays queued');
});
