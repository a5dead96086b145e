import { readFile, stat } from 'node:fs/promises';
import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withValues } from '../../support/cli.js';
import { makeProject, type Project, said } from '../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../support/smtp-sink.js';

const uuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
const hello = ['send', '--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hi #name#'];
const toAnn = [...hello, '--to', 'ann@example.com'];

describe('mailctl send', () => {
	let project: Project;
	let sink: SmtpSink;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
	});
	afterEach(() => sink.close());

	const mailOf = (at: number) => PostalMime.parse(sink.received[at]?.raw ?? '');
	const textOf = (at: number) => sink.received[at]?.raw.toString('latin1') ?? '';
	const messages = async (...words: string[]) =>
		(await project.json(['messages', 'list', ...words])) as { id: string; to: string; state: string }[];

	it('waits until the message is sent, prints the service’s answer and exits with 0', async () => {
		const { code, stdout, stderr } = await project.run([...toAnn, '--context', 'name=Ann', '-o', 'json']);
		expect({ code, document: JSON.parse(stdout), said: said({ stderr }) }).toEqual({
			code: 0,
			document: { messages: [{ to: 'ann@example.com', id: uuid }], result: true, messages_created: 1 },
			said: [{ note: 'sent 1' }],
		});
		expect(sink.received).toMatchObject([{ from: expect.stringContaining('@'), to: ['ann@example.com'] }]);
		expect((await mailOf(0)).text?.trim()).toBe('Hi Ann');
	});

	it('sends a separate message to each recipient, who does not see the others', async () => {
		await project.json([...toAnn, '--to', 'bob@example.com', '--to', 'ANN@example.com']);
		expect(sink.received.map(({ to }) => to).sort()).toEqual([['ann@example.com'], ['bob@example.com']]);
		expect(textOf(0).match(/^To: .*$/m)?.[0]).not.toContain(',');
	});

	it('delivers to a --bcc address, but the message does not contain the address', async () => {
		await project.json([...toAnn, '--cc', 'Carl <carl@example.com>', '--bcc', 'secret@example.com']);
		expect(sink.received[0]?.to.toSorted()).toEqual([
			'ann@example.com',
			'carl@example.com',
			'secret@example.com',
		]);
		expect(textOf(0)).toMatch(/^Cc: .*carl@example.com/m);
		expect(textOf(0)).not.toContain('secret@example.com');
		expect(textOf(0)).not.toMatch(/^Bcc:/im);
	});

	it('requires --cc-each if --cc is used with several recipients', async () => {
		const words = [...toAnn, '--to', 'bob@example.com', '--cc', 'carl@example.com'];
		expect(await project.run(words)).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: each --cc and --bcc address would get one copy for each --to\nhint: to send all the copies, add --cc-each\n',
		});
		expect(await project.json([...words, '--cc-each'])).toMatchObject({ messages_created: 2 });
		expect(sink.received.map(({ to }) => to.length)).toEqual([2, 2]);
	});

	it('sends headers, reply-to and tag', async () => {
		await project.json([
			...toAnn,
			'--header',
			'X-Id: 1',
			'--reply-to',
			'desk@example.com',
			'--tag',
			'spring',
		]);
		expect(textOf(0)).toMatch(/^X-Id: 1\r$/m);
		expect(textOf(0)).toMatch(/^Reply-To: desk@example.com\r$/m);
		expect(await messages()).toMatchObject([{ state: 'sent', tag: 'spring' }]);
	});

	it('reads values from a file and from --context, which overrides the file', async () => {
		const file = await project.file('context.json', '{"name": "File", "n": 5}');
		const body = ['--text', '#name# #n# #unknown#'];
		await project.json([
			...['send', '--from', 'news@example.com', '--to', 'a@example.com', '--subject', 'S', ...body],
			...['--context-file', file, '--context', 'name=Flag'],
		]);
		expect((await mailOf(0)).text?.trim()).toBe('Flag 5 #unknown#');
	});

	it('rejects bulk mail with a variable that has no value, and sends nothing', async () => {
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		const people = ['subscribers', 'create', '-l', 'L', '--email'];
		await project.json([...people, 'ann@example.com', '--meta', 'city=Oslo']);
		await project.json([...people, 'bob@example.com']);
		const words = ['send', '--from', 'news@example.com', '--subject', 'In #city#', '--text', 'T', '--bulk'];
		for (const to of ['bob@example.com', 'stranger@example.com'])
			expect(await project.run([...words, '--to', 'ann@example.com', '--to', to])).toMatchObject({
				code: 2,
				stderr: expect.stringContaining('error: no value for #city#; nothing was sent\n'),
			});
		expect(await messages()).toEqual([]);
		await project.json([...words, '--to', 'ann@example.com']);
		expect((await mailOf(0)).subject).toBe('In Oslo');
	});

	it('rejects a message if --strict-vars is given and a variable has no value', async () => {
		expect(
			await project.run([...hello.slice(0, -1), 'x #nope#', '--to', 'a@example.com', '--strict-vars']),
		).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: no value for #nope#; nothing was sent\n' +
				'hint: give --context NAME=VALUE, write a default (#name|friend#), or add --no-strict-vars\n',
		});
		expect(await messages()).toEqual([]);
	});

	it.each([
		[['send', '--to', 'a@example.com', '--subject', 'S', '--text', 'T'], 2, /^missing --from: /],
		[[...toAnn, '--text-file', '/x'], 2, 'use either --text or --text-file, not both'],
		[[...toAnn, '--template', 'X'], 2, 'use either --subject or --template, not both'],
		[[...toAnn, '--header', 'nonsense'], 2, '--header "nonsense" is not a header'],
		[[...toAnn, '--header', 'X-A: 1', '--header', 'x-a: 2'], 2, '--header x-a is given twice'],
		[[...toAnn, '--again'], 2, '--again needs --list, --csv or --batch'],
		[[...toAnn, '--cc-each'], 2, '--cc-each needs --cc or --bcc'],
		...['--rate', '--connections', '--wait-timeout'].map((flag): [string[], number, string] => [
			[...toAnn, '--no-wait', flag, flag === '--wait-timeout' ? '1s' : '1'],
			2,
			`${flag} has no effect with --no-wait: another process sends the messages`,
		]),
		[
			['send', ...toAnn.slice(1, 3), '--list', '1', '--test-to', 'a@example.com', '--preview', 'text'],
			2,
			'use either --test-to or --preview, not both',
		],
		[[...toAnn, '--rate', 'fast'], 2, '--rate "fast" is not a rate, such as 10/s, 600/m or 100/h'],
		[[...toAnn, '--eml', '-', '--preview', 'text'], 2, 'use either --eml - or --preview, not both'],
		[
			[...toAnn, '--max-recipients', '1', '--to', 'b@example.com'],
			2,
			'2 recipients are more than --max-recipients 1',
		],
		[[...toAnn, '--results', '/nowhere/r.csv'], 2, /--results: \/nowhere\/r.csv cannot be written/],
		[
			withValues(toAnn, { '--from': 'evil@example.com' }),
			5,
			'from: Sender address is not verified. (evil@example.com)',
		],
		[
			[...toAnn, '--to', 'a@example.com>\r\nRCPT TO:<evil@example.com'],
			5,
			/^recipient 2: Enter a valid email address/,
		],
		[[...toAnn, '--to', 'a@example.com, b@example.com'], 5, /^recipient 2: Enter a valid email address/],
		[[...toAnn, '--header', 'Bcc: evil@example.com'], 5, /^headers/],
		[[...toAnn, '--header', 'X-A: 1\r\nBcc: evil@example.com'], 5, /^headers/],
		[[...toAnn, '--header', 'X A: 1'], 5, /^headers/],
		[[...toAnn, '--campaign', 'x'], 3, 'campaign "x" not found'],
		[
			[...toAnn, '--bulk', '--cc', 'c@example.com', '--no-strict-vars'],
			5,
			/^cc: BULK messages cannot have cc or bcc/,
		],
		[
			['send', '--from', 'news@example.com', '--to', 'a@b.co', '--template', 'Nope'],
			3,
			'template "Nope" not found',
		],
	])('rejects %j with exit code %i, and sends nothing', async (words, code, message) => {
		for (const dry of [[], ['-n']]) {
			const result = await project.run([...words, ...dry]);
			const said = result.stderr.split('\n');
			const first = said.find((line) => !line.startsWith('warning: ') && !line.startsWith('hint: ')) ?? '';
			expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
			expect(first.replace('error: ', '')).toMatch(message);
		}
		expect([await messages(), sink.received]).toEqual([[], []]);
	});

	it('removes line breaks from the subject', async () => {
		await project.json([
			...toAnn.slice(0, 3),
			'--subject',
			'Hi #x#',
			...'--text T --to ann@example.com --context'.split(' '),
			'x=a\r\nBcc: evil@example.com',
		]);
		expect(sink.received[0]?.to).toEqual(['ann@example.com']);
		expect(textOf(0)).not.toMatch(/^Bcc:/im);
	});

	it('sends a stored template, whose name becomes the subject', async () => {
		const html = await project.file('w.html', '<p>Hi #name#</p>');
		await project.json(['templates', 'create', '--name', 'Welcome', '--html-file', html]);
		await project.json([
			'send',
			'--from',
			'News <news@example.com>',
			...'--to a@b.co --template Welcome --context name=Ann'.split(' '),
		]);
		expect(textOf(0)).toMatch(/^Subject: Welcome\r$/m);
		expect((await mailOf(0)).html).toMatch(/^<p>Hi Ann<\/p><img /);
	});

	it('shows the message and sends nothing with --preview, --eml or --dry-run', async () => {
		const words = [
			...toAnn,
			'--html',
			'<style>p{color:red}</style><p>Hi #name#</p>',
			'--context',
			'name=<Ann>',
		];
		const preview = async (part: string) => (await project.run([...words, '--preview', part])).stdout;
		expect(await preview('text')).toBe('Hi <Ann>\n');
		expect(await preview('html')).toContain('<p style="color: red;">Hi &lt;Ann&gt;</p>');
		const eml = `${project.folder}/m.eml`;
		expect((await project.run([...words, '--eml', eml])).stderr).toBe(`wrote ${eml}\n`);
		expect(await readFile(eml, 'latin1')).toMatch(/^Subject: Hello\r$/m);
		expect((await stat(eml)).mode & 0o777).toBe(0o600);
		expect(await project.run([...words, '--eml', eml])).toMatchObject({
			code: 2,
			stderr: `error: --eml: ${eml} exists already\n`,
		});
		expect((await project.run([...words, '--eml', '-'])).stdout).toMatch(/^Subject: Hello\r$/m);
		expect(await project.json([...words, '-n'])).toMatchObject({
			dry_run: true,
			send: { to: ['ann@example.com'], subject: 'Hello' },
			message: expect.stringContaining('Subject: Hello\r\n'),
		});
		const open = await project.run([
			...hello.slice(0, -1),
			'x #nope#',
			'--to',
			'a@b.co',
			'--preview',
			'text',
		]);
		expect(open.stderr).toBe(
			'warning: no value for #nope#\nFrom: news@example.com\nTo: a@b.co\nSubject: Hello\n',
		);
		expect(await project.run([...toAnn, '--preview', 'html'])).toEqual({
			code: 2,
			stdout: '',
			stderr: 'error: --preview html: the message has no HTML; use --preview text\n',
		});
		expect([await messages(), sink.received]).toEqual([[], []]);
	});

	it('sends at the speed of --rate', async () => {
		const before = performance.now();
		await project.json([...toAnn, '--to', 'b@example.com', '--to', 'c@example.com', '--rate', '10/s']);
		expect(performance.now() - before).toBeGreaterThan(150);
	});

	it('adds its message to an existing campaign, whose figures then include it', async () => {
		const campaign = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
		const { stderr } = await project.run([...toAnn, '--campaign', campaign]);
		expect(stderr).toBe(`campaign ${campaign}\nsent 1\n`);
		await project.json([...hello, '--to', 'other@example.com']);
		expect(await messages('--campaign', campaign)).toMatchObject([{ to: 'ann@example.com' }]);
		expect(await project.json(['report', '--campaign', campaign])).toMatchObject({ total: { sent: 1 } });
	});
});
