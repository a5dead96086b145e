import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('--markdown-file', () => {
	let project: Project;
	let sink: SmtpSink;
	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
	});
	afterEach(() => sink.close());

	const one = ['send', '--from', 'news@example.com', '--to', 'ann@example.com', '--context', 'name=Ann <A>'];

	it('makes text and HTML bodies, escapes values in the HTML, and takes the subject from the heading', async () => {
		const file = await project.file('news.md', '# News for #name#\n\n- Hi #name|friend#\n');
		await project.json([...one, '--markdown-file', file]);
		const mail = await PostalMime.parse(sink.received[0]?.raw ?? '');
		expect(mail.subject).toBe('News for Ann <A>');
		expect(mail.text).toContain('Hi Ann <A>');
		expect(mail.html).toContain('Hi Ann &lt;A&gt;</li>');
		expect(mail.html).toMatch(/<h1 style="[^"]*font-size: 28px/);
		expect(mail.html).toContain('prefers-color-scheme: dark');
	});

	it('does not override --subject and --text', async () => {
		const file = await project.file('news.md', '# News\n\nHi\n');
		await project.json([...one, '--markdown-file', file, '--subject', 'S', '--text', 'T']);
		const mail = await PostalMime.parse(sink.received[0]?.raw ?? '');
		expect([mail.subject, mail.text?.trim()]).toEqual(['S', 'T']);
	});

	it.each([
		['without a heading or subject', 'Hi\n', [], 'missing --subject'],
		['beside HTML', '# A\n', ['--html', '<p>x</p>'], 'use either --html or --markdown-file, not both'],
		['without a word', '<!-- -->\n', ['--subject', 'S'], 'contains no text'],
		['beside a template', '# A\n', ['--template', 'T'], 'use either --markdown-file or --template, not both'],
	])('is rejected %s', async (_what, markdown, more, words) => {
		const file = await project.file('news.md', markdown);
		const run = await project.run([...one, '--markdown-file', file, ...more]);
		expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(words)]);
		expect(sink.received).toEqual([]);
	});

	it('creates and updates templates', async () => {
		const file = await project.file('t.md', '# Welcome\n\nHi #name#\n');
		const made = await project.json(['templates', 'create', '--name', 'W', '--markdown-file', file]);
		expect(made).toMatchObject({
			text_body: 'Welcome\n\nHi #name#',
			html_body: expect.stringContaining('<p>Hi #name#</p>'),
		});
		const other = await project.file('t2.md', 'Bye\n');
		const changed = await project.json(['templates', 'update', 'W', '--markdown-file', other]);
		expect(changed).toMatchObject({ name: 'W', text_body: 'Bye' });
		const both = ['templates', 'update', 'W', '--markdown-file', other, '--html-file', file];
		expect((await project.run(both)).code).toBe(2);
	});
});
