import { stripVTControlCharacters } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { errorOf, makeProject, type Project, said } from '../../../support/project.js';
import { type FaultScript, type FaultServer, startFaultServer } from '../../../support/smtp-fault.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';

const hello = ['send', '--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hi'];
const toAnn = [...hello, '--to', 'ann@example.com'];

describe('mailctl send with a failing mail server', () => {
	let server: FaultServer | null = null;
	afterEach(() => server?.close());

	const start = async (script: FaultScript) => {
		server = await startFaultServer(script);
		return makeProject({ smtp: server.port });
	};
	const states = async (project: Project) =>
		((await project.json(['messages', 'list', '--sort', 'date_created'])) as { state: string }[]).map(
			({ state }) => state,
		);

	it('exits with 14 if nothing listens on the port, and a worker sends the queued messages later', async () => {
		const gone = await startSmtpSink();
		await gone.close();
		const project = await makeProject({ smtp: gone.port });
		const { code, stderr, stdout } = await project.run([...toAnn, '-o', 'json']);
		expect({ code, answer: JSON.parse(stdout) }).toMatchObject({ code: 14, answer: { messages_created: 1 } });
		expect(errorOf({ stderr })).toMatchObject({
			code: 'accepted_and_queued',
			hint: `nothing is lost: when the cause is gone, run mailctl --db ${project.db} worker --drain`,
			retryable: false,
		});
		expect(await states(project)).toEqual(['queued']);
		const worker = await project.run(['worker', '--drain', '-o', 'json']);
		expect({ code: worker.code, error: errorOf(worker)['code'] }).toEqual({
			code: 14,
			error: 'queue_paused',
		});
		const sink = await startSmtpSink();
		await project.json(['engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`]);
		expect(await project.json(['worker', '--drain'])).toMatchObject({ sent: 1 });
		expect(sink.received).toHaveLength(1);
		await sink.close();
	});

	it('exits with 9 if the server rejects a recipient, who becomes inactive in every list', async () => {
		const project = await start({
			on: (phase, line) =>
				phase === 'RCPT' && line.includes('gone@') ? { answer: '550 5.1.1 no such user' } : undefined,
		});
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		for (const email of ['gone@example.com', 'ann@example.com'])
			await project.json(['subscribers', 'create', '-l', '1', '--email', email]);
		const run = await project.run([...toAnn, '--to', 'gone@example.com']);
		expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 9, stderr: 'sent 1, bounced 1\n' });
		expect(await states(project)).toEqual(['sent', 'bounced']);
		expect(
			await project.json(['subscribers', 'list', '-l', '1', '--fields', 'email,is_active,disable_reason']),
		).toEqual([
			{ email: 'gone@example.com', is_active: false, disable_reason: 'HARDBOUNCED' },
			{ email: 'ann@example.com', is_active: true, disable_reason: null },
		]);
		const again = await project.run([...hello, '--to', 'gone@example.com', '-o', 'json']);
		expect({ code: again.code, answer: JSON.parse(again.stdout), said: said(again) }).toEqual({
			code: 9,
			answer: { messages: [], result: true, messages_created: 0 },
			said: [
				{ note: 'no message to gone@example.com: suppressed or inactive' },
				{ hint: `mailctl --db ${project.db} why gone@example.com` },
			],
		});
		const seen = await project.run([...hello, '--to', 'gone@example.com'], {
			interactive: true,
			columns: 200,
		});
		expect([seen.code, seen.stdout, stripVTControlCharacters(seen.stderr)]).toEqual([
			9,
			'',
			'no message to gone@example.com: suppressed or inactive\n' +
				`hint: mailctl --db ${project.db} why gone@example.com\n`,
		]);
		expect((await project.run([...hello, '--to', 'gone@example.com', '-q'])).stderr).toBe('');
		expect(await project.json(['report'])).toMatchObject({ total: { sent: 1, hardbounced_percent: 50 } });
	});

	it('exits with 0 and prints a hint if the server defers a recipient', async () => {
		const project = await start({ at: { RCPT: { answer: '451 4.7.1 greylisted' } } });
		expect(await project.run([...toAnn, '-q'])).toMatchObject({ code: 0, stderr: '' });
		const { code, stderr } = await project.run(toAnn);
		expect({ code, stderr }).toEqual({
			code: 0,
			stderr: `sent 0, deferred 1\nhint: deferred messages are tried again by mailctl --db ${project.db} worker\n`,
		});
		expect(await states(project)).toEqual(['deferred', 'deferred']);
		expect(await project.run(['worker', '--drain'])).toMatchObject({
			code: 14,
			stderr: expect.stringMatching(
				/^error: not sent yet: 2 deferred; mailctl can send the next one at \d{4}-.* UTC\nhint: .* worker sends them when they are due\n$/,
			),
		});
	});

	it('exits with 9 if the server refuses the mail after the final dot', async () => {
		const project = await start({ at: { dot: { answer: '554 5.7.1 spam' } } });
		expect(await project.run(toAnn)).toMatchObject({ code: 9, stderr: 'sent 0, failed 1\n' });
		expect(await states(project)).toEqual(['failed']);
	});

	it('exits with 13 if the answer to the final dot is lost', async () => {
		const project = await start({ at: { dot: { drop: true } } });
		expect(await project.run(toAnn)).toMatchObject({
			code: 13,
			stderr:
				'sent 0, uncertain 1\n' +
				`hint: mailctl --db ${project.db} messages list --status uncertain shows what may have arrived\n`,
		});
		expect(await states(project)).toEqual(['uncertain']);
	});

	it('exits with 12 if there is no progress within --wait-timeout', async () => {
		const project = await start({ at: { MAIL: { hang: true } } });
		const result = await project.run([...toAnn, '--wait-timeout', '200ms', '-o', 'json']);
		expect({ code: result.code, error: errorOf(result) }).toMatchObject({
			code: 12,
			error: {
				code: 'stalled',
				hint: `accepted and queued, so do not repeat the command; mailctl --db ${project.db} worker continues`,
			},
		});
		expect(await states(project)).toEqual(['queued']);
	});
});
