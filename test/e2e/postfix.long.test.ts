import { execFile } from 'node:child_process';
import { chmod, chown, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { isBuilt, programPath } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/listen.js';
import {
	explained,
	ingested,
	keptAbout,
	type MailServerTrial,
	messageTo,
	openTrial,
	sendTo,
	subscriberOf,
} from '../support/mail-server-trial.js';
import { noPostfix, startPostfix } from '../support/postfix.js';
import { startRefusing } from '../support/refusing-server.js';

const run = promisify(execFile);
// Postfix does not run pipe commands as root.
const nobody = { uid: 65_534, gid: 65_534 };
const nobodyRunsIt = () =>
	run(process.execPath, [programPath, '--version'], { ...nobody, env: {} }).then(
		() => true,
		() => false,
	);

describe.skipIf(noPostfix !== null)(noPostfix === null ? 'Postfix' : `Postfix (${noPostfix})`, () => {
	let trial: MailServerTrial;
	beforeAll(async () => {
		trial = await openTrial();
	});
	afterAll(() => trial?.close());

	it('accepts a mail from mailctl', async () => {
		const { kept, server } = trial;
		expect(await sendTo(kept, 'ann@example.net')).toBe(0);
		const message = await messageTo(kept, 'ann@example.net');
		expect(message).toMatchObject({ state: 'sent', delivery_attempts: [{ phase: 'answer', code: 250 }] });
		await eventually(async () => expect(await server.mails('ann')).toHaveLength(1));
		const { id } = message as { id: string };
		expect((await server.mails('ann'))[0]).toContain(`Message-ID: <${id}@example.com>`);
		expect((await server.mails('ann'))[0]).toMatch(/^Return-path: <news\+[a-z2-7]{48}@kept\.example\.com>/im);
	});

	it('refuses an unknown address at RCPT, which is a hard bounce', async () => {
		const { kept } = trial;
		expect(await sendTo(kept, 'gone@example.net')).toBe(9);
		expect(await messageTo(kept, 'gone@example.net')).toMatchObject({
			state: 'bounced',
			attempts: 1,
			delivery_attempts: [
				{
					...{ outcome: 'bounced', phase: 'rcpt', code: 550, enhanced: '5.1.1' },
					text: expect.stringContaining('User unknown'),
				},
			],
		});
		expect(await subscriberOf(kept, 'gone@example.net')).toMatchObject({
			is_active: false,
			disable_reason: 'HARDBOUNCED',
		});
	});

	it('defers a mail, and mailctl schedules a retry and keeps the recipient active', async () => {
		const { kept } = trial;
		expect(await sendTo(kept, 'bob@example.net')).toBe(0);
		expect(await messageTo(kept, 'bob@example.net')).toMatchObject({
			state: 'deferred',
			due_at: expect.any(String),
			delivery_attempts: [{ outcome: 'deferred', phase: 'rcpt', code: 451, enhanced: '4.7.1' }],
		});
		expect(await subscriberOf(kept, 'bob@example.net')).toMatchObject({ is_active: true });
	});

	it('sends a bounce by SMTP, and mailctl updates the message, the subscriber and the report', async () => {
		const { served, server, servedLog } = trial;
		// `serve` sends the message, because a fast bounce could change the exit code of a waiting `send`.
		expect(await sendTo(served, 'ann@example.org', { options: ['--no-wait'] })).toBe(0);
		const reason = async () => {
			const { disable_reason } = (await subscriberOf(served, 'ann@example.org')) as Record<string, unknown>;
			return disable_reason ?? `${await server.log()}${servedLog()}`;
		};
		await eventually(async () => expect(await reason()).toBe('HARDBOUNCED'));
		await eventually(async () => expect(servedLog()).toContain('"bounce_smtp":"bounce"'));
		expect(await served.json(['messages', 'list', '--status', 'bounced'])).toMatchObject([
			{ to: 'ann@example.org', last_reply: expect.stringContaining('5.1.1') },
		]);
		expect(await served.json(['report'])).toMatchObject({ total: { sent: 1, hardbounced_percent: 100 } });
	});

	it.each([
		{ to: 'unknown@example.org', status: '5.1.1', reply_code: 550, words: 'No such user here', hard: true },
		{ to: 'full@example.org', status: '5.2.2', reply_code: 552, words: 'Mailbox full', hard: false },
		// Postfix reports 5.0.0 for a reply without an enhanced code, so the text decides.
		{ to: 'plain@example.org', status: '5.0.0', reply_code: 550, words: 'No such user here', hard: true },
	])('sends a bounce about $to, which "bounces explain" and "bounces ingest" classify alike (hard: $hard)', async ({
		to,
		status,
		reply_code,
		words,
		hard,
	}) => {
		const { kept } = trial;
		expect(await sendTo(kept, to)).toBe(0);
		const { id } = (await messageTo(kept, to)) as { id: string };
		const mail = await keptAbout(trial, to);
		expect(await explained(kept, mail)).toMatchObject({
			kind: 'bounce',
			reporting_mta: 'mx.example.net',
			recipients: [
				{
					address: to,
					action: 'failed',
					status,
					reply_code,
					diagnostic: expect.stringContaining(words),
					hard,
					form: 'RFC 3464',
				},
			],
			returned: { message_id: `${id}@example.com`, subject: 'Hello', to: [to] },
		});
		expect(await ingested(kept, mail)).toMatchObject({ read: 1, bounces: 1 });
		expect(await messageTo(kept, to)).toMatchObject({ state: hard ? 'bounced' : 'failed' });
		const disable_reason = hard ? 'HARDBOUNCED' : null;
		expect(await subscriberOf(kept, to)).toMatchObject({ is_active: !hard, disable_reason });
	});

	it('sends one bounce about two recipients, each classified by its code', async () => {
		const { kept } = trial;
		expect(await sendTo(kept, 'full.to@example.org', { cc: ['copy@example.org'] })).toBe(0);
		const mail = await keptAbout(trial, 'copy@example.org');
		expect(await explained(kept, mail)).toMatchObject({
			recipients: expect.arrayContaining([
				expect.objectContaining({ address: 'full.to@example.org', hard: false }),
				expect.objectContaining({ address: 'copy@example.org', hard: true }),
			]),
		});
		expect(await ingested(kept, mail)).toMatchObject({ bounces: 1 });
		expect(await subscriberOf(kept, 'full.to@example.org')).toMatchObject({ is_active: true });
		expect(await subscriberOf(kept, 'copy@example.org')).toMatchObject({ disable_reason: 'HARDBOUNCED' });
	});

	it('sends a bounce that mailctl matches by its return path if the Message-ID is missing', async () => {
		const { kept } = trial;
		expect(await sendTo(kept, 'bare@example.org')).toBe(0);
		const mail = await keptAbout(trial, 'bare@example.org');
		const bare = mail.replace(/^Message-ID: <[^>]*@example\.com>\r?\n/im, '');
		expect(await explained(kept, bare)).toMatchObject({ returned: { message_id: null } });
		expect(await ingested(kept, bare)).toMatchObject({ bounces: 1 });
		expect(await subscriberOf(kept, 'bare@example.org')).toMatchObject({ disable_reason: 'HARDBOUNCED' });
	});

	it('writes a Maildir that "bounces ingest" reads', async () => {
		const { kept, server } = trial;
		expect(await sendTo(kept, 'dir@example.org')).toBe(0);
		await keptAbout(trial, 'dir@example.org');
		await kept.json(['engine', 'bounces', 'ingest', server.maildir('kept')]);
		expect(await subscriberOf(kept, 'dir@example.org')).toMatchObject({ disable_reason: 'HARDBOUNCED' });
		expect(await server.mails('kept')).toEqual([]);
	});

	it('pipes a bounce to "engine bounces ingest -"', async ({ skip }) => {
		if (!isBuilt) return skip('npm run build has not been run');
		if (!(await nobodyRunsIt())) return skip('nobody may not read this checkout, or run this node');
		const folder = await mkdtemp('/tmp/mailctl-piped-');
		await chown(folder, nobody.uid, nobody.gid);
		await chmod(folder, 0o755);
		const db = join(folder, 'news.db');
		const json = async (...argv: string[]) => {
			const words = [programPath, '--db', db, ...argv, '-o', 'json'];
			const options = { ...nobody, cwd: folder, env: { HOME: folder, PATH: process.env['PATH'] } };
			return JSON.parse((await run(process.execPath, words, options)).stdout);
		};
		const port = await freePort();
		// Recipients are refused only after `send` has ended, so that no bounce arrives while it waits.
		let sent: () => void = () => undefined;
		const refusing = await startRefusing({ after: new Promise((resolve) => (sent = resolve)) });
		onTestFinished(refusing.close);
		const pipe = `${process.execPath} ${programPath} --db ${db} engine bounces ingest -`;
		const postfix = await startPostfix({ port, next: refusing.port, bounces: 0, pipe });
		onTestFinished(postfix.stop);
		const smtp = ['--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${port}`];
		await json('engine', 'init', ...smtp, '--bounce-address', 'news@bounces.example.com');
		await json('lists', 'create', '--name', 'Readers', '--email-reason', 'You asked for it');
		await json('subscribers', 'create', '-l', '1', '--email', 'ann@example.org');
		const mail = ['--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hello'];
		await json('send', ...mail, '--to', 'ann@example.org');
		sent();
		await eventually(async () => {
			const { disable_reason } = await json('subscribers', 'get', '-l', '1', 'ann@example.org');
			expect(disable_reason ?? (await postfix.log())).toBe('HARDBOUNCED');
		});
		await eventually(async () => expect(await postfix.log()).toMatch(/relay=bounces.*status=sent/));
	});
});
