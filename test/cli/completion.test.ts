import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { complete } from '../../src/cli/completion/complete.js';
import { tree } from '../../src/cli/tree.js';
import { cli, makeHome } from '../support/cli.js';
import { makeProject } from '../support/project.js';

const sources = {
	tree,
	names: async (kind: string) => [`one ${kind}`, `two ${kind}`],
	profiles: () => ['local', 'prod'],
};

async function offered(...words: string[]): Promise<string[] | 'files'> {
	const { candidates, files } = await complete(words, sources);
	return files ? 'files' : candidates.map(({ value }) => value);
}

describe('completion with Tab', () => {
	it.each<[words: string[], expected: string[] | 'files']>([
		[['sub'], ['subscribers']],
		[['lists', 'CL'], ['clear']],
		[
			['engine', 'settings', ''],
			['get', 'set', 'unset'],
		],
		[['-p', 'prod', 'lists', 'cl'], ['clear']],
		[['lists', 'create', '--em'], ['--email-reason']],
		[['lists', 'create', '--email-reason', 'r', '--email'], []],
		[
			['send', '--to', 'a@example.com', '--to'],
			['--to', '--token-file', '--token-stdin'],
		],
		[['lists', 'list', '-o', 'm'], ['markdown']],
		[['send', '--list', 't'], ['two list']],
		[['send', '--list=t'], ['--list=two list']],
		[
			['send', '--template', ''],
			['one template', 'two template'],
		],
		[['report', '--from', ''], []],
		[['lists', 'delete', 'one list', ''], ['two list']],
		[['lists', 'delete', '--', '-'], []],
		[['subscribers', 'import', ''], 'files'],
		[['--db', ''], 'files'],
		[['profile', 'use', 'p'], ['prod']],
		[['help', 'bou'], ['bounces']],
		...(['get', 'unset'] as const).flatMap((verb): [string[], string[]][] => [
			[
				['engine', 'settings', verb, 'keep_'],
				['keep_messages', 'keep_events', 'keep_bodies'],
			],
			[
				['config', verb, 'p'],
				['profile', 'protected'],
			],
		]),
		[['--db', 'n.db', 'engine', 'settings', 'set', 'page_c'], ['page_color']],
		[['engine', 'settings', 'set', 'time_zone', ''], []],
		[['webhooks', 'create', '--type', 'O'], ['OPENED']],
		[['nothing', 'of', 'ours', ''], []],
	])('after the words %j offers %j', async (words, expected) => {
		const found = await offered(...words);
		expect(found === 'files' ? found : [...found].sort()).toEqual(
			expected === 'files' ? expected : [...expected].sort(),
		);
	});

	it('does not throw on malformed input', async () => {
		for (const words of [['--'], ['=', '='], ['send', '--list', '--list', ''], ['__proto__', '']])
			await offered(...words);
	});
});

describe('names that Tab completes', () => {
	const words = async (
		project: { run: (argv: string[]) => Promise<{ stdout: string; code: number }> },
		...argv: string[]
	) => (await project.run(['completion', 'words', '--', ...argv])).stdout;

	it('come from earlier commands on the same database, and exclude deleted records', async () => {
		const project = await makeProject();
		const run = (argv: readonly string[]) => cli(argv, { env: { HOME: project.folder } });
		const at = ['--db', project.db];
		for (const name of ['News', 'Notes', 'Novel', '--yes'])
			await project.json(['lists', 'create', `--name=${name}`, '--email-reason', 'r']);
		await project.json(['lists', 'delete', 'Notes', '--confirm', 'Notes']);
		await project.json(['lists', 'update', 'Novel', '--name', 'Nouvelle']);
		const html = await project.file('welcome.html', '<p>Hi</p>');
		await project.json(['templates', 'create', '--name', 'Welcome', '--html-file', html]);
		expect(await words({ run }, ...at, 'send', '--list', '.n')).toBe('News\nNouvelle\n');
		expect(await words({ run }, ...at, 'lists', 'delete', '.')).toBe('News\nNouvelle\n');
		expect(await words({ run }, ...at, 'send', '--template', '.')).toBe('Welcome\n');
		expect(await words({ run }, ...at, 'send', '--from', '.')).toBe('news@example.com\n');
		expect(await words({ run }, 'send', '--list', '.n')).toBe('');
	});

	it.each(['{', '{"x":{"list":{"1":2}}}'])('are missing if the cache is damaged: %j', async (text) => {
		const home = await makeHome();
		const file = join(home, '.cache/mailctl/names.json');
		await mkdir(dirname(file), { recursive: true });
		await writeFile(file, text);
		const run = (argv: readonly string[]) => cli(argv, { env: { HOME: home } });
		expect(await words({ run }, 'lists', 'get', '.')).toBe('');
		expect(await run(['lists', 'create', '--name', 'A', '--email-reason', 'r'])).toMatchObject({ code: 0 });
		expect(await words({ run }, 'lists', 'get', '.')).toBe('A\n');
		expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(expect.any(Object));
	});

	it('are stored for the last twenty databases and services', async () => {
		const home = await makeHome();
		const file = join(home, '.cache/mailctl/names.json');
		await mkdir(dirname(file), { recursive: true });
		const old = Array.from({ length: 30 }, (_, at) => [`/tmp/${at}.db`, { list: { 1: `L${at}` } }]);
		await writeFile(file, JSON.stringify(Object.fromEntries(old)));
		const run = (argv: readonly string[]) => cli(argv, { env: { HOME: home } });
		await run(['lists', 'create', '--name', 'A', '--email-reason', 'r']);
		const kept = Object.keys(JSON.parse(await readFile(file, 'utf8')));
		expect(kept).toEqual([...old.slice(11).map(([path]) => path), expect.stringContaining('mailctl.db')]);
		expect(await words({ run }, 'lists', 'get', '.')).toBe('A\n');
	});

	it('exclude a campaign that send staged and deleted, and appear once if two records share a name', async () => {
		const home = await makeHome();
		const run = (argv: readonly string[]) => cli(argv, { env: { HOME: home } });
		await run(['engine', 'init', '--sender', 'news@example.com', '--smtp', 'smtp://127.0.0.1:9']);
		for (let times = 0; times < 2; times += 1)
			await run(['lists', 'create', '--name', 'A', '--email-reason', 'r']);
		expect(await words({ run }, 'lists', 'get', '.')).toBe('A\n');
		await run(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
		const send = ['send', '--from', 'news@example.com', '--list', '1', '--subject', 'News', '--text', 'Hi'];
		expect(await run([...send, '--yes', '--expect-count', '2'])).toMatchObject({ code: 2 });
		expect(await words({ run }, 'campaigns', 'get', '.')).toBe('');
	});
});

it('the command `completion bash` rejects -o json but ignores MAILCTL_OUTPUT', async () => {
	for (const format of ['json', 'ndjson'])
		expect(await cli(['completion', 'bash', '-o', format])).toEqual({
			code: 2,
			stdout: '',
			stderr: expect.stringContaining(
				'completion bash prints a shell script, so -o json and --query cannot be used',
			),
		});
	const script = await cli(['completion', 'bash']);
	expect(await cli(['completion', 'bash'], { env: { MAILCTL_OUTPUT: 'json' } })).toEqual(script);
});
