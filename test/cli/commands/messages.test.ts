import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../support/project.js';
import { type FaultServer, startFaultServer } from '../../support/smtp-fault.js';

describe('mailctl messages', () => {
	let project: Project;
	let server: FaultServer;
	let ids: string[];

	beforeAll(async () => {
		server = await startFaultServer({
			on: (phase, line) =>
				phase === 'RCPT' && line.includes('later@') ? { answer: '451 4.2.0 try later \x1b[31m' } : undefined,
		});
		project = await makeProject({ smtp: server.port });
		const answer = (await project.json([
			...['send', '--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hi', '--tag', 'a'],
			...['--to', 'ann@example.com', '--to', 'later@example.com', '--now', '2026-11-01T10:00:00Z'],
		])) as { messages: { id: string }[] };
		ids = answer.messages.map(({ id }) => id);
	});
	afterAll(() => server.close());

	it('filters by state, recipient and day', async () => {
		const list = async (...words: string[]) =>
			((await project.json(['messages', 'list', ...words])) as { to: string }[]).map(({ to }) => to);
		expect(await list('--status', 'deferred')).toEqual(['later@example.com']);
		expect(await list('--to', 'ANN@example.com')).toEqual(['ann@example.com']);
		expect(await list('--since', '2026-11-01')).toHaveLength(2);
		expect(await list('--since', '2026-11-02')).toEqual([]);
		expect(await list('--limit', '1')).toEqual(['later@example.com']);
		expect(await list('--tag', 'a')).toHaveLength(2);
		expect(await list('--tag', 'A')).toEqual([]);
		// The messages were created at 10:00 UTC, which is midnight of the next day in Kiritimati.
		expect(await list('--since', '2026-11-02', '--time-zone', 'Pacific/Kiritimati')).toHaveLength(2);
		expect(await list('--since', '2026-11-02', '--time-zone', 'Pacific/Auckland')).toHaveLength(0);
		expect(await project.run(['messages', 'list', '--status', 'sennt'])).toMatchObject({
			code: 2,
			stderr: 'error: --status: unknown value "sennt"\nhint: did you mean sent?\n',
		});
		expect((await project.run(['messages', 'list', '--since', 'soon'])).code).toBe(2);
	});

	it('shows every delivery attempt, and prints one message as an object but several as an array', async () => {
		expect(await project.json(['messages', 'get', ids[1] ?? ''])).toMatchObject({
			id: ids[1],
			delivery_attempts: [
				{
					number: 1,
					outcome: 'deferred',
					phase: expect.stringMatching(/rcpt/i),
					code: 451,
					enhanced: '4.2.0',
				},
			],
		});
		expect(await project.json(['messages', 'get', ...ids.map((id) => id.toUpperCase())])).toMatchObject([
			{ id: ids[0] },
			{ id: ids[1] },
		]);
	});

	it('escapes control characters in the mail server’s replies', async () => {
		const shown = await project.run(['messages', 'get', ids[1] ?? ''], { columns: 80 });
		expect(shown.stdout.replaceAll(/\x1b\[[12]?[0-9]?m/g, '')).not.toContain('\x1b');
	});

	it('"raw" prints bytes into a pipe, text on a terminal, and base64 in JSON', async () => {
		const raw = await project.run(['messages', 'raw', ids[0] ?? '']);
		expect(raw.stdout).toMatch(/^Subject: Hello\r$/m);
		expect(await project.json(['messages', 'raw', ids[0] ?? ''])).toEqual({
			id: ids[0],
			raw_base64: Buffer.from(raw.stdout).toString('base64'),
		});
		const shown = await project.run(['messages', 'raw', ids[0] ?? ''], { columns: 80 });
		expect(shown.stdout).toMatch(/^Subject: Hello$/m);
	});
});
