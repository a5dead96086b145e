// Who is stopped between acceptance and delivery, with a real mail server as the witness.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../support/project.js';
import { type RunningServer, startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const [ann, bob, carl, dora] = ['ann@example.org', 'bob@example.org', 'carl@example.org', 'dora@example.org'];
const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];

describe('what is suppressed after it was accepted', () => {
	let sink: SmtpSink;
	let project: Project;
	let server: RunningServer | null;
	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		server = null;
	});
	afterEach(async () => {
		await server?.stop();
		await sink.close();
	});
	const recipients = () => sink.received.map(({ to }) => to.toSorted()).toSorted();
	const states = async () => {
		const messages = (await project.json(['messages', 'list'])) as { to: string; state: string }[];
		return messages.map(({ to, state }) => `${to} ${state}`).toSorted();
	};

	it('is canceled at the lease: all mail, or bulk mail alone', async () => {
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		for (const email of [ann, bob, carl, dora])
			await project.json(['subscribers', 'create', '-l', '1', '--email', email]);
		await project.run([
			'send',
			'--list',
			'1',
			'--bulk',
			'-y',
			'--expect-count',
			'4',
			'--campaign',
			'j',
			...mail,
		]);
		await project.run(['send', '--to', ann, '--to', bob, ...mail]);
		await project.json(['suppressions', 'add', ann, '--reason', 'COMPLAINED']);
		await project.json(['suppressions', 'add', bob]);
		await project.json(['suppressions', 'add', carl, '--reason', 'UNSUBSCRIBED', '--expires', '1d']);
		expect((await project.run(['worker', '--drain'])).code).toBe(0);
		expect(recipients()).toEqual([[bob], [dora]]);
		expect(await states()).toEqual([
			...[`${ann} canceled`, `${ann} canceled`, `${bob} canceled`, `${bob} sent`],
			...[`${carl} canceled`, `${dora} sent`],
		]);
	});

	it('is left out of the copies of a message, envelope and header', async () => {
		await project.run(['send', '--to', carl, '--cc', ann, '--cc', dora, '--bcc', bob, ...mail]);
		await project.json(['suppressions', 'add', ann, bob, '--reason', 'HARDBOUNCED']);
		await project.run(['worker', '--drain']);
		expect(recipients()).toEqual([[carl, dora]]);
		const raw = sink.received[0]?.raw.toString() ?? '';
		expect(/^Cc: .*$/m.exec(raw)?.[0].trim()).toBe(`Cc: ${dora}`);
		expect(raw).not.toContain(ann);
	});

	it('and lifted again is written to, but in no list until somebody activates it', async () => {
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', '1', '--email', ann]);
		await project.json(['suppressions', 'add', ann, '--reason', 'HARDBOUNCED']);
		await project.json(['suppressions', 'remove', ann, '-y']);
		await project.run(['send', '--to', ann, ...mail]);
		await project.run(['worker', '--drain']);
		expect(recipients()).toEqual([[ann]]);
		const bulk = (job: string, count: string) =>
			project.run([
				...['send', '--list', '1', '-y', '--expect-count', count, '--campaign', job, '--again', ...mail],
			]);
		expect((await bulk('first', '1')).code).toBe(2);
		await project.json(['subscribers', 'activate', ann, '-l', '1']);
		expect((await bulk('second', '1')).code).toBe(0);
	});

	it('of an erased person leaves no trace in what is listed, exported or imported', async () => {
		await project.json(['suppressions', 'add', ann, bob, '--reason', 'HARDBOUNCED']);
		const before = (await project.run(['suppressions', 'export', '--format', 'csv'])).stdout;
		await project.json(['subscribers', 'erase', ann, '--confirm', ann]);
		const path = await project.file('before.csv', before);
		const counts = { read: 2, created: 0, unchanged: 1, rejected: 1 };
		expect(await project.json(['suppressions', 'import', path], { code: 9 })).toMatchObject(counts);
		for (const argv of [['list', '--all'], ['export'], ['list', '--match', 'ann']])
			expect((await project.run(['suppressions', ...argv])).stdout).not.toContain('ann');
		expect(JSON.stringify(await project.json(['suppressions', 'list']))).toContain(bob);
	});

	it('over HTTP is for whoever may administer, and seen by whoever may read', async () => {
		// The first start makes a token where there is none.
		server = await startServer(project.db);
		const token = async (scope: string) =>
			Object(await project.json(['engine', 'tokens', 'create', '--name', scope, '--scope', scope])).token;
		const reader = await token('read');
		const sender = await token('send');
		const ask = async (key: string, method: string, path: string, body?: object) => {
			const headers = { 'X-Secure-Token': key, 'Content-Type': 'application/json' };
			const sent = body === undefined ? {} : { body: JSON.stringify(body) };
			const answer = await fetch(`${server?.baseUrl}/ext/suppressions/${path}`, { method, headers, ...sent });
			return answer.status;
		};
		expect(await ask(sender, 'GET', '')).toBe(403);
		expect(await ask(reader, 'GET', '?reason=MANUAL')).toBe(200);
		expect(await ask(reader, 'POST', 'check/', { rows: [{ email: ann }] })).toBe(200);
		expect(await ask(reader, 'POST', '', { email: ann })).toBe(403);
		expect(await ask(reader, 'PUT', '', { rows: [{ email: ann }] })).toBe(403);
		expect(await ask(reader, 'POST', 'remove/', { email: ann })).toBe(403);
		expect(await project.json(['suppressions', 'list'])).toEqual([]);
	});
});
