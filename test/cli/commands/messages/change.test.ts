import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { makeProject, type Project, said } from '../../../support/project.js';
import { startFaultServer } from '../../../support/smtp-fault.js';

describe('mailctl messages retry', () => {
	const send = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T'];

	it('sends uncertain and deferred messages again, and shows all their attempts', async () => {
		const server = await startFaultServer({
			on: (phase, line, { number }) => {
				if (number > 2) return undefined;
				if (phase === 'RCPT' && line.includes('later@')) return { answer: '451 4.7.1 Later' };
				return phase === 'dot' ? { drop: true } : undefined;
			},
		});
		onTestFinished(() => server.close());
		const project = await makeProject({ smtp: server.port });
		const options = ['--to', 'later@example.com', '--to', 'lost@example.com', '--connections', '1'];
		expect((await project.run([...send, ...options])).code).toBe(13);
		const found = (await project.json(['messages', 'list', '--sort', 'date_created'])) as {
			id: string;
			state: string;
		}[];
		expect(found.map(({ state }) => state)).toEqual(['deferred', 'uncertain']);
		const ids = found.map(({ id }) => id);
		expect((await project.run(['worker', '--drain'])).code).toBe(14);
		expect(await project.json(['messages', 'retry', ...ids])).toMatchObject([
			{ state: 'deferred', attempts: 1 },
			{ state: 'queued', attempts: 1 },
		]);
		// Use up the two connections that the server drops.
		while (server.connections < 2) await project.run(['engine', 'smtp-test']);
		expect(await project.json(['worker', '--drain'])).toMatchObject({ sent: 2 });
		expect(await project.json(['messages', 'get', ids[1] ?? ''])).toMatchObject({
			state: 'sent',
			delivery_attempts: [
				{ number: 1, outcome: 'uncertain', phase: 'answer', code: null },
				{ number: 2, outcome: 'sent', phase: 'answer', code: 250 },
			],
		});
	});
});

describe('mailctl messages cancel and retry', () => {
	let project: Project;
	let ids: string[];
	const state = async (id = '') => ((await project.json(['messages', 'get', id])) as { state: string }).state;

	beforeEach(async () => {
		project = await makeProject({ smtp: 2525 });
		const answer = (await project.json([
			...['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'],
			...['--to', 'a@example.com', '--to', 'b@example.com', '--to', 'c@example.com'],
		])) as { messages: { id: string }[] };
		ids = answer.messages.map(({ id }) => id);
	});

	it('print an array in which each changed message occurs once', async () => {
		const [first = '', second = ''] = ids;
		const canceled = await project.json(['messages', 'cancel', first, second, first.toUpperCase(), '--yes']);
		expect(canceled).toMatchObject([
			{ id: first, state: 'canceled', delivery_attempts: [] },
			{ id: second, state: 'canceled' },
		]);
		expect(await project.json(['messages', 'retry', ids[2] ?? ''])).toMatchObject([{ state: 'queued' }]);
	});

	it('ask before they cancel, and change nothing in a dry run', async () => {
		const [first = ''] = ids;
		expect(await project.run(['messages', 'cancel', first])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('cancel the message to a@example.com'),
		});
		expect(await project.json(['messages', 'cancel', first, '-n'])).toMatchObject({
			dry_run: true,
			cancel: [first],
		});
		expect(await project.json(['messages', 'retry', first, '-n'])).toMatchObject({ retry: [first] });
		expect(await state(first)).toBe('queued');
	});

	it('read ids from standard input if --confirm gives their count', async () => {
		const stdin = `${ids.join('\n')}\n\n`;
		expect(await project.run(['messages', 'cancel', '-', '--confirm', '2'], { stdin })).toMatchObject({
			code: 2,
		});
		expect(await state(ids[0])).toBe('queued');
		const { code } = await project.run(['messages', 'cancel', '-', '--confirm', '3'], { stdin });
		expect([code, await state(ids[2])]).toEqual([0, 'canceled']);
	});

	it('exit with 5 if the only given message is refused, and with 9 if one of two messages is refused', async () => {
		const [first = '', second = ''] = ids;
		await project.json(['messages', 'cancel', first, '--yes']);
		const refused = await project.run(['messages', 'retry', first]);
		expect([refused.code, refused.stderr]).toEqual([
			5,
			'error: The message was canceled; it cannot be retried.\n',
		]);
		const partly = await project.run(['messages', 'retry', first, second, '-o', 'json']);
		expect([partly.code, JSON.parse(partly.stdout)]).toMatchObject([9, [{ id: second }]]);
		expect(said(partly)).toContainEqual({
			warning: `${first}: The message was canceled; it cannot be retried.`,
		});
	});

	it('change nothing if one id is unknown', async () => {
		const none = '00000000-0000-4000-8000-000000000000';
		expect((await project.run(['messages', 'cancel', ids[0] ?? '', none, '--yes'])).code).toBe(3);
		expect(await state(ids[0])).toBe('queued');
	});
});
