// `send` with a repeated idempotency key reports the first answer, on a database and on a server.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliOptions, cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { type RunningServer, startServer } from '../../../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

type Run = (words: readonly string[], options?: CliOptions) => ReturnType<typeof cli>;

let sink: SmtpSink;
let server: RunningServer;
const ways = new Map<string, { run: Run; database: Project }>();
beforeAll(async () => {
	sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			const refusal = Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 });
			callback(address.startsWith('gone@') ? refusal : null);
		},
	});
	const [local, served] = [await makeProject({ smtp: sink.port }), await makeProject({ smtp: sink.port })];
	ways.set('a database', { run: local.run, database: local });
	server = await startServer(served.db);
	const { baseUrl, token } = server;
	const run: Run = (words, options = {}) =>
		cli(['--base-url', baseUrl, ...words], { ...options, env: { MAILCTL_TOKEN: token } });
	ways.set('a server', { run, database: served });
});
afterAll(async () => {
	await server.stop();
	await sink.close();
});

const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T'];
function theWay(name: string) {
	const found = ways.get(name);
	if (found === undefined) throw new Error(`${name} is not known`);
	return found;
}

const formats: readonly [format: string, options: CliOptions][] = [
	['tsv', {}],
	['json', {}],
	['table', { columns: 100 }],
];

describe.each(['a database', 'a server'])('send --idempotency-key on %s', (way) => {
	const run: Run = (words, options) => theWay(way).run(words, options);

	describe.each(formats)('with -o %s', (format, options) => {
		it.each([
			['sent', [], 0, 'sent 1'],
			['bounced', ['--to', `gone@${format}.example.com`], 9, 'sent 1, bounced 1'],
		])('prints the first answer again and sends nothing if the key belongs to a mail that was %s', async (what, to, code, outcome) => {
			const words = [
				...mail,
				'--to',
				'ann@example.com',
				...to,
				'--idempotency-key',
				`${format}-${what}`,
				'-o',
				format,
			];
			const first = await run(words, options);
			expect(first).toMatchObject({ code, stderr: expect.stringContaining(outcome) });
			expect(first.stderr).not.toContain('already accepted');
			const before = sink.received.length;

			const again = await run(words, options);

			const repeated = 'already accepted with this --idempotency-key: nothing is sent again';
			const notes = [repeated, outcome];
			expect(again).toEqual({
				code,
				stdout: first.stdout,
				stderr: notes
					.map((note) => (format === 'json' ? `${JSON.stringify({ note })}\n` : `${note}\n`))
					.join(''),
			});
			expect(sink.received).toHaveLength(before);
		});
	});

	it('exits with 0 for a repeated key while the queue is paused, because the mail is already sent', async () => {
		const words = [...mail, '--to', 'ann@example.com', '--idempotency-key', 'paused'];
		expect(await run(words)).toMatchObject({ code: 0 });
		await theWay(way).database.run(['engine', 'queue', 'pause']);
		const again = await run(words);
		await theWay(way).database.run(['engine', 'queue', 'resume']);
		expect(again).toMatchObject({ code: 0, stderr: expect.stringMatching(/\nsent 1\n$/) });
	});

	it('rejects an invalid key with exit code 2, also in a dry run', async () => {
		for (const key of ['', 'a b', 'ä', 'x'.repeat(256)])
			for (const more of [[], ['-n']])
				expect(await run([...mail, '--to', 'ann@example.com', '--idempotency-key', key, ...more])).toEqual({
					code: 2,
					stdout: '',
					stderr: 'error: --idempotency-key: Use 1 to 255 visible ASCII characters.\n',
				});
	});
});
