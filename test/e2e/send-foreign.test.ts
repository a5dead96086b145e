// Campaigns on another service, with local records in a separate home. The service records the recipients of each
// call.
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type MailService, type MailServiceOptions, startMailService } from '../support/campaigns-service.js';
import { type CliResult, cli } from '../support/cli.js';
import { djangoMissing, startDjango } from '../support/drf.js';

const missing = await djangoMissing();

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
	for (const end of endings.splice(0)) await end();
});

let home: string;
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), 'mailctl-send-foreign-'));
});

async function start(options: MailServiceOptions = {}) {
	const service = await startMailService(options);
	endings.push(service.close);
	return { service, call: callerOf(service) };
}

function callerOf({ baseUrl }: MailService) {
	return (...words: string[]): Promise<CliResult> =>
		cli(['--base-url', baseUrl, '--no-input', '--retries', '0', ...words], {
			env: { HOME: home, MAILCTL_TOKEN: 't' },
		});
}

const mail = ['--from', 'news@example.com', '--subject', 'Hi #name#', '--text', 'Hello'];
const subscribers = [
	{ email: 'ann@example.com', name: 'Ann' },
	{ email: 'bob@example.com', name: 'Bob' },
];

async function table(rows: number): Promise<string> {
	const path = join(home, 'people.csv');
	const lines = Array.from({ length: rows }, (_, index) => `p${index}@example.com,P${index}`);
	await writeFile(path, `email,name\n${lines.join('\n')}\n`);
	return path;
}

describe('send --list on a service without campaigns', () => {
	it('sends each active subscriber a mail with their variables, and says that delivery is not reported', async () => {
		const { service, call } = await start({ subscribers });
		const { code, stdout, stderr } = await call(
			...['send', ...mail, ...'--list 1 --campaign november -y --expect-count 2 -o json'.split(' ')],
		);
		expect({ code, stderr }).toMatchObject({ code: 0 });
		expect(JSON.parse(stdout)).toMatchObject({
			name: 'november',
			state: 'finished',
			recipients: 2,
			id: expect.stringMatching(/^[0-9a-f-]{36}$/),
			messages: { accepted: 2 },
		});
		expect(stderr).toContain('the service accepted 2 messages; it does not report their delivery');
		expect(service.calls.map(({ to, context }) => ({ to, context }))).toEqual(
			expect.arrayContaining([
				{ to: ['ann@example.com'], context: { name: 'Ann' } },
				{ to: ['bob@example.com'], context: { name: 'Bob' } },
			]),
		);
		expect(stderr).not.toMatch(/\bsent\b/);
		const status = await call('campaigns', 'get', 'november', '-o', 'json');
		expect(JSON.parse(status.stdout)).toMatchObject({
			id: JSON.parse(stdout).id,
			messages: { accepted: 2 },
			rows: 2,
			is_complete: true,
		});
		expect(await call('campaigns', 'list', '-o', 'name')).toMatchObject({ code: 0, stdout: 'november\n' });
		expect(await call('campaigns', 'get', 'novembre')).toMatchObject({
			code: 3,
			stderr: expect.stringContaining('november'),
		});
	});
});

describe('send --csv on a service without campaigns', () => {
	it('ends with 13 if a call got no answer, and repeats that call only with --retry-unknown', async () => {
		let isBroken = true;
		const { service, call } = await start({
			react: ({ to }) => (isBroken && to.includes('p1@example.com') ? { kind: 'cut' } : { kind: 'make' }),
		});
		const results = join(home, 'results.csv');
		const first = await call(
			...['send', ...mail, '--csv', await table(3), '--campaign', 'j', '-y', '--expect-count', '3'],
			...['--results', results, '-o', 'json'],
		);
		expect(first).toMatchObject({ code: 13, stderr: expect.stringContaining('--retry-unknown') });
		expect(JSON.parse(first.stdout)).toMatchObject({ messages: { accepted: 2, uncertain: 1 } });
		expect((await readFile(results, 'utf8')).split('\r\n')).toEqual([
			'line,to,id,state,code,text,attempts,campaign_unique_id',
			expect.stringMatching(/^2,p0@example\.com,0{8}-[-0-9]{27},accepted,,,1,$/),
			expect.stringMatching(/^3,p1@example\.com,,uncertain,network,.+,1,$/),
			expect.stringMatching(/^4,p2@example\.com,0{8}-[-0-9]{27},accepted,,,1,$/),
			'',
		]);
		isBroken = false;
		expect(await call('campaigns', 'resume', 'j')).toMatchObject({ code: 13 });
		expect(service.calls).toHaveLength(3);
		expect(await call('campaigns', 'resume', 'j', '--retry-unknown')).toMatchObject({ code: 0 });
		expect(service.timesSent()).toEqual({ 'p0@example.com': 1, 'p1@example.com': 2, 'p2@example.com': 1 });
	});

	it('stops with 5 if the service refuses the sender, and continues once the sender is verified', async () => {
		let isVerified = false;
		const { service, call } = await start({
			react: () =>
				isVerified
					? { kind: 'make' }
					: { kind: 'refuse', status: 400, body: { from: ['Sender address is not verified.'] } },
		});
		const words = ['send', ...mail, '--csv', await table(3), '--campaign', 'j', '-y', '--expect-count', '3'];
		const results = join(home, 'stopped.csv');
		expect(await call(...words, '--connections', '1', '--results', results)).toMatchObject({
			code: 5,
			stderr: expect.stringContaining('Sender address is not verified.'),
		});
		expect(service.calls).toHaveLength(1);
		expect((await readFile(results, 'utf8')).match(/,queued,/g)).toHaveLength(3);
		isVerified = true;
		expect(await call('campaigns', 'resume', 'j')).toMatchObject({ code: 0 });
		expect(Object.values(service.timesSent())).toEqual([1, 1, 1]);
	});

	it('makes no call if the user resumes a canceled campaign', async () => {
		const { service, call } = await start();
		const words = ['send', ...mail, '--csv', await table(3), '--campaign', 'j', '-y', '--expect-count', '4'];
		expect(await call(...words)).toMatchObject({ code: 2 });
		expect(await call('campaigns', 'cancel', 'j', '-y')).toMatchObject({ code: 0 });
		expect(await call('campaigns', 'resume', 'j', '-y', '--expect-count', '3')).toMatchObject({ code: 2 });
		expect(service.calls).toEqual([]);
	});
});

describe.skipIf(missing !== null)('send to a service without mailctl’s extensions', () => {
	it('creates one message for each row, however often the service throttles requests', async () => {
		const django = await startDjango({ flaky: true });
		endings.push(django.stop);
		const call = (...words: string[]) =>
			cli(['--base-url', django.baseUrl, '--no-input', ...words], {
				env: { HOME: home, MAILCTL_TOKEN: django.token },
			});
		const words = ['send', '--from', django.sender, '--subject', 'Hi #name#', '--text', 'Hello'];
		const job = ['--csv', await table(12), '-y', '--expect-count', '12', '-o', 'json'];
		const { code, stdout, stderr } = await call(...words, ...job);
		expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
		expect(JSON.parse(stdout)).toMatchObject({ messages: { accepted: 12 } });
		const report = await call('report', '-o', 'json');
		expect(JSON.parse(report.stdout)).toMatchObject({ total: { sent: 12 } });
	});
});

describe('an option that the target does not support', () => {
	it.each([
		{ words: ['--list', '1', '-y', '--expect-count', '2', '--no-wait'], says: '--no-wait cannot be used' },
		{
			words: ['--to', 'ann@example.com', '--campaign', '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f'],
			says: 'this service does not support --campaign',
		},
	])('is rejected, and the service gets no message: send $words', async ({ words, says }) => {
		const { service, call } = await start({ subscribers });
		const run = await call('send', ...mail, ...words);
		expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining(says) });
		expect(service.calls).toEqual([]);
	});

	it('is rejected on a local database: --retry-unknown', async () => {
		const words = ['send', ...mail, '--list', '1', '--retry-unknown', '-y', '--expect-count', '2'];
		expect(await cli([...words, '--no-input'], { env: { HOME: home } })).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('--retry-unknown has no effect here'),
		});
	});
});
