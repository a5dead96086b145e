import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatSecret, signedHeaders } from '../../../../src/api/webhook-calls.js';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { makeProject, type Project } from '../../../support/project.js';
import { type NotifiedTarget, startTarget } from '../../../support/target.js';
import { typing } from '../../../support/typing.js';

describe('mailctl webhooks listen', () => {
	let project: Project;
	let target: NotifiedTarget | undefined;
	beforeEach(async () => {
		project = await makeProject();
		await project.json(['engine', 'settings', 'set', 'allow_private_webhooks', 'true']);
	});
	afterEach(() => target?.close());
	/** Starts the command; `heard` waits for a line on stderr and returns the match. */
	const listen = (argv: readonly string[], more = {}) => {
		let text = '';
		let tell = () => {};
		const running = project.run(['webhooks', 'listen', ...argv], {
			heard: (all: string) => {
				text = all;
				tell();
			},
			...more,
		});
		const heard = async (pattern: RegExp): Promise<string> => {
			for (;;) {
				const found = pattern.exec(text);
				if (found !== null) return found[1] ?? '';
				const ended = running.then((end) => Promise.reject(new Error(`it ended: ${JSON.stringify(end)}`)));
				await Promise.race([
					new Promise<void>((resolve) => {
						tell = resolve;
					}),
					ended,
				]);
			}
		};
		return { running, heard };
	};
	const hooks = async () => (await project.json(['webhooks', 'list'])) as unknown[];
	const listening = /listening on (http:\S+)/;
	const registered = /registered webhook (\d+)/;
	const openings = ['--register', '--type', 'OPENED', '--once'];

	it('registers a webhook, prints the first verified call, exits, and removes the webhook', async () => {
		const { running, heard } = listen([...openings, '--wait', '1m', '-o', 'json']);
		const id = await heard(registered);
		expect(await hooks()).toMatchObject([{ id: Number(id), type: 'OPENED' }]);
		expect(await project.json(['webhooks', 'test', id])).toMatchObject({ result: true, status_code: 204 });
		const { code, stdout } = await running;
		expect(code).toBe(0);
		expect(JSON.parse(stdout)).toMatchObject([
			{ type: 'OPENED', verified: true, refused: null, forwarded: null, body: { test: true } },
		]);
		expect(await hooks()).toEqual([]);
	});

	it('requests a test call with --test, prints it and exits', async () => {
		const { code, stdout } = await listen(['--register', '--test', '--once', '--wait', '1m', '-o', 'json'])
			.running;
		expect([code, JSON.parse(stdout)]).toMatchObject([0, [{ verified: true, body: { test: true } }]]);
		expect(await hooks()).toEqual([]);
	});

	it('exits with 9 if the test call does not arrive, and removes its webhooks', async () => {
		const nowhere = 'http://127.0.0.1:11/';
		const { running } = listen(['--register', '--url', nowhere, '--test', '--once', '--wait', '1m']);
		expect(await running).toMatchObject({
			code: 9,
			stderr: expect.stringMatching(/^error: the target was not reached/m),
		});
		expect(await hooks()).toEqual([]);
	});

	it('forwards a call byte for byte and returns the target’s answer', async () => {
		target = await startTarget(503);
		const { running, heard } = listen([...openings, '--forward-to', target.url, '-o', 'ndjson']);
		const id = await heard(registered);
		const test = await project.json(['webhooks', 'test', id], { code: 9 });
		expect(test).toMatchObject({ result: false, status_code: 503 });
		const line = JSON.parse((await running).stdout);
		expect(line).toMatchObject({ verified: true, forwarded: 503 });
		expect(JSON.parse(target.received[0] ?? '')).toEqual(line.body);
	});

	it('sends the user name and password in the --forward-to URL as Basic authentication', async () => {
		target = await startTarget(200);
		const to = target.url.replace('//', '//ann:s%40crct@');
		const { running, heard } = listen([...openings, '--forward-to', to]);
		await project.json(['webhooks', 'test', await heard(registered)]);
		expect((await running).code).toBe(0);
		expect(target.authorizations).toEqual([`Basic ${Buffer.from('ann:s@crct').toString('base64')}`]);
	});

	it('answers 502 with the reason if it cannot forward', async () => {
		target = await startTarget(200);
		const { url } = target;
		await target.close();
		const to = url.replace('//', '//ann:secret@');
		const { running, heard } = listen(['--register', '--type', 'OPENED', '--once', '--forward-to', to]);
		await project.json(['webhooks', 'test', await heard(registered)], { code: 9 });
		const { stderr } = await running;
		expect(stderr).toContain(`warning: ${url} did not answer: connect ECONNREFUSED`);
		expect(stderr).not.toContain('secret');
	});

	it('answers 401 to a call with a wrong signature, and keeps waiting', async () => {
		const { running, heard } = listen(['--once', '--wait', '1m', '-o', 'json']);
		const url = await heard(listening);
		const body = '{"type":"OPENED"}';
		const signed = { id: 'msg_1', timestamp: Math.floor(Date.now() / 1000), body };
		const post = (headers: Record<string, string>) => fetch(url, { method: 'POST', body, headers });
		expect((await post({})).status).toBe(401);
		expect((await post(signedHeaders(signed, [formatSecret('b3RoZXI')]))).status).toBe(401);
		const [secret] = (await project.json(['webhooks', 'secret'])) as { secret: string }[];
		const stale = { ...signed, timestamp: signed.timestamp - 600 };
		expect((await post(signedHeaders(stale, [secret?.secret ?? '']))).status).toBe(401);
		expect((await fetch(url)).status).toBe(405);
		expect((await post(signedHeaders(signed, [secret?.secret ?? '']))).status).toBe(204);
		const { code, stdout } = await running;
		expect(code).toBe(0);
		const verified = JSON.parse(stdout).map((one: { verified: boolean }) => one.verified);
		expect(verified).toEqual([false, false, false, true]);
	});

	it('exits with 12 if no call arrives, and removes its webhooks', async () => {
		const { code, stdout, stderr } = await project.run([
			...['webhooks', 'listen', '--register', '--once', '--wait', '50ms', '-o', 'json'],
		]);
		expect(code).toBe(12);
		expect(stdout).toBe('[]\n');
		expect(stderr).toContain('no notification came');
		expect(stderr).not.toContain('only a webhook');
		expect(await hooks()).toEqual([]);
	});

	describe('with --register and without allow_private_webhooks', () => {
		const words = ['webhooks', 'listen', '--register', '--wait', '50ms'];
		const setting = async () =>
			(await project.run(['engine', 'settings', 'get', 'allow_private_webhooks'])).stdout;
		beforeEach(async () => {
			await project.json(['engine', 'settings', 'unset', 'allow_private_webhooks']);
		});

		it('sets allow_private_webhooks after the user agrees, and continues', async () => {
			const { code, stderr } = await typing([['allow_private_webhooks', 'y']], (options) =>
				project.run(words, options),
			);
			expect(stderr).toContain('registered webhooks');
			expect(stderr).toMatch(/engine settings unset allow_private_webhooks/);
			expect(code).toBe(12);
			expect(await setting()).toBe('true\n');
		});

		it('exits with 2 in a script unless --yes is given', async () => {
			const { code, stderr } = await project.run(words);
			expect([code, stderr]).toEqual([
				2,
				expect.stringMatching(
					/^error: this will set allow_private_webhooks to true: .*\nhint: add --yes to agree\n$/,
				),
			]);
			expect(await setting()).toBe('\n');
			const agreed = await project.run([...words, '--yes']);
			expect([agreed.code, agreed.stderr]).toEqual([12, expect.stringContaining('registered webhooks')]);
			expect(await setting()).toBe('true\n');
		});
	});

	it('exits with 130 on Ctrl-C, and removes its webhooks', async () => {
		const interrupt = new AbortController();
		const { running, heard } = listen(['--register'], { interrupts: interrupt.signal });
		await heard(/registered webhooks (\d+)/);
		expect(await hooks()).toHaveLength(5);
		interrupt.abort(new Interrupted('SIGINT'));
		expect((await running).code).toBe(130);
		expect(await hooks()).toEqual([]);
	});

	it('rejects contradictory options', async () => {
		for (const argv of [['--test'], ['--forward-to', 'x'], ['--register', '--url', 'ftp://x']])
			expect((await project.run(['webhooks', 'listen', ...argv])).code).toBe(2);
	});
});
