import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../../support/cli.js';
import { makeProject, type Project } from '../../support/project.js';
import { startServer } from '../../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../../support/smtp-sink.js';
import { typing } from '../../support/typing.js';

let sink: SmtpSink;
let project: Project;
beforeEach(async () => {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	for (const name of ['ann', 'bob'])
		await project.json(['subscribers', 'create', '-l', '1', '--email', `${name}@example.com`]);
});
afterEach(() => sink.close());

const content = ['send', '--from', 'news@example.com', '--list', '1', '--text', 'Hi'];
const words = [...content, '--subject', 'Spring news!'];
const agreed = [...words, '--yes', '--expect-count', '2'];

const single = 'send --from news@example.com --to cid@example.com --subject S --text Hi'.split(' ');

interface Sent {
	name: string;
	id: string;
}

describe('mailctl campaigns', () => {
	it('prints that the queue is paused, unless the token’s only scope is "read"', async () => {
		await project.run(['engine', 'queue', 'pause']);
		const sent = await project.run([...agreed, '--no-wait']);
		const hint = `hint: the queue is paused: mailctl --db ${project.db} engine queue resume\n`;
		expect(sent).toMatchObject({ code: 0, stderr: expect.stringMatching(new RegExp(`${hint}$`)) });
		expect(await project.run(['campaigns', 'list', '-o', 'name'])).toMatchObject({ code: 0, stderr: hint });
		const server = await startServer(project.db);
		const made = ['engine', 'tokens', 'create', '--name', 'r', '--scope', 'read', '-q'];
		const env = { MAILCTL_TOKEN: (await project.run(made)).stdout.trim() };
		const list = await cli(['--base-url', server.baseUrl, 'campaigns', 'list'], { env });
		await server.stop();
		expect(list).toMatchObject({ code: 0, stderr: '' });
	});

	it('accepts a campaign’s name or UUID', async () => {
		const { name, id } = (await project.json(agreed)) as Sent;
		expect(name).toMatch(/^spring-news-\d{4}-\d\d-\d\d$/);
		const one = await project.json(['campaigns', 'get', name]);
		expect(one).toMatchObject({ name, id, state: 'finished', sent: 2, opened: 0, machine_opened: 0 });
		expect(await project.json(['campaigns', 'get', id.toUpperCase()])).toEqual(one);
		const report = await project.json(['campaigns', 'report', name]);
		expect(report).toMatchObject({ total: { sent: 2 }, data: [{ sent: 2 }] });
		const { total, data, details, links } = report as Record<string, unknown>;
		expect(await project.json(['report', '--campaign', id])).toEqual({ total, data });
		expect({ details, links }).toMatchObject({
			details: { total: { sent: 2, delivered: 2, opened: 0 }, bounces: { domains: [] } },
			links: [],
		});
		const results = (await project.json(['campaigns', 'results', id, '--only', 'sent'])) as { to: string }[];
		expect(results.map(({ to }) => to)).toEqual(['ann@example.com', 'bob@example.com']);
		const wide = await project.run(['campaigns', 'results', id, '-o', 'csv']);
		expect(wide.stdout.split('\r\n')[0]).toMatch(/,campaign_unique_id$/);
		expect(wide.stdout).toContain(id);
		expect(await project.json(['campaigns', 'results', id, '--only', 'bounced'])).toEqual([]);
		for (const verb of ['get', 'report', 'results'])
			expect((await project.run(['campaigns', verb, 'sprung-news'])).code).toBe(3);
	});

	it('counts each recipient once, and prints the denominator of each rate', async () => {
		const names = ['ann', 'bob', 'gone', 'slow', 'left'];
		const mail = await startSmtpSink({
			onRcptTo: ({ address }, _, done) => {
				const text = { gone: '5.1.1 No such user', slow: '4.3.0 Later' }[address.split('@')[0] ?? ''];
				const responseCode = text === undefined ? 250 : text.startsWith('5') ? 550 : 451;
				done(text === undefined ? null : Object.assign(new Error(text), { responseCode }));
			},
		});
		const people = await makeProject({ smtp: mail.port });
		await people.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const file = await people.file('people.csv', `email\n${names.join('@e.org\n')}@e.org\n`);
		await people.json(['subscribers', 'import', file, '-l', '1']);
		await people.json(['subscribers', 'deactivate', 'left@e.org', '-l', '1']);
		const now = ['--now', '2026-11-07T12:00:00Z'];
		await people.run([...words, '--campaign', 'spring', '--yes', '--expect-count', '4', ...now]);
		new Database(people.db).exec("UPDATE campaigns SET rate = '100/s'").close();
		await mail.close();
		const [message] = (await people.json(['messages', 'list', '--to', 'ann@e.org'])) as { id: string }[];
		expect(message).toMatchObject({ campaign: 'spring' });
		const shown = async (...argv: string[]) =>
			(await people.run([...argv, '--time-zone', 'UTC', '--no-color'], { interactive: true, columns: 80 }))
				.stdout;
		expect(await shown('messages', 'get', message?.id ?? '')).toMatch(/^CAMPAIGN +spring$/m);
		const why = await shown('why', 'ann@e.org');
		expect(why.replaceAll(/\s+/g, ' ')).toContain(`"Spring news!" of campaign spring ${message?.id}`);
		expect(await shown('messages', 'list')).toContain(message?.id ?? 'none');
		const outcomes = { sent: 2, waiting: 0, deferred: 1, bounced: 1, failed: 0, uncertain: 0, canceled: 0 };
		const head = { name: 'spring', subject: 'Spring news!', lists: ['Readers'], sender: 'news@example.com' };
		expect(await people.json(['campaigns', 'report', 'spring'])).toMatchObject({
			campaign: { ...head, recipients: { total: 5, ...outcomes, left_out: 1 } },
		});
		expect(await people.json(['campaigns', 'list'])).toMatchObject([{ recipients: 5 }]);
		const { stderr } = await people.run(['campaigns', 'list', '-o', 'table', '--time-zone', 'UTC', ...now]);
		expect(stderr).toMatch(/^hint: no worker is running: .* worker\n$/);
		const top = `Campaign spring\n  subject  Spring news!\n  list     Readers\n  sender   news@example.com\n  sent on  2026-11-07 12:00 UTC\n2026-11-07 (UTC)\n\n  recipients  5\n    sent      2\n    waiting   0\n    deferred  1\n    bounced   1\n    left out  1\n\n`;
		const report = await shown('campaigns', 'report', 'spring', '--no-pager');
		expect(stripVTControlCharacters(report)).toContain(top);
		const bases = '\ndeliveries and bounces: % of 3 attempted; others: % of 2 sent\n';
		expect(report).toMatch(/\n {2}delivered +2 +66\.67 % *\n {2}opened +0 +0\.00 % +0 *\n/);
		expect(report).toContain(bases);
		const plain = await shown('report', '--campaign', 'spring', '--no-pager');
		expect(stripVTControlCharacters(plain)).toContain(top);
		expect(plain).toContain(bases);
		for (const [name, text] of [
			[
				'r.md',
				/\n- list: Readers\n[\s\S]*\n\| recipients \| 5 \|\n[\s\S]*\| 66\.67 % \| 3 attempted \|[\s\S]*\n\| deferred \| 451 4\.3\.0 Later \| 1 \|/,
			],
			['r.json', /"replies": \[[^\]]*No such user/],
			['r.svg', />list: Readers, sender: news@example\.com, sent on: [\s\S]*>5 recipients: 2 sent, 0 w/],
			[
				'r.html',
				/<p>sent on <b>2026-11-07 12:00 UTC<[\s\S]*recipients<.*<b>5<[\s\S]*66\.67 % of 3 attempted<[\s\S]*<td>bounced<\/td><td>550 5\.1\.1 No such user<\/td><td class="n">1</,
			],
		] as const) {
			await shown('campaigns', 'report', 'spring', '--save', join(people.folder, name));
			expect(await readFile(join(people.folder, name), 'utf8')).toMatch(text);
		}
	});

	it.each([
		[['--expect-count', '9'], ['cancel', 'early'], { total: 2, sent: 0, canceled: 2 }],
		[['--expect-count', '2', '--in', '1d'], null, { total: 2, sent: 0, waiting: 2 }],
	])('reports the recipients of an unsent campaign (%j)', async (options, then, recipients) => {
		await project.run([...words, '--yes', '--campaign', 'early', ...options]);
		if (then !== null) await project.json(['campaigns', ...then, '--yes']);
		expect(await project.json(['campaigns', 'report', 'early'])).toMatchObject({ campaign: { recipients } });
	});

	it('shows a campaign and its list in the same form in each command', async () => {
		await project.json([...agreed, '--campaign', 'spring']);
		const seen = async (argv: readonly string[]) => {
			const { code, stdout } = await project.run(argv, { interactive: true, columns: 80 });
			return [code, stripVTControlCharacters(stdout)];
		};
		const card = await seen(['campaigns', 'get', 'spring']);
		expect(card).toEqual([0, expect.stringMatching(/^LIST +Readers$[\s\S]*^MESSAGES +2 sent$/m)]);
		expect(await seen([...agreed, '--campaign', 'spring'])).toEqual(card);
		expect(await seen(['campaigns', 'resume', 'spring'])).toEqual(card);
		expect(await project.json(['campaigns', 'get', 'spring'])).toMatchObject({ list_id: 1 });
	});

	it('shows every link, even if nobody has clicked it', async () => {
		const html = '<a href="https://example.com/?q=%22a%22&amp;n=#name#">x</a>';
		const { name } = (await project.json([...agreed, '--html', html])) as Sent;
		expect(await project.json(['campaigns', 'links', name])).toEqual([
			{
				...{ url: 'https://example.com/?q=%22a%22&n=#name#', position: 1, people: 0, clicks: 0 },
				...{ machine_people: 0, machine_clicks: 0, share: 0 },
			},
		]);
		expect((await project.run(['campaigns', 'links', name, '-o', 'csv'])).stdout).toBe(
			'url,people,clicks,share,machine_people,machine_clicks,position\r\n' +
				'https://example.com/?q=%22a%22&n=#name#,0,0,0,0,0,1\r\n',
		);
		expect((await project.run(['campaigns', 'links', 'unknown'])).code).toBe(3);
	});

	it('counts each message that was added to the campaign by send --to', async () => {
		const { id, name } = (await project.json([...agreed, '--again', '--campaign', 'joined'])) as Sent;
		await project.json([...single, '--campaign', name]);
		expect(await project.json(['messages', 'list', '--campaign', name])).toHaveLength(3);
		const counts = { id, recipients: 3, joined: 1, staged: 2, sent: 3 };
		expect(await project.json(['campaigns', 'get', name])).toMatchObject({
			...counts,
			messages: { sent: 3 },
		});
		expect(await project.json(['campaigns', 'list', '--limit', '1'])).toMatchObject([counts]);
		const { stdout } = await project.run(['campaigns', 'get', name, '-o', 'table']);
		expect(stdout).toContain('MESSAGES       3 sent; 1 of them from send --to\n');
	});

	it('accepts the UUID that send prints when --campaign is missing, and shows the mail’s outcome', async () => {
		await project.json(['suppressions', 'add', 'dan@example.com', '--reason', 'UNSUBSCRIBED', '--yes']);
		const bulk = [...single, '--to', 'dan@example.com', '--bulk', '--yes'];
		const { stderr } = await project.run(bulk);
		const id = /[\da-f]{8}-[\da-f-]{27}/.exec(stderr)?.[0] ?? '';
		expect(stderr).toContain(`campaign ${id}`);
		expect(await project.json(['campaigns', 'get', id])).toMatchObject({
			...{ name: id, id, state: 'finished', type: 'BULK', subject: 'S', list_id: null, source: null },
			...{ recipients: 2, staged: 1, suppressed: 1, rejected: 0, rows: 2, is_complete: true },
			...{ sent: 1, opened: 0, bounced: 0, messages: { sent: 1 } },
		});
		expect(await project.json(['campaigns', 'results', id.toUpperCase()])).toEqual([
			expect.objectContaining({ to: 'cid@example.com', state: 'sent', campaign_unique_id: id }),
			{
				...{ line: null, to: 'dan@example.com', id: null, state: 'suppressed', code: 'suppressed' },
				...{ text: 'suppressed (UNSUBSCRIBED)', attempts: 0, campaign_unique_id: id },
			},
		]);
		expect(await project.json(['campaigns', 'results', id, '--only', 'left-out'])).toHaveLength(1);
		expect(await project.json(['campaigns', 'report', id])).toMatchObject({ total: { sent: 1 } });
		expect(await project.json(['campaigns', 'links', id])).toEqual([]);
		const compared = await project.json(['campaigns', 'compare', id, id]);
		expect(compared).toMatchObject({ compared: [{ name: id, figures: { sent: 1 } }, { name: id }] });
		expect(await project.json(['campaigns', 'list'])).toEqual([]);
		const why = await project.json(['why', 'dan@example.com']);
		expect(why).toMatchObject({
			left_out: [{ campaign: id, key: id, code: 'suppressed', error: 'suppressed (UNSUBSCRIBED)' }],
		});
		const page = (await project.run(['why', 'dan@example.com'])).stdout;
		expect(page).toMatch(new RegExp(`^ +\\S+ \\S+ ${id}: suppressed \\(UNSUBSCRIBED\\)$`, 'm'));
	});

	it('cancels a campaign while a worker sends it, and no mail leaves afterwards', async () => {
		const slow = await startSmtpSink({
			onRcptTo: (_address, _session, callback) => void setTimeout(() => callback(), 30),
		});
		await project.json(['engine', 'settings', 'set', 'smtp_url', `smtp://127.0.0.1:${slow.port}`]);
		const rows = Array.from({ length: 500 }, (_, at) => `r${at}@example.com`).join('\n');
		await project.run(['subscribers', 'import', '-', '-l', '1', '--rejects', `${project.db}.csv`], {
			stdin: `email\n${rows}\n`,
		});
		const send = [...words, '--yes', '--expect-count', '502', '--no-wait', '--campaign', 'big'];
		await project.json(send);
		const stop = new AbortController();
		const working = project.run(['worker'], { interrupts: stop.signal });
		await slow.until(30);
		const canceled = await project.json(['campaigns', 'cancel', 'big', '--yes']);
		const left = slow.received.length;
		const { canceled: count = 0, sent = 0 } = (canceled as { messages: Record<string, number> }).messages;
		expect([left, count + sent]).toEqual([sent, 502]);
		expect(sent).toBeLessThan(502);
		stop.abort();
		await working;
		expect(slow.received).toHaveLength(left);
		await slow.close();
	});

	it('cancels the waiting messages of one send call, and refuses to resume them', async () => {
		const { stderr } = await project.run([
			...single,
			...'--to dan@example.com --bulk --yes --no-wait'.split(' '),
		]);
		const id = /[\da-f]{8}-[\da-f-]{27}/.exec(stderr)?.[0] ?? '';
		expect(await project.json(['campaigns', 'get', id])).toMatchObject({
			...{ state: 'sending', messages: { queued: 2 } },
		});
		const resumed = await project.run(['campaigns', 'resume', id]);
		expect(resumed).toMatchObject({ code: 2, stderr: expect.stringContaining('released by a single call') });
		const canceled = await project.run(['campaigns', 'cancel', id, '--yes', '-o', 'json']);
		expect(JSON.parse(canceled.stdout)).toMatchObject({
			...{ name: id, state: 'finished', messages: { canceled: 2 } },
		});
		const again = await project.run(['campaigns', 'cancel', id, '--yes']);
		expect(again).toMatchObject({
			code: 0,
			stderr: expect.stringContaining('nothing to cancel: sent 0, canceled 2'),
		});
		expect(sink.received).toEqual([]);
	});

	it('compares campaigns and prints differences in percentage points', async () => {
		for (const name of ['one', 'two']) await project.json([...agreed, '--again', '--campaign', name]);
		const compared = (await project.json(['campaigns', 'compare', 'one', 'two'])) as object;
		expect(compared).toMatchObject({
			compared: [
				{ name: 'one', figures: { sent: 2, attempted: 2 }, rates: { delivered: 100, opened: 0 } },
				{ name: 'two', figures: { sent: 2 } },
			],
			differences: [{ name: 'two', figures: { sent: 0 }, rates: { delivered: 0, opened: 0 } }],
		});
		const { stdout } = await project.run(['campaigns', 'compare', 'one', 'two', '-o', 'csv']);
		expect(stdout.split('\r\n').slice(1, 3)).toEqual(['sent,2,2,0', 'delivered,100,100,0']);
		expect(await project.run(['campaigns', 'compare', 'one'])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('campaigns list'),
		});
		expect((await project.run(['campaigns', 'compare', 'one', 'unknown'])).code).toBe(3);
		const days = (await project.json(['report', 'compare', '--last', '2d'])) as { compared: object[] };
		expect(days.compared).toMatchObject([
			{ name: 'the 2 days before', figures: { sent: 0 } },
			{ name: 'the last 2 days', figures: { sent: 4 } },
		]);
		expect((await project.run(['report', 'compare', '--last', 'x'])).code).toBe(2);
	});

	it('lists campaigns with the newest first, and filters them by state', async () => {
		await project.json([...agreed, '--campaign', 'older']);
		await project.json([...agreed, '--again', '--campaign', 'newer', '--no-wait']);
		const names = async (...more: string[]) =>
			((await project.json(['campaigns', 'list', ...more])) as Sent[]).map(({ name }) => name);
		expect(await names()).toEqual(['newer', 'older']);
		expect(await names('--sort', 'name', '--limit', '1')).toEqual(['newer']);
		expect(await names('--state', 'sending')).toEqual(['newer']);
		expect(await names('--state', 'finished')).toEqual(['older']);
		expect(await names('--state', 'planned')).toEqual([]);
		expect(await names('--since', '2999-01-01')).toEqual([]);
	});

	it('resumes at the campaign’s own rate unless --rate is given', async () => {
		await project.json([...agreed, '--campaign', 'one', '--rate', '100/s']);
		await project.json([...agreed, '--again', '--campaign', 'two', '--no-wait']);
		await project.json([...agreed, '--again', '--campaign', 'three', '--no-wait']);
		const db = new Database(project.db);
		const rates = () => db.prepare('SELECT rate FROM campaigns ORDER BY seq').pluck().all();
		expect(rates()).toEqual(['100/s', null, null]);
		db.exec("UPDATE campaigns SET rate = '200/s' WHERE key <> 'one'");
		const kept = await project.run(['campaigns', 'resume', 'two']);
		expect([kept.code, kept.stderr]).toEqual([
			0,
			expect.stringContaining('still at 200/s; --rate changes the rate\n'),
		]);
		const other = await project.run(['campaigns', 'resume', 'three', '--rate', '300/s']);
		expect([other.code, other.stderr]).toEqual([0, expect.not.stringContaining('as before')]);
		expect(rates()).toEqual(['100/s', '200/s', '300/s']);
		db.close();
	});

	it('resumes the only unfinished campaign, or lists the unfinished campaigns if there are several', async () => {
		expect((await project.run(['campaigns', 'resume'])).code).toBe(3);
		await project.json([...agreed, '--campaign', 'one', '--no-wait']);
		await project.json([...agreed, '--again', '--campaign', 'two', '--no-wait']);
		const several = await project.run(['campaigns', 'resume']);
		expect(several).toMatchObject({
			code: 2,
			stderr: expect.stringMatching(/2 campaigns are unfinished.*\n.*two \(sending.*\n.*one \(sending/),
		});
		await project.json(['campaigns', 'cancel', 'two', '--yes']);
		expect(await project.json(['campaigns', 'resume'])).toMatchObject({ name: 'one', messages: { sent: 2 } });
	});
});

describe('a repeated send at a terminal', () => {
	it('offers to resume an unfinished campaign, and asks before it sends a finished campaign again', async () => {
		await project.json([...agreed, '--campaign', 'first', '--no-wait']);
		const not = await typing([['Resume it?', 'n']], (options) => project.run(words, options));
		expect([not.code, stripVTControlCharacters(not.stderr)]).toEqual([
			130,
			expect.stringMatching(/campaigns resume first\s+continues it;\s--again/),
		]);
		const resumed = await typing([['Resume it?', 'y']], (options) => project.run(words, options));
		expect(resumed.stderr).toMatch(/"first" was sent to this list \d+ seconds? ago, and is not finished/);
		expect(resumed.code).toBe(0);
		expect(sink.received).toHaveLength(2);
		const declined = await typing([['Send it once more?', 'n']], (options) => project.run(words, options));
		expect(declined.code).toBe(130);
		expect(sink.received).toHaveLength(2);
		expect(await project.json(['campaigns', 'list'])).toHaveLength(1);
	});
});
