import { beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project, said } from '../../support/project.js';
import { stripped } from '../../support/stripped.js';
import { typing } from '../../support/typing.js';

describe('mailctl webhooks', () => {
	let project: Project;
	const url = 'https://hooks.example.com/in';
	const plain = {
		...{ id: 1, url, type: 'OPENED', is_auth_enabled: false, login: '', password: null },
		date_created: '2026-11-01T10:00:00.000000',
	};
	const secured = { ...plain, is_auth_enabled: true, login: 'ann' };

	beforeEach(async () => {
		project = await makeProject();
	});

	const create = (...more: string[]) => [
		...['webhooks', 'create', '--url', url, '--type', 'opened', '--now', '2026-11-01T10:00:00Z'],
		...more,
	];
	const passwordNow = async () => {
		const shown = await project.json(['webhooks', 'get', '1', '--show-secrets']);
		return (shown as { password: string }).password;
	};

	it.each([
		['create', '--url', url, '--type', 'OPENED', '--auth'],
		['update', '1', '--auth'],
		['update', '1', '--auth', '--replace', '--url', url, '--type', 'OPENED'],
	])('rejects --auth without a login: webhooks %s %s', async (...words) => {
		await project.json(['webhooks', 'create', '--url', url, '--type', 'OPENED']);
		expect(await project.run(['webhooks', ...words])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('--auth needs a login'),
		});
		expect(await project.json(['webhooks', 'list'])).toMatchObject([{ is_auth_enabled: false }]);
	});

	it('enables authorization with --login, and reads the password from stdin or a file', async () => {
		expect(await project.json(create('--login', 'ann', '--password-stdin'), { stdin: 's3cret\n' })).toEqual(
			secured,
		);
		expect(await passwordNow()).toBe('s3cret');
		const path = await project.file('pass', 'from file\r\n');
		expect(await project.json(['webhooks', 'update', '1', '--password-file', path])).toEqual(secured);
		expect(await passwordNow()).toBe('from file');
	});

	it('shows null instead of a password unless --show-secrets is given', async () => {
		await project.run(create('--login', 'ann', '--password-stdin'), { stdin: 's3cret' });
		const listed = await project.run(['webhooks', 'list', '-o', 'json']);
		expect({ code: listed.code, stdout: JSON.parse(listed.stdout), said: said(listed) }).toEqual({
			code: 0,
			stdout: [secured],
			said: [{ hint: expect.stringContaining('webhooks get ID --show-secrets prints one') }],
		});
		expect(await project.json(['webhooks', 'list', '--show-secrets'])).toEqual([
			{ ...secured, password: 's3cret' },
		]);
		for (const format of ['wide', 'csv'])
			expect((await project.run(['webhooks', 'list', '-o', format])).stdout).not.toContain('s3cret');
	});

	it('prints no password in a dry run of update --replace', async () => {
		await project.run(create('--login', 'ann', '--password-stdin'), { stdin: 's3cret' });
		const words = ['webhooks', 'update', '1', '--replace', '--url', url, '--type', 'OPENED', '-n'];
		expect(await project.json(words)).toMatchObject({
			with: { url, type: 'OPENED', is_auth_enabled: false, login: '' },
		});
		expect(JSON.stringify(await project.json(words))).not.toContain('password');
	});

	it('asks for the password of --login on a terminal, and exits with 2 in a script', async () => {
		const missing = 'error: --login needs --password-file or --password-stdin\n';
		const login = ['--login', 'ann'];
		expect(await project.run(create(...login))).toEqual({ code: 2, stdout: '', stderr: missing });
		expect(await project.json(['webhooks', 'list'])).toEqual([]);
		const typed = await typing([['Password of ann:', 's3cret']], (more) =>
			project.run(create(...login, '-q'), more),
		);
		expect(typed).toMatchObject({ code: 0, stdout: '1\n' });
		expect(typed.stderr).not.toContain('s3cret');
		expect(await passwordNow()).toBe('s3cret');
		const replaced = ['webhooks', 'update', '1', '--replace', '--url', url, '--type', 'OPENED', ...login];
		expect(await project.run(replaced)).toMatchObject({ code: 2, stderr: missing });
		expect(await project.json([...replaced, '--password-stdin'], { stdin: '' })).toEqual(secured);
		expect(await project.run(['webhooks', 'update', '1', '--login', 'bob'])).toMatchObject({
			code: 2,
			stderr: missing,
		});
		expect(await project.json(['webhooks', 'update', '1', '--login', 'bob', '--no-auth'])).toMatchObject({
			login: 'bob',
		});
	});

	it('keeps the stored password if an update gives none', async () => {
		await project.run(create('--login', 'ann', '--password-stdin'), { stdin: 's3cret' });
		expect(await project.json(['webhooks', 'update', '1', '--url', `${url}2`])).toEqual({
			...secured,
			url: `${url}2`,
		});
		await project.json(['webhooks', 'update', '1', '--type', 'UNSUBSCRIBED']);
		await project.json(['webhooks', 'update', '1', '--no-auth']);
		expect(await project.json(['webhooks', 'get', '1', '--show-secrets'])).toEqual({
			...secured,
			url: `${url}2`,
			type: 'UNSUBSCRIBED',
			is_auth_enabled: false,
			password: 's3cret',
		});
	});

	it('rejects a private address as target, on create and update', async () => {
		const target = 'http://127.0.0.1/x';
		const stderr =
			`error: url: This URL points to a private, loopback or reserved address. (${target})\n` +
			`hint: to allow private addresses, on the machine with the database: mailctl --db ${project.db} engine settings set allow_private_webhooks true\n`;
		const refused = await project.run(['webhooks', 'create', '--url', target, '--type', 'OPENED']);
		expect(refused).toEqual({ code: 5, stdout: '', stderr });
		await project.json(create());
		expect(await project.run(['webhooks', 'update', '1', '--url', target])).toEqual({
			code: 5,
			stdout: '',
			stderr,
		});
		expect(await project.json(['webhooks', 'get', '1'])).toEqual(plain);
	});

	it('delete removes all given webhooks, or none if one does not exist', async () => {
		for (const _ of [1, 2, 3]) await project.json(create());
		expect((await project.run(['webhooks', 'delete', '1', '9', '-y'])).code).toBe(3);
		const asked = await project.run(['webhooks', 'delete', '1', '3', '1']);
		expect(asked.stderr).toContain('this will delete 2 webhooks');
		expect(await project.json(['webhooks', 'delete', '1', '3', '1', '-n'])).toMatchObject({
			delete: [1, 3],
		});
		const deleted = await project.run(['webhooks', 'delete', '1', '3', '1', '-y', '-o', 'table']);
		expect(deleted.stderr).toContain('deleted 2 webhooks\n');
		expect(await project.json(['webhooks', 'list'])).toMatchObject([{ id: 2 }]);
	});

	it('shows the state of webhooks only if the service is mailctl', async () => {
		await project.json(create());
		expect((await project.run(['webhooks', 'list', '--fields', 'id,state'])).stdout).toBe('1\tactive\n');
		const elsewhere = { connect: stripped() };
		expect((await project.run(['webhooks', 'list', '-o', 'csv'], elsewhere)).stdout).toMatch(
			/^id,type,url,is_auth_enabled,login,date_created\r?\n/,
		);
		expect(await project.run(['webhooks', 'list', '--fields', 'state'], elsewhere)).toMatchObject({
			code: 2,
		});
	});

	it('changes nothing in a dry run, and prints no password', async () => {
		const planned = await project.json(create('--login', 'ann', '--password-stdin', '-n'), {
			stdin: 's3cret',
		});
		expect(planned).toEqual({
			dry_run: true,
			create: { url, type: 'OPENED', is_auth_enabled: true, login: 'ann', password: null },
		});
		expect(await project.json(['webhooks', 'list'])).toEqual([]);
		await project.json(create());
		await project.json(['webhooks', 'update', '1', '--type', 'UNSUBSCRIBED', '-n']);
		await project.json(['webhooks', 'delete', '1', '-n']);
		expect(await project.json(['webhooks', 'list'])).toEqual([plain]);
	});
});
