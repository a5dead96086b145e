// `templates pull` and `templates push` keep a folder for each template, and a round trip loses nothing.
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';

let project: Project;
let mails: string;

beforeEach(async () => {
	project = await makeProject();
	mails = join(project.folder, 'mails');
});

/** Uses the API, because `templates create` refuses some of these names and bodies. */
async function add(name: string, bodies: { html_body?: string; text_body?: string } = { text_body: 'Hi' }) {
	const body = JSON.stringify({ name, ...bodies });
	await project.json(['api', 'POST', '/ext/templates/', '--data', body]);
}

async function tree(folder: string): Promise<Record<string, string>> {
	const entries = await readdir(folder, { recursive: true, withFileTypes: true });
	const files = entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
	return Object.fromEntries(
		await Promise.all(
			files.sort().map(async (path) => [relative(folder, path), await readFile(path, 'latin1')] as const),
		),
	);
}

async function put(files: Record<string, string | Buffer>): Promise<void> {
	for (const [path, content] of Object.entries(files)) {
		await mkdir(dirname(join(mails, path)), { recursive: true });
		await writeFile(join(mails, path), content);
	}
}

const push = (...words: string[]) => project.run(['templates', 'push', mails, ...words]);
const pull = (...words: string[]) => project.run(['templates', 'pull', mails, ...words]);
const lines = ({ stdout }: { stdout: string }) =>
	stdout
		.split('\n')
		.slice(0, -1)
		.map((line) => line.split('\t'));
const named = async () =>
	(
		(await project.json(['templates', 'list'])) as { name: string; html_body: string; text_body: string }[]
	).map(({ name, html_body, text_body }) => ({ name, html_body, text_body }));

describe('templates pull', () => {
	it('writes a folder for each template, and changes nothing when it runs again', async () => {
		await add('Welcome #name#', { html_body: '<p>Hi</p>\r\n', text_body: 'Hi' });
		await add('Plain');
		expect(await pull()).toEqual({
			code: 0,
			stdout:
				'created\tWelcome #name#\tWelcome #name#\tsubject.txt, body.html, body.txt\n' +
				'created\tPlain\tPlain\tsubject.txt, body.txt\n',
			stderr: `pulled to ${mails}: 2 created\n`,
		});
		expect(await tree(mails)).toEqual({
			'Plain/body.txt': 'Hi',
			'Plain/subject.txt': 'Plain\n',
			'Welcome #name#/body.html': '<p>Hi</p>\r\n',
			'Welcome #name#/body.txt': 'Hi',
			'Welcome #name#/subject.txt': 'Welcome #name#\n',
		});
		for (const folder of [mails, join(mails, 'Plain')]) expect((await stat(folder)).mode & 0o777).toBe(0o700);
		expect(await project.json(['templates', 'pull', mails])).toEqual([
			{ action: 'unchanged', name: 'Welcome #name#', folder: 'Welcome #name#', files: [] },
			{ action: 'unchanged', name: 'Plain', folder: 'Plain', files: [] },
		]);
	});

	it('replaces a changed file only after confirmation', async () => {
		await add('A', { text_body: 'theirs' });
		await add('B');
		await put({ 'A/body.txt': 'mine', 'A/body.html': '<p>mine</p>' });
		const refused = await pull();
		expect(refused).toMatchObject({
			code: 2,
			stdout: '',
			stderr: expect.stringContaining(
				`this will replace 2 files in ${mails}: A/body.html, A/body.txt\nhint: add --yes to agree`,
			),
		});
		const before = { 'A/body.txt': 'mine', 'A/body.html': '<p>mine</p>' };
		expect(await tree(mails)).toEqual(before);
		expect(await pull('-n')).toMatchObject({ code: 0 });
		expect(await tree(mails)).toEqual(before);
		expect(await pull('B')).toMatchObject({ code: 0 });
		expect(await pull('--force')).toMatchObject({ code: 0 });
		expect(await tree(mails)).toEqual({
			'A/body.txt': 'theirs',
			'B/body.txt': 'Hi',
			'B/subject.txt': 'B\n',
		});
	});

	it('asks nothing if a previous pull was killed while it wrote a file', async () => {
		await add('A', { text_body: 'T', html_body: '<p>H</p>' });
		await put({ 'A/subject.txt': 'A\n', 'A/.body.html.0123456789ab.part': '<p' });
		expect(lines(await pull())).toEqual([['updated', 'A', 'A', 'body.html, body.txt']]);
	});

	it('finds the folder of a template by its subject.txt if the folder’s name differs', async () => {
		await add('Spring sale');
		await put({ 'sale/subject.txt': 'Spring sale', 'sale/body.txt': 'Hi' });
		expect(lines(await pull())).toEqual([['unchanged', 'Spring sale', 'sale', '']]);
	});

	it('never writes through a symbolic link', async () => {
		await add('A');
		await put({ 'B/body.txt': 'kept' });
		await symlink(join(mails, 'B'), join(mails, 'A'));
		expect(await pull('--force')).toMatchObject({
			code: 2,
			stderr: `error: ${mails}/A is a symbolic link\n`,
		});
		await rm(join(mails, 'A'));
		await mkdir(join(mails, 'A'));
		await symlink(join(mails, 'B/body.txt'), join(mails, 'A/body.txt'));
		expect(await pull('--force')).toMatchObject({
			code: 2,
			stderr: `error: ${mails}/A/body.txt is a symbolic link\n`,
		});
		expect(await readFile(join(mails, 'B/body.txt'), 'utf8')).toBe('kept');
	});
});

describe('templates push', () => {
	it('creates and updates templates that differ, and deletes templates only with --prune', async () => {
		await add('Old');
		await add('Same');
		await add('Other', { text_body: 'old', html_body: '<p>old</p>' });
		await put({
			'New/body.html': '<p>Hi</p>',
			'Other/body.txt': 'new',
			'Same/body.txt': 'Hi',
			'Same/subject.txt': 'Same',
			'.git/config': '',
			'Same/.DS_Store': '',
		});
		const shown = [
			['created', 'New', 'New', 'body.html'],
			['updated', 'Other', 'Other', 'body.html, body.txt'],
			['unchanged', 'Same', 'Same', ''],
		];
		const before = await named();
		expect(await project.json(['templates', 'push', mails, '-n'])).toMatchObject({
			dry_run: true,
			push: mails,
			with: { templates: [{ action: 'created', name: 'New', folder: 'New' }, {}, {}] },
		});
		expect(await named()).toEqual(before);
		const pushed = await push();
		expect({ code: pushed.code, lines: lines(pushed) }).toEqual({
			code: 0,
			lines: shown.map(([action, name, folder, files]) => [
				action,
				name,
				folder,
				action === 'created' ? 'subject.txt, body.html' : files,
			]),
		});
		expect(pushed.stderr).toContain(`pushed ${mails}: 1 created, 1 updated, 1 unchanged\n`);
		expect(await named()).toEqual([
			{ name: 'Old', text_body: 'Hi', html_body: '' },
			{ name: 'Same', text_body: 'Hi', html_body: '' },
			{ name: 'Other', text_body: 'new', html_body: '' },
			{ name: 'New', text_body: '', html_body: '<p>Hi</p>' },
		]);
		expect(await push('--prune')).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('this will delete the template "Old"\nhint: add --yes to agree'),
		});
		expect(lines(await push('--prune', '-y')).at(-1)).toEqual(['deleted', 'Old', '', '']);
		expect(lines(await push('--prune')).map(([action]) => action)).toEqual(Array(3).fill('unchanged'));
	});

	it('pushes only the templates or folders that it is given', async () => {
		await add('Gone');
		await add('Stays');
		await put({ 'a/subject.txt': 'First', 'a/body.txt': 'A', 'b/body.txt': 'B', 'c/notes.md': '' });
		expect(lines(await push('First'))).toEqual([['created', 'First', 'a', 'subject.txt, body.txt']]);
		expect(lines(await push('a', 'b')).map(([action]) => action)).toEqual(['unchanged', 'created']);
		expect(await push('Frist')).toMatchObject({
			code: 2,
			stderr: `error: no folder for the template "Frist" in ${mails}\nhint: did you mean First?\n`,
		});
		expect(await push('Gone')).toMatchObject({ code: 2 });
		expect(lines(await push('Gone', '--prune', '-y'))).toEqual([['deleted', 'Gone', '', '']]);
		expect((await named()).map(({ name }) => name)).toEqual(['Stays', 'First', 'b']);
	});

	it('renames the template if the subject in its folder changed', async () => {
		await add('Welcome');
		await pull();
		await put({ 'Welcome/subject.txt': 'Welcome aboard\r\n' });
		expect(lines(await push('--prune'))).toEqual([['updated', 'Welcome aboard', 'Welcome', 'subject.txt']]);
		expect(lines(await pull())).toEqual([['unchanged', 'Welcome aboard', 'Welcome', '']]);
		expect(await named()).toHaveLength(1);
	});

	it.each<[string, Record<string, string | Buffer>, string]>([
		['no body', { 'A/subject.txt': 'A' }, '/A has no body: it needs body.html or body.txt'],
		['a body that is not UTF-8', { 'A/body.txt': Buffer.from([0xfc]) }, '/A/body.txt is not UTF-8 text'],
		['a folder in place of a file', { 'A/body.txt/x': '' }, '/A/body.txt is not a file'],
		[
			'two folders with the same name',
			{ 'A/body.txt': '', 'B/body.txt': '', 'B/subject.txt': 'A' },
			'/B: the template "A" is in ',
		],
	])('rejects %s, and changes nothing', async (_, files, says) => {
		await put({ ...files, '0/body.txt': 'fine' });
		const { code, stderr } = await push();
		expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(`error: ${mails}${says}`) });
		expect(await named()).toEqual([]);
	});

	it('prints the name of the template in warnings about its content', async () => {
		await put({ 'A/body.html': '<a href="#">x</a>', 'B/body.txt': 'x' });
		expect((await push()).stderr).toContain('warning: A: 1 link that leads nowhere');
		expect((await push()).stderr).toBe(`pushed ${mails}: 2 unchanged\n`);
	});
});

const odd = [
	...['Welcome', 'welcome', 'WELCOME', '..', 'a/b', 'con', 'tab\tand \x1b', 'two\nlines', '50% ~off', '~'],
	...['Grüße 🎉', 'cafe\u0301', 'caf\u00e9', `${'long '.repeat(50)}A`, `${'long '.repeat(50)}B`],
];

async function roundTrip(call: (words: readonly string[]) => Promise<{ code: number; stderr: string }>) {
	for (const name of odd) await add(name, { text_body: `of ${name}\r\n\n`, html_body: '<p>\u2028</p>' });
	await add('bare', {});
	await add('html', { html_body: 'x' });
	expect(await pull()).toMatchObject({ code: 0 });
	const again = join(project.folder, 'again');
	expect(await call(['templates', 'push', mails])).toMatchObject({ code: 0 });
	expect(await call(['templates', 'pull', again])).toMatchObject({ code: 0 });
	expect(await tree(again)).toEqual(await tree(mails));
	expect(Object.keys(await tree(mails)).length).toBe(odd.length * 3 - 1 + 4);
	expect(lines(await push()).filter(([action]) => action !== 'unchanged')).toEqual([]);
}

describe('templates pull followed by push and pull', () => {
	it('keeps the bytes of any template, on a mailctl server too', async () => {
		const server = await startServer((await makeProject()).db, ['--no-worker']);
		onTestFinished(async () => void (await server.stop()));
		const env = { HOME: project.folder, MAILCTL_TOKEN: server.token };
		await roundTrip((words) => cli(['--base-url', server.baseUrl, ...words], { env }));
	});
});
