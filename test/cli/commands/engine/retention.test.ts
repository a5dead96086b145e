import { expect, it } from 'vitest';
import { expiring } from '../../../support/expire.js';
import { makeProject } from '../../../support/project.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';

const later = ['--now', '2030-01-01T00:00:00Z'];

async function sentOne() {
	const sink = await startSmtpSink();
	const project = await makeProject({ smtp: sink.port });
	const mail = ['--from', 'news@example.com', '--to', 'ann@example.com', '--subject', 'Hi'];
	await project.json(['send', ...mail, '--text', 'Hello', '--yes']);
	await sink.close();
	return project;
}

it('settings set keep_messages needs --yes for a shorter time, which deletes messages, but not for a longer time', async () => {
	const project = await sentOne();
	const set = (value: string, ...more: string[]) =>
		project.run([...later, 'engine', 'settings', 'set', 'keep_messages', value, ...more]);
	expect(await set('30d')).toMatchObject({
		code: 2,
		stderr: expect.stringMatching(
			/this will delete about 1 message and 1 body for good.*\n.*add --yes to agree/,
		),
	});
	expect(await set('30d', '-n')).toMatchObject({
		code: 0,
		stderr: expect.stringContaining('This would delete about 1 message'),
	});
	expect(await project.json(['engine', 'settings', 'get', 'keep_messages'])).toMatchObject({ value: null });
	expect(await set('30d', '--yes')).toMatchObject({ code: 0 });
	expect(await set('400d')).toMatchObject({ code: 0 });
	expect(await project.json([...later, 'engine', 'status'])).toMatchObject({
		retention: { keep_messages: '400d', frees: { messages: 1, events: 0, bodies: 1 } },
	});
	const { stdout } = await project.run([...later, 'engine', 'status', '--no-color'], { columns: 200 });
	expect(stdout).toMatch(/^RETENTION +keep_messages 400d; frees about \d+ KiB \(1 message and 1 body\)$/m);
	expect(stdout).toMatch(/^DISK USAGE +(?:\w+ \d+ KiB, )+\w+ \d+ KiB$/m);
});

it('apply asks before it shortens a retention time', async () => {
	const project = await sentOne();
	const file = await project.file('mail.yaml', 'settings:\n  keep_messages: 30d\n');
	const told = { stderr: expect.stringContaining('This would delete about 1 message') };
	expect(await project.run([...later, 'diff', '-f', file])).toMatchObject({ code: 11, ...told });
	expect(await project.run([...later, 'apply', '-f', file, '-n'])).toMatchObject({ code: 0, ...told });
	expect(await project.run([...later, 'apply', '-f', file])).toMatchObject({
		code: 2,
		stderr: expect.stringContaining('this will delete about 1 message'),
	});
	expect(await project.run([...later, 'apply', '-f', file, '--yes'])).toMatchObject({ code: 0 });
	expect(await project.run([...later, 'apply', '-f', file])).toMatchObject({
		code: 0,
		stderr: expect.stringContaining('nothing to change'),
	});
});

/** Sends a campaign and lets retention delete its message; `at` runs a command a year later. */
async function deletedMonthsAgo() {
	const sink = await startSmtpSink();
	const project = await makeProject({ smtp: sink.port });
	const now = ['--now', '2026-01-05T10:00:00Z'];
	const mail = ['--from', 'news@example.com', '--subject', 'Hi', '--text', 'Hello'];
	const rows = await project.file('rows.csv', 'email\nann@example.com\n');
	const campaign = ['--csv', rows, '--campaign', 'news', '--yes', '--expect-count', '1'];
	await project.json([...now, 'send', ...mail, ...campaign]);
	const [{ id } = { id: '' }] = (await project.json(['messages', 'list'])) as { id: string }[];
	await project.json([...now, 'engine', 'settings', 'set', 'keep_messages', '400d']);
	await expiring(project.db).expire(Date.parse('2027-03-01T00:00:00Z') * 1_000);
	await sink.close();
	const at = (...words: string[]) =>
		project.run(['--now', '2027-03-01T00:00:00Z', ...words], { columns: 200 });
	return { id, rows, at };
}

it('mailctl messages, mailctl why and mailctl campaigns print that retention has deleted messages', async () => {
	const { id, at } = await deletedMonthsAgo();
	const told = 'mailctl deletes messages from before 2026-01-25 (keep_messages 400d)';
	expect(await at('messages', 'get', id)).toMatchObject({ code: 3, stderr: expect.stringContaining(told) });
	expect(await at('messages', 'raw', id)).toMatchObject({ code: 3, stderr: expect.stringContaining(told) });
	const { stderr } = await at('messages', 'list', '--campaign', 'news', '-o', 'table');
	expect(stderr).toContain(told);
	expect(await at('messages', 'list', '--campaign', 'news', '-o', 'json')).toMatchObject({
		...{ stdout: '[]\n', stderr: '' },
	});
	expect(await at('why', 'ann@example.com')).toMatchObject({
		code: 3,
		stderr: expect.stringContaining(told),
	});
	await at('suppressions', 'add', 'ann@example.com');
	const why = await at('why', 'ann@example.com', '-o', 'table');
	expect(why.stdout).toContain(told);
	expect(JSON.parse((await at('why', 'ann@example.com', '-o', 'json')).stdout)).toMatchObject({
		deleted: { before: '2026-01-25T00:00:00.000000', keep_messages: '400d' },
	});
	expect((await at('campaigns', 'get', 'news', '-o', 'table')).stdout).toContain(
		'  1 sent; keep_messages began to delete messages on 2027-03-01\n',
	);
	expect((await at('campaigns', 'results', 'news')).stderr).toContain(
		'The messages of the campaign "news" were deleted on 2027-03-01 (keep_messages)',
	);
});
