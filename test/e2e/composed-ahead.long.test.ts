// The campaign is large enough that threads compose and sign it, and Ctrl-C interrupts its worker.
import { once } from 'node:events';
import { afterEach, expect, it } from 'vitest';
import { startProgram } from '../support/cli.js';
import { makeProject } from '../support/project.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

let sink: SmtpSink | null = null;
afterEach(() => sink?.close());

const readers = 1_500;

it('each recipient gets their own signed mail once, even if the worker is interrupted', async () => {
	sink = await startSmtpSink();
	const { db, folder, file, json } = await makeProject({ smtp: sink.port });
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'asked']);
	const rows = Array.from({ length: readers }, (_, row) => `r${row}@example.org,Reader ${row}`);
	const csv = await file('readers.csv', `email,name\n${rows.join('\n')}\n`);
	await json(['subscribers', 'import', csv, '-l', '1']);
	await json(['engine', 'dkim', 'add', '--domain', 'example.com', '--selector', 's1', '--type', 'ed25519']);
	const page = await file('news.html', '<p>Dear #name#, <a href="#unsubscribe_url#">leave</a></p>');
	const campaign = [
		'--from',
		'news@example.com',
		'--list',
		'1',
		'--subject',
		'For #name#',
		'--html-file',
		page,
	];
	const sure = ['--bulk', '--campaign', 'j', '--yes', '--expect-count', String(readers), '--no-wait'];
	await json(['send', ...campaign, ...sure]);

	const work = () => startProgram(['--db', db, 'worker', '--drain', '-q'], { HOME: folder });
	const interrupted = work();
	await sink.until(700);
	interrupted.kill('SIGTERM');
	await once(interrupted, 'close');
	const [code] = await once(work(), 'close');
	expect(code).toBe(0);

	const wrong = sink.received.filter(({ to, raw }) => {
		const row = /^r(\d+)@/.exec(to[0] ?? '')?.[1];
		const text = raw.toString('latin1');
		const isOwn = [`To: r${row}@example.org\r\n`, `Subject: For Reader ${row}\r\n`, `Reader ${row},`];
		return (
			to.length !== 1 || !text.startsWith('DKIM-Signature: ') || !isOwn.every((part) => text.includes(part))
		);
	});
	expect(wrong.map(({ raw }) => raw.toString('latin1'))).toEqual([]);
	expect(sink.received.map(({ to }) => to[0]).toSorted()).toEqual(
		rows.map((row) => row.slice(0, row.indexOf(','))).toSorted(),
	);
});
