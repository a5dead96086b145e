import { execFile } from 'node:child_process';
import { mkdir, readdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { eventually } from '../../../support/eventually.js';
import { errorOf, makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

const none = {
	...{ read: 0, bounces: 0, complaints: 0, duplicates: 0, notices: 0, auto_replies: 0 },
	...{ unmatched: 0, not_reports: 0, in_flight: 0, unreadable: 0 },
};
const separator = 'From MAILER-DAEMON Fri Jul  8 12:08:34 2011\n';

let sink: SmtpSink;
let project: Project;
beforeEach(async () => {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
	await project.json(['engine', 'init', '--bounce-address', 'bounces@example.com']);
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked for it']);
});
afterEach(() => sink.close());

async function sentTo(email: string): Promise<{ returnPath: string; messageId: string }> {
	await project.json(['subscribers', 'create', '-l', '1', '--email', email]);
	const before = sink.received.length;
	const mail = ['--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hello'];
	await project.json(['send', ...mail, '--to', email]);
	await sink.until(before + 1);
	const received = sink.received.at(-1);
	const messageId = /^Message-ID: (\S+)/im.exec(received?.raw.toString() ?? '')?.[1] ?? '';
	return { returnPath: received?.from ?? '', messageId };
}

function bounceOf(
	to: string,
	{ address = 'ann@example.org', status = '5.1.1', messageId = '<other@example.net>' } = {},
): string {
	return [
		'From: MAILER-DAEMON@mx.example.org',
		`To: <${to}>`,
		'Subject: Undelivered Mail',
		'MIME-Version: 1.0',
		'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
		'',
		'--b',
		'Content-Type: text/plain',
		'',
		'It could not be delivered.',
		'--b',
		'Content-Type: message/delivery-status',
		'',
		'Reporting-MTA: dns; mx.example.org',
		'',
		`Final-Recipient: rfc822; ${address}`,
		'Action: failed',
		`Status: ${status}`,
		`Diagnostic-Code: smtp; 550 ${status} refused`,
		'',
		'--b',
		'Content-Type: text/rfc822-headers',
		'',
		`Message-ID: ${messageId}`,
		'Subject: Hello',
		'--b--',
		'',
	].join('\n');
}

const complaintTo = (to: string, messageId: string) =>
	bounceOf(to, { messageId })
		.replace('report-type=delivery-status', 'report-type=feedback-report')
		.replace('message/delivery-status', 'message/feedback-report')
		.replace(/Reporting-MTA[\s\S]*?refused\n/, 'Feedback-Type: abuse\nUser-Agent: Loop/1\nVersion: 1\n');

const ordinary = 'From: bob@example.org\nTo: news@example.com\nSubject: Lunch?\n\nAt noon.\n';
const away =
	'From: bob@example.org\nTo: news@example.com\nSubject: Out of office\nAuto-Submitted: auto-replied\n\nBack soon.\n';

const ingest = (source: string, ...words: string[]) =>
	project.json(['engine', 'bounces', 'ingest', source, ...words]);
const subscriber = (email: string) => project.json(['subscribers', 'get', '-l', '1', email]);
const messageIds = async () =>
	((await project.json(['messages', 'list'])) as { id: string }[]).map(({ id }) => id);
const reported = async () => {
	const found = await project.json(['messages', 'get', (await messageIds())[0] ?? '']);
	return (found as { reports: unknown }).reports;
};
const report = async () => (await project.json(['report'])) as { total: Record<string, unknown> };

describe('engine bounces ingest', () => {
	it('records a hard bounce for its message and its subscriber, and counts a second copy as a duplicate', async () => {
		const { returnPath } = await sentTo('ann@example.org');
		expect(returnPath).toMatch(/^bounces\+[a-z2-7]{48}@example\.com$/);
		const file = await project.file('bounce.eml', bounceOf(returnPath));
		expect(await ingest(file)).toEqual({ ...none, read: 1, bounces: 1 });
		expect(await subscriber('ann@example.org')).toMatchObject({
			is_active: false,
			disable_reason: 'HARDBOUNCED',
		});
		expect(await project.json(['messages', 'list', '--status', 'bounced'])).toHaveLength(1);
		expect(await reported()).toEqual([
			{ at: expect.any(String), event: 'HARDBOUNCED', code: '5.1.1', diagnostic: '550 5.1.1 refused' },
		]);
		const [id = ''] = await messageIds();
		const { stdout } = await project.run(['messages', 'get', id, '--no-color'], { columns: 120 });
		expect(stdout).toMatch(/^REPORTED +\d{4}-\d\d-\d\d \d\d:\d\d HARDBOUNCED by mail: 550 5\.1\.1 refused$/m);
		expect((await report()).total).toMatchObject({ sent: 1, hardbounced_percent: 100 });
		expect(await ingest(file)).toEqual({ ...none, read: 1, duplicates: 1 });
		expect((await report()).total).toMatchObject({ hardbounced_percent: 100 });
	});

	it('counts a second bounce of a message as a duplicate, even in a dry run', async () => {
		const [ann, bob] = [await sentTo('ann@example.org'), await sentTo('bob@example.org')];
		const first = await project.file('first.eml', bounceOf(ann.returnPath));
		expect(await ingest(first, '--dry-run')).toEqual({
			...{ dry_run: true, ingest: first },
			...{ ...none, read: 1, bounces: 1 },
		});
		await ingest(first);
		const mails = [
			bounceOf(ann.returnPath),
			bounceOf(ann.returnPath).replace('Undelivered', 'Returned'),
			bounceOf(bob.returnPath, { address: 'bob@example.org' }),
			bounceOf(bob.returnPath, { address: 'bob@example.org' }).replace('Undelivered', 'Returned'),
			complaintTo(ann.returnPath, ann.messageId),
		];
		const file = await project.file('all.mbox', mails.map((mail) => `${separator}${mail}\n`).join(''));
		const counts = { ...none, read: 5, bounces: 1, complaints: 1, duplicates: 3 };
		expect(await ingest(file, '--dry-run')).toEqual({ dry_run: true, ingest: file, ...counts });
		expect(await subscriber('bob@example.org')).toMatchObject({ is_active: true });
		expect(await ingest(file)).toEqual(counts);
	});

	it('exits with 0 for a mail that is not a bounce', async () => {
		for (const stdin of [ordinary, away, '', 'x']) {
			const { code } = await project.run(['engine', 'bounces', 'ingest', '-'], { stdin });
			expect(code).toBe(0);
		}
	});

	it('counts the mails of an mbox file by kind', async () => {
		const ann = await sentTo('ann@example.org');
		const bob = await sentTo('bob@example.org');
		const mails = [
			bounceOf(ann.returnPath),
			complaintTo('abuse@example.com', bob.messageId),
			bounceOf('news@example.com'),
			bounceOf(ann.returnPath).replace('Action: failed', 'Action: delayed'),
			ordinary,
			away,
		];
		const file = await project.file('all.mbox', mails.map((mail) => `${separator}${mail}\n`).join(''));
		expect(await ingest(file)).toEqual({
			...{ ...none, read: 6, bounces: 1, complaints: 1, notices: 1, auto_replies: 1 },
			...{ unmatched: 1, not_reports: 1 },
		});
		expect(await subscriber('bob@example.org')).toMatchObject({ disable_reason: 'COMPLAINED' });
	});

	it('reads the new mails of a Maildir, and then moves the mails into its cur folder', async () => {
		const { returnPath } = await sentTo('ann@example.org');
		const maildir = join(project.folder, 'Maildir');
		for (const name of ['new', 'cur', 'tmp']) await mkdir(join(maildir, name), { recursive: true });
		await writeFile(join(maildir, 'new', '1.a.host'), bounceOf(returnPath));
		await writeFile(join(maildir, 'new', '2.b.host'), ordinary);
		expect(await ingest(maildir, '--dry-run')).toMatchObject({ dry_run: true, read: 2, bounces: 1 });
		expect((await readdir(join(maildir, 'new'))).sort()).toEqual(['1.a.host', '2.b.host']);
		expect(await subscriber('ann@example.org')).toMatchObject({ is_active: true });
		expect(await ingest(maildir)).toEqual({ ...none, read: 2, bounces: 1, not_reports: 1 });
		expect(await readdir(join(maildir, 'new'))).toEqual([]);
		expect((await readdir(join(maildir, 'cur'))).sort()).toEqual(['1.a.host:2,S', '2.b.host:2,S']);
		expect(await ingest(maildir)).toEqual(none);
	});

	it('reads the mails of a folder, reports unreadable files and skips other entries', async () => {
		const maildir = join(project.folder, 'Maildir');
		for (const name of ['new/2.folder', 'cur']) await mkdir(join(maildir, name), { recursive: true });
		const long = `2.${'x'.repeat(250)}`;
		for (const name of ['1', long, '9']) await writeFile(join(maildir, 'new', name), ordinary);
		await symlink('3.loop', join(maildir, 'new', '3.loop'));
		await promisify(execFile)('mkfifo', [join(maildir, 'new', '4.pipe')]);
		for (const source of [maildir, join(maildir, 'cur')]) {
			const result = await project.run(['engine', 'bounces', 'ingest', source, '-o', 'json']);
			expect({ code: result.code, counts: JSON.parse(result.stdout) }).toEqual({
				code: source === maildir ? 9 : 0,
				counts: { ...none, read: 3, not_reports: 3, unreadable: source === maildir ? 1 : 0 },
			});
			if (source === maildir) expect(result.stderr).toContain('3.loop: ELOOP');
		}
		expect((await readdir(join(maildir, 'new'))).sort()).toEqual(['2.folder', '3.loop', '4.pipe']);
		expect((await readdir(join(maildir, 'cur'))).sort()).toEqual(['1:2,S', long, '9:2,S']);
	});

	it('exits with 75 and moves no mail while the database is locked, and succeeds afterwards', async () => {
		const { returnPath } = await sentTo('ann@example.org');
		const maildir = join(project.folder, 'Maildir');
		for (const name of ['new', 'cur']) await mkdir(join(maildir, name), { recursive: true });
		await writeFile(join(maildir, 'new', '1'), bounceOf(returnPath));
		const other = new Database(project.db);
		other.exec('BEGIN IMMEDIATE');
		const result = await project.run(['engine', 'bounces', 'ingest', maildir, '-o', 'json']);
		other.exec('ROLLBACK');
		other.close();
		expect({ code: result.code, error: errorOf(result) }).toMatchObject({
			code: 75,
			error: { code: 'try_later', exit_code: 75, retryable: true },
		});
		expect(await readdir(join(maildir, 'new'))).toEqual(['1']);
		expect(await ingest(maildir)).toEqual({ ...none, read: 1, bounces: 1 });
	});

	it('exits with 75 for a piped mail if the database is missing', async () => {
		await rename(project.db, `${project.db}.away`);
		const { code, stderr } = await project.run(['engine', 'bounces', 'ingest', '-'], { stdin: ordinary });
		expect({ code, isNamed: stderr.includes('there is no database at') }).toEqual({
			code: 75,
			isNamed: true,
		});
		const file = await project.file('one.eml', ordinary);
		expect(await project.run(['engine', 'bounces', 'ingest', file])).toMatchObject({ code: 2 });
	});

	it('exits with 75 on SIGTERM, and with 130 on Ctrl-C, while it reads a mail from a pipe', async () => {
		const ends = [
			['SIGTERM', 75],
			['SIGINT', 130],
		] as const;
		for (const [signal, expected] of ends) {
			const stop = new AbortController();
			const stdin = new PassThrough();
			stdin.write(bounceOf('bounces@example.com').slice(0, 100));
			const running = project.run(['engine', 'bounces', 'ingest', '-'], { stdin, interrupts: stop.signal });
			await eventually(() => expect(stdin.readableLength).toBe(0));
			stop.abort(new Interrupted(signal));
			expect((await running).code).toBe(expected);
		}
	});
});

describe('engine bounces explain', () => {
	it('describes a mail without needing a database', async () => {
		const file = await project.file('bounce.eml', bounceOf('news@example.com'));
		expect(await project.json(['engine', 'bounces', 'explain', file])).toMatchObject({
			kind: 'bounce',
			recipients: [{ address: 'ann@example.org', status: '5.1.1', hard: true }],
		});
	});

	it('explains each mail of an mbox as text and as JSON', async () => {
		const mails = [bounceOf('news@example.com'), away];
		const mbox = mails.map((mail) => `${separator}${mail}\n`).join('');
		const file = await project.file('two.mbox', mbox);
		expect(await project.json(['engine', 'bounces', 'explain', file])).toMatchObject([
			{ kind: 'bounce' },
			{ kind: 'auto_reply' },
		]);
		const { stdout } = await project.run(['engine', 'bounces', 'explain', file], { columns: 80 });
		expect(stdout.match(/^Mail .*$/gm)).toEqual([
			'Mail 1: a bounce, reported by mx.example.org',
			'Mail 2: an automatic answer; nothing bounced',
		]);
		const names = await project.run(['engine', 'bounces', 'explain', file, '-o', 'tsv', '--fields', 'kind']);
		expect(names.stdout).toBe('bounce\nauto_reply\n');
	});
});
