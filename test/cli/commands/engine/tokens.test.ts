import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project, said } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';
import { typing } from '../../../support/typing.js';

const secret = /^mctl_[\w-]{43}$/;
const kept = 'store it now: it is not shown again';

describe('mailctl engine tokens', () => {
	let project: Project;
	beforeEach(async () => {
		project = await makeProject();
	});
	const create = (...more: string[]) => project.run(['engine', 'tokens', 'create', '--name', ...more]);
	const list = () => project.json(['engine', 'tokens', 'list']);

	it('create prints the secret once and stores only its hash', async () => {
		const made = await create('shop', '--scope', 'send', '--scope', 'read', '--scope', 'send', '-o', 'json');
		const document = JSON.parse(made.stdout);
		expect({ code: made.code, stdout: document, said: said(made) }).toEqual({
			code: 0,
			stdout: {
				name: 'shop',
				scopes: ['read', 'send'],
				date_created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/),
				token: expect.stringMatching(secret),
			},
			said: [{ note: kept }],
		});
		expect(readFileSync(project.db).includes(document.token)).toBe(false);
		const { token, ...rest } = document;
		expect(await list()).toEqual([{ ...rest, date_revoked: null }]);
		for (const format of ['json', 'wide', 'csv', 'tsv', 'name', 'ndjson']) {
			expect((await project.run(['engine', 'tokens', 'list', '-o', format])).stdout).not.toContain(token);
		}
	});

	it('create prints only the token unless -o json or --fields is given', async () => {
		const shown = await project.run(['engine', 'tokens', 'create', '--name', 'a', '--no-color'], {
			columns: 80,
		});
		expect(shown).toEqual({
			code: 0,
			stdout: expect.stringMatching(/^mctl_[\w-]{43}\n$/),
			stderr: `${kept}\n`,
		});
		expect(await create('b', '-q')).toEqual({
			code: 0,
			stdout: expect.stringMatching(/^mctl_[\w-]{43}\n$/),
			stderr: '',
		});
		expect(JSON.parse((await create('c', '-q', '-o', 'json')).stdout)).toMatchObject({ name: 'c' });
		expect((await create('f', '-o', 'name')).stdout).toMatch(/^mctl_[\w-]{43}\n$/);
		expect((await create('d', '--fields', 'name,scopes', '-o', 'tsv')).stdout).toBe('d\tadmin\n');
		expect(await create('e', '--fields', 'secret')).toMatchObject({ code: 2 });
		expect(((await list()) as { name: string }[]).map(({ name }) => name)).toEqual(['a', 'b', 'c', 'f', 'd']);
	});

	it.each([
		'',
		'two words',
		'-q',
		'x'.repeat(65),
	])('create rejects the name %j and creates no token', async (name) => {
		const { code, stdout } = await project.run(['engine', 'tokens', 'create', `--name=${name}`]);
		expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
		expect(await list()).toEqual([]);
	});

	it('revoke asks for confirmation, and suggests a name for an unknown token', async () => {
		await create('shop');
		expect(await project.run(['engine', 'tokens', 'revoke', 'shop'])).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: this will revoke the token shop: the server refuses its requests\nhint: add --yes to agree\n',
		});
		expect(await project.run(['engine', 'tokens', 'revoke', 'shopp', '-y'])).toEqual({
			code: 3,
			stdout: '',
			stderr: 'error: token "shopp" not found\nhint: did you mean shop?\n',
		});
		expect(await project.json(['engine', 'tokens', 'rm', 'shop', '--yes'])).toEqual({ revoked: ['shop'] });
		expect((await project.run(['engine', 'tokens', 'revoke', 'shop', '-y'])).code).toBe(3);
	});

	it('create --scope limits a token, and a refused command prints the needed scope and the token’s scopes', async () => {
		const server = await startServer(project.db);
		const token = (await create('shop', '--scope', 'send', '-q')).stdout.trim();
		const remote = ['--base-url', server.baseUrl];
		const run = (...words: string[]) => cli([...remote, ...words], { env: { MAILCTL_TOKEN: token } });
		const read = await run('lists', 'list');
		const write = await run('lists', 'create', '--name', 'News', '--email-reason', 'r', '-o', 'json');
		const login = await run('login', '--profile', 'shop');
		await server.stop();
		expect({ code: login.code, stderr: login.stderr }).toEqual({
			code: 0,
			stderr: expect.stringMatching(/^this token may only send\n/),
		});
		expect({ code: read.code, stderr: read.stderr }).toEqual({
			code: 4,
			stderr:
				'error: You do not have permission to perform this action. The token needs the scope read, or admin; it has send.\n' +
				'hint: use a token with the right scope; on the server: mailctl engine tokens create --name NAME --scope SCOPE\n',
		});
		expect(JSON.parse(write.stderr).error).toMatchObject({
			exit_code: 4,
			message:
				'You do not have permission to perform this action. The token needs the scope admin; it has send.',
			hint: 'use a token with the right scope; on the server: mailctl engine tokens create --name NAME --scope SCOPE',
		});
	});
});

describe('a command that needs a local database', () => {
	it.each([
		['tokens', 'create'],
		['bounces', 'ingest'],
		['restore'],
		['init'],
	])('exits with 2 and asks nothing if --base-url is given: engine %s %s', async (...words) => {
		const path = ['engine', ...words.filter((word) => word !== undefined)];
		const remote = ['--base-url', 'http://127.0.0.1:9', ...path];
		const { code, stderr } = await typing([], (options) => cli(remote, options), 200);
		expect({ code, stderr: stripVTControlCharacters(stderr) }).toEqual({
			code: 2,
			stderr:
				`error: ${path.join(' ')} needs a local database, but the target is a remote service\n` +
				'hint: run this command on the machine of the service, or name a local database with --db PATH\n',
		});
	});
});
