import { beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../support/project.js';

describe('templates', () => {
	let project: Project;
	const welcome = {
		id: expect.stringMatching(/^[0-9a-f-]{36}$/),
		name: 'Welcome',
		text_body: '',
		html_body: '<p>Hi #name#</p>',
		date_created: '2026-11-01T10:00:00.000000',
		date_updated: '2026-11-01T10:00:00.000000',
	};

	beforeEach(async () => {
		project = await makeProject();
		const html = await project.file('welcome.html', '<p>Hi #name#</p>');
		await project.json([
			...['templates', 'create', '--name', 'Welcome', '--html-file', html, '--now', '2026-11-01T10:00:00Z'],
		]);
	});

	it('are rejected without a body, or if the file of the body is missing or not UTF-8', async () => {
		const latin = await project.file('latin.txt', Buffer.from('Gr\xfc\xdfe', 'latin1'));
		const refusals = await Promise.all(
			[[], ['--text-file', '/nowhere'], ['--text-file', project.folder], ['--text-file', latin]].map(
				(words) => project.run(['templates', 'create', '--name', 'X', ...words]),
			),
		);
		expect(refusals.map(({ code, stderr }) => [code, stderr])).toEqual([
			[2, 'error: a template needs a body: --text-file, --html-file, or --markdown-file\n'],
			[2, 'error: --text-file: /nowhere: no such file\n'],
			[2, `error: --text-file: ${project.folder} is a directory\n`],
			[2, `error: ${latin} is not UTF-8 text: see line 1\n`],
		]);
		expect(await project.json(['templates', 'list'])).toEqual([welcome]);
	});

	it('are rendered to HTML with escaped values; each missing value causes a warning', async () => {
		const words = ['templates', 'render', 'Welcome', '--context', 'name=<b>'];
		const { stdout, stderr, code } = await project.run(words);
		expect({ stdout, stderr, code }).toEqual({ stdout: '<p>Hi &lt;b&gt;</p>\n', stderr: '', code: 0 });
		const bare = await project.run(['templates', 'render', 'Welcome']);
		expect(bare).toEqual({ code: 0, stdout: '<p>Hi #name#</p>\n', stderr: 'warning: no value for #name#\n' });
	});

	it('are rendered without a warning for built-in variables', async () => {
		const text = await project.file(
			'links.txt',
			'#email# #town# #unsubscribe_url# #view_url# #email_reason#',
		);
		await project.json(['templates', 'create', '--name', 'Links', '--text-file', text]);
		const { stderr } = await project.run(['templates', 'render', 'Links']);
		expect(stderr).toBe('warning: no value for #town#\n');
	});

	it('cannot be rendered as HTML if they have only text', async () => {
		const text = await project.file('plain.txt', 'Hi');
		await project.json(['templates', 'create', '--name', 'Plain', '--text-file', text]);
		expect(await project.run(['templates', 'render', 'Plain', '--part', 'html'])).toEqual({
			code: 2,
			stdout: '',
			stderr: 'error: the template Plain has no HTML\nhint: --part text\n',
		});
	});

	it('are printed escaped on a terminal, and unchanged into a pipe', async () => {
		const text = await project.file('evil.txt', 'a\x1b]0;owned\x07b\n');
		await project.json(['templates', 'create', '--name', 'Evil', '--text-file', text]);
		expect((await project.run(['templates', 'render', 'Evil'], { columns: 80 })).stdout).toBe(
			'a\\x1b]0;owned\\x07b\n',
		);
		expect((await project.run(['templates', 'render', 'Evil'])).stdout).toBe('a\x1b]0;owned\x07b\n');
	});
});
