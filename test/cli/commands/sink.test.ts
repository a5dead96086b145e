import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTransport } from 'nodemailer';
import { describe, expect, it } from 'vitest';
import { Interrupted } from '../../../src/cli/frame/errors.js';
import { type CliOptions, cli } from '../../support/cli.js';
import { said } from '../../support/project.js';

/** Starts `mailctl sink` on a free port; `port` resolves when it listens. */
function start(argv: readonly string[], options: CliOptions = {}) {
	let tell: (port: number) => void;
	const port = new Promise<number>((resolve) => {
		tell = resolve;
	});
	const running = cli(['sink', '--port', '0', ...argv], {
		...options,
		heard: (all: string) => {
			const found = /listening on smtp:\/\/\S+:(\d+)/.exec(all)?.[1];
			if (found !== undefined) tell(Number(found));
		},
	});
	const ended = running.then((end) => Promise.reject(new Error(`it ended: ${JSON.stringify(end)}`)));
	ended.catch(() => undefined);
	return { running, port: Promise.race([port, ended]) };
}

interface Mail {
	from?: string;
	to?: string | string[];
	subject?: string;
	auth?: { user: string; pass: string };
}

async function mail(port: number, { auth, ...more }: Mail = {}): Promise<void> {
	const transport = createTransport({ host: '127.0.0.1', port, ...(auth !== undefined && { auth }) });
	const message = { from: 'news@example.com', to: 'ann@example.com', subject: 'Hello', ...more };
	try {
		await transport.sendMail({ ...message, text: '.leading dot\n' });
	} finally {
		transport.close();
	}
}

describe('mailctl sink', () => {
	it('counts mails, writes each to a file, and exits after the last expected one', async () => {
		const dir = join(await mkdtemp(join(tmpdir(), 'mailctl-sink-')), 'mails');
		const { running, port } = start(['--dir', dir, '--count', '2', '--wait', '1m', '-o', 'json']);
		await mail(await port, { subject: 'Grüße', auth: { user: 'any', pass: 'thing' } });
		await mail(await port, { to: ['bob@example.com', 'eve@example.com'] });
		const { code, stdout, stderr } = await running;
		expect(code, stderr).toBe(0);
		const files = (await readdir(dir)).sort();
		expect(JSON.parse(stdout)).toEqual([
			{
				time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
				from: 'news@example.com',
				to: ['ann@example.com'],
				subject: 'Grüße',
				message_id: expect.stringMatching(/^<.*@example\.com>$/),
				bytes: expect.any(Number),
				file: join(dir, files[0] ?? ''),
			},
			expect.objectContaining({
				to: ['bob@example.com', 'eve@example.com'],
				file: join(dir, files[1] ?? ''),
			}),
		]);
		expect(files).toEqual([
			expect.stringMatching(/-0001-ann@example\.com\.eml$/),
			expect.stringMatching(/-0002-bob@example\.com\.eml$/),
		]);
		expect(await readFile(join(dir, files[0] ?? ''), 'utf8')).toContain('\r\n\r\n.leading dot\r\n');
		const modes = await Promise.all([dir, join(dir, files[0] ?? '')].map((path) => stat(path)));
		expect(modes.map(({ mode }) => mode & 0o777)).toEqual([0o700, 0o600]);
	});

	it('prints a line for each mail and escapes control characters', async () => {
		const { running, port } = start(['--count', '1'], { columns: 100 });
		await mail(await port, { subject: 'Red \u001b[31malert\u202e' });
		const { code, stdout } = await running;
		expect(code).toBe(0);
		expect(stdout).toMatch(
			/^news@example\.com → ann@example\.com {2}Red \\x1b\[31malert\\u202e {2}[\d,]+ bytes\n$/,
		);
	});

	it('exits with 12 and prints the count if too few mails arrive in time', async () => {
		const { running, port } = start(['--count', '2', '--wait', '5s']);
		await mail(await port);
		expect(await running).toMatchObject({
			code: 12,
			stderr: expect.stringContaining('1 of 2 mails arrived within --wait'),
		});
		expect(await start(['--wait', '50ms']).running).toMatchObject({
			code: 12,
			stderr: expect.stringContaining('no mail arrived within --wait'),
		});
	});

	it('prints the mails so far on Ctrl-C and exits with 130', async () => {
		const interrupts = new AbortController();
		const { running, port } = start(['-o', 'json'], { interrupts: interrupts.signal });
		await mail(await port);
		interrupts.abort(new Interrupted('SIGINT'));
		const { code, stdout } = await running;
		expect(code).toBe(130);
		expect(JSON.parse(stdout)).toHaveLength(1);
	});

	it('refuses or defers mail to the given addresses and domains', async () => {
		const refusing = [
			'--refuse',
			'Bob@example.com',
			'--refuse',
			'@gone.example',
			'--defer',
			'cy@example.com',
		];
		const { running, port } = start([...refusing, '--count', '1', '-o', 'json']);
		const at = await port;
		const answers = { responseCode: 550, response: expect.stringMatching(/^550 5\.1\.1 /) };
		for (const to of ['BOB@example.com', 'eve@gone.example'])
			await expect(mail(at, { to })).rejects.toMatchObject(answers);
		await expect(mail(at, { to: 'cy@example.com' })).rejects.toMatchObject({
			responseCode: 451,
			response: expect.stringMatching(/^451 4\.3\.0 /),
		});
		await mail(at, { to: ['bob@example.com', 'ann@example.com', 'ann@sub.gone.example'] });
		const { code, stdout, stderr } = await running;
		expect(code).toBe(0);
		expect(JSON.parse(stdout)).toEqual([
			expect.objectContaining({ to: ['ann@example.com', 'ann@sub.gone.example'] }),
		]);
		expect(said({ stderr })).toEqual(
			expect.arrayContaining([{ note: 'refused BOB@example.com' }, { note: 'deferred cy@example.com' }]),
		);
	});

	it.each([
		[['--refuse', 'bob'], '--refuse: "bob" is not an e-mail address: it has no @; it is not @DOMAIN either'],
		[['--defer', '@'], '--defer: "@" is not an e-mail address'],
	])('rejects %j', async (words, message) => {
		const { code, stderr } = await cli(['sink', '--port', '0', ...words]);
		expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
	});

	it('rejects a port in use, and a --dir that is a file', async () => {
		const server = createServer();
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		const address = server.address();
		const port = typeof address === 'object' && address !== null ? address.port : 0;
		expect(await cli(['sink', '--port', String(port)])).toMatchObject({
			code: 2,
			stderr: `error: port ${port} of 127.0.0.1 is in use\nhint: give another --port\n`,
		});
		server.close();
		const file = join(await mkdtemp(join(tmpdir(), 'mailctl-sink-')), 'file');
		await writeFile(file, '');
		expect((await cli(['sink', '--dir', file])).stderr).toContain(`--dir ${file} is not a folder`);
	});

	it('defers a mail that it cannot write to disk, and exits with 74', async () => {
		const dir = await mkdtemp(join(tmpdir(), 'mailctl-sink-'));
		const { running, port } = start(['--dir', dir]);
		const at = await port;
		await rm(dir, { recursive: true });
		await expect(mail(at)).rejects.toMatchObject({ responseCode: 451 });
		expect(await running).toMatchObject({
			code: 74,
			stderr: expect.stringContaining(`cannot write a mail to ${dir}: ENOENT`),
		});
	});
});
