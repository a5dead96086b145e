// Warnings about content: one line for each kind, in every way of sending. They never stop the send.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project, said } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

let project: Project;
let sink: SmtpSink;

beforeEach(async () => {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
});
afterEach(() => sink.close());

const html =
	'<p>Hi #nmae#</p>\n<a href="#">x</a><a href="example.com">y</a>\n<img src="a.png"><img src="b.png">';
const warnings = async (...words: string[]) => {
	const run = await project.run([...words, '-o', 'json']);
	return {
		code: run.code,
		warnings: said(run).filter((one) => 'warning' in one),
	};
};
const found = [
	{
		warning: '2 images without alternative text, first src="a.png" in line 3',
		hint: 'describe each image in its alt text; write alt="" for decoration',
	},
	{ warning: '2 links that lead nowhere, first href="#" in line 2' },
];
const unknown = {
	warning: 'no value for #nmae#',
	hint: 'did you mean #name#?',
};

describe('findings about content', () => {
	it('are printed once for a single message, but do not stop the message', async () => {
		const one = ['send', '--from', 'news@example.com', '--to', 'ann@example.com', '--subject', 'S'];
		expect(await warnings(...one, '--html', html)).toEqual({ code: 0, warnings: [unknown, ...found] });
		expect(sink.received).toHaveLength(1);
		expect(await warnings(...one, '--html', html, '--dry-run')).toEqual({
			code: 0,
			warnings: [unknown, ...found],
		});
	});

	it('are printed once for a table, whose columns count as known variables', async () => {
		const file = await project.file('p.csv', 'email,nmae,city\na@example.com,A,Oslo\nb@example.com,B,Rome\n');
		const send = ['send', '--from', 'news@example.com', '--csv', file, '--subject', 'S', '--html'];
		const agreed = ['--yes', '--expect-count', '2'];
		expect(await warnings(...send, html, ...agreed)).toEqual({ code: 0, warnings: found });
		expect(await warnings(...send, '<p>#citty|x#</p>', ...agreed)).toEqual({
			code: 0,
			warnings: [{ warning: '#citty# is not a known variable', hint: 'did you mean #city#?' }],
		});
	});

	it('suggest a variable whose name differs only in case', async () => {
		await project.json(['fields', 'create', '--variable', 'Vorname', '--name', 'Vorname']);
		const one = ['send', '--from', 'news@example.com', '--to', 'ann@example.com', '--subject', 'S'];
		expect(await warnings(...one, '--text', '#vorname#', '--dry-run')).toEqual({
			code: 0,
			warnings: [{ warning: 'no value for #vorname#', hint: 'did you mean #Vorname#?' }],
		});
		const file = await project.file('p.csv', 'email,Vorname\na@example.com,A\n');
		const send = ['send', '--from', 'news@example.com', '--csv', file, '--subject', 'S'];
		expect((await project.run([...send, '--text', '#vorname#', '-n'])).stderr).toContain(
			'#vorname#: for the column "Vorname", write #Vorname#\n',
		);
	});

	it('are printed for a list even if send rejects the campaign because of a missing value', async () => {
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked']);
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		await project.json(['subscribers', 'create', '--list', 'Readers', '--email', 'ann@example.com']);
		const send = ['send', '--from', 'news@example.com', '--list', 'Readers', '--subject', 'S', '--text'];
		const agreed = ['--yes', '--expect-count', '1'];
		const unsubscribe = {
			warning: 'the body of this bulk mail has no unsubscribe link',
			hint: 'write #unsubscribe_url# where the link belongs',
		};
		expect(await warnings(...send, 'Hi in #ctiy#', ...agreed)).toEqual({
			code: 2,
			warnings: [{ warning: '#ctiy# is not a known variable', hint: 'did you mean #city#?' }],
		});
		expect(await warnings(...send, 'Hi', ...agreed)).toEqual({
			code: 0,
			warnings: [unsubscribe, expect.objectContaining({ warning: expect.stringContaining('point to this') })],
		});
		const { warnings: told } = await warnings(...send, 'Hi', ...agreed, '--again', '--transactional');
		expect(told).toEqual([]);
	});

	it('are printed when a template is created or updated', async () => {
		const file = await project.file('t.html', html);
		expect(await warnings('templates', 'create', '--name', 'T', '--html-file', file)).toEqual({
			code: 0,
			warnings: found,
		});
		expect(await warnings('templates', 'update', 'T', '--html-file', file, '--dry-run')).toEqual({
			code: 0,
			warnings: found,
		});
	});
});
