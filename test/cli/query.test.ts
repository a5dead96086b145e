import { beforeAll, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../support/project.js';

let project: Project;
beforeAll(async () => {
	project = await makeProject();
	for (const name of ['A\tb', 'B', 'C'])
		await project.json(['lists', 'create', '--name', name, '--email-reason', 'r']);
});

async function asked(query: string, ...more: string[]) {
	const words = more.length > 0 && !more[0]?.startsWith('-') ? more : ['lists', 'list', ...more];
	const { code, stdout, stderr } = await project.run([...words, '--query', query]);
	return { code, stdout, stderr };
}

describe('--query', () => {
	it.each<[query: string, words: string[], stdout: string]>([
		['[].name', [], '[\n  "A\\tb",\n  "B",\n  "C"\n]\n'],
		['[1].name', [], '"B"\n'],
		['[1].name', ['-o', 'tsv'], 'B\n'],
		['[].name', ['-o', 'tsv'], 'A\\tb\nB\nC\n'],
		['[].[id, name]', ['-o', 'tsv'], '1\tA\\tb\n2\tB\n3\tC\n'],
		['[].{number: id, meta: {a: id}}', ['-o', 'tsv'], '1\t{"a":1}\n2\t{"a":2}\n3\t{"a":3}\n'],
		['[].{number: id}', ['-o', 'ndjson'], '{"number":1}\n{"number":2}\n{"number":3}\n'],
		['[?name == `B`] | [0].id', [], '2\n'],
		["[?name == 'C'].id", ['-o', 'tsv'], '3\n'],
		['length(@)', [], '3\n'],
		['nothing', [], 'null\n'],
		['nothing', ['-o', 'tsv'], ''],
		['[0].constructor', [], 'null\n'],
		['[0].constructor.name', [], 'null\n'],
		['[].toString', ['-o', 'tsv'], ''],
		['keys([0])[0]', [], '"id"\n'],
		['name', ['lists', 'get', '2'], '"B"\n'],
		['results[0].name', ['api', 'GET', '/sub/lists/2/subscribers/'], 'null\n'],
		['name', ['api', 'GET', '/sub/lists/2/'], '"B"\n'],
		['[0].command', ['commands'], '"lists list"\n'],
	])('prints the result of the expression %s for the command %j', async (query, words, stdout) => {
		expect(await asked(query, ...words)).toEqual({ code: 0, stdout, stderr: '' });
	});

	it('rejects an invalid expression before the command changes anything', async () => {
		const ended = await asked('[', 'lists', 'create', '--name', 'D', '--email-reason', 'r');
		expect(ended).toMatchObject({
			code: 2,
			stdout: '',
			stderr: expect.stringContaining('Syntax error'),
		});
		expect((await asked('length(@)')).stdout).toBe('3\n');
		expect(await asked('name', '-o', 'table')).toMatchObject({
			code: 2,
			stderr: 'error: use --query with --output json, ndjson, tsv, not table\n',
		});
	});

	it('reads the whole result even with --quiet', async () => {
		const list = ['lists', 'create', '--name', 'Quiet', '--email-reason', 'r', '-q'];
		expect(await asked('name', ...list)).toEqual({ code: 0, stdout: '"Quiet"\n', stderr: '' });
		const token = ['engine', 'tokens', 'create', '--name', 'quiet', '-q'];
		expect((await asked('name', ...token)).stdout).toBe('"quiet"\n');
		const address = ['suppressions', 'add', 'quiet@example.com', '--reason', 'COMPLAINED', '-q'];
		expect((await asked('email', ...address)).stdout).toBe('"quiet@example.com"\n');
		const key = ['engine', 'dkim', 'add', '--domain', 'example.com', '--selector', 's1', '-q'];
		expect((await asked('selector', ...key)).stdout).toBe('"s1"\n');
		await project.json(['lists', 'delete', 'Quiet', '--confirm', 'Quiet']);
	});

	it('with a failing expression makes mailctl exit with 2 after a read, but only warn after a change', async () => {
		expect(await asked('sum(@)')).toMatchObject({
			code: 2,
			stdout: '',
			stderr: expect.stringContaining('--query: Invalid type: sum()'),
		});
		const changed = await asked('sum(@)', 'lists', 'update', '3', '--name', 'Changed');
		expect(changed).toMatchObject({
			code: 0,
			stderr: expect.stringContaining('--query: Invalid type: sum()'),
		});
		expect(JSON.parse(changed.stdout)).toMatchObject({ id: 3, name: 'Changed' });
	});

	it('does not change how errors are printed', async () => {
		expect(await asked('id', 'lists', 'get', '99')).toMatchObject({ code: 3, stdout: '' });
	});

	it('works on the JSON form of the help', async () => {
		expect((await asked('topic', 'help', 'exit-codes')).stdout).toBe('"exit-codes"\n');
		for (const words of [
			['help', 'lists', 'get'],
			['lists', 'get', '--help'],
		])
			expect((await asked('name', ...words)).stdout).toBe('"lists get"\n');
		expect((await asked('commands[0].name', 'lists')).stdout).toBe('"lists list"\n');
	});
});
