// `api` with data it cannot parse: a JSON answer that is nested too deeply, and damaged rows of a database.
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { cli } from '../../support/cli.js';
import { wireOf } from '../../support/wire.js';

describe('mailctl api with JSON of a million nested levels', () => {
	const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
	const call = (words: readonly string[], options: { columns?: number } = {}) =>
		cli(['--base-url', 'https://mail.example.com', 'api', 'GET', '/x/', ...words], {
			connect: wireOf(() => ({ body: deep })).connect,
			...options,
		});

	it('prints the answer unchanged into a pipe, but exits with 7 if an option requires parsing', async () => {
		expect((await call([])).stdout).toHaveLength(deep.length);
		expect(await call(['-o', 'json'])).toMatchObject({ code: 7, stdout: '' });
		expect(await call(['--paginate'])).toMatchObject({ code: 7, stdout: '' });
	});

	it('exits with 3 for status 404, even if the answer contains this JSON', async () => {
		const { connect } = wireOf(() => ({ status: 404, body: deep }));
		expect(
			await cli(['--base-url', 'https://mail.example.com', 'api', 'GET', '/x/'], { connect }),
		).toMatchObject({
			code: 3,
		});
	});

	it('exits with 2 for a dry run with this JSON as the request body', async () => {
		const { connect } = wireOf(() => ({}));
		const words = [
			'--base-url',
			'https://mail.example.com',
			'api',
			'POST',
			'/x/',
			'--dry-run',
			'--data',
			deep,
		];
		expect(await cli(words, { connect })).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('too deep'),
		});
	});
});

describe('a damaged row in the database', () => {
	it.each([
		[
			'subscribers',
			'meta',
			['/sub/lists/1/subscribers/', '/sub/lists/1/subscribers/1/', '/ext/lists/1/tuples/'],
			[
				['subscribers', 'list', '-l', '1', '-o', 'json'],
				['subscribers', 'get', '1', '-l', '1'],
				['subscribers', 'export', '-l', '1'],
				['subscribers', 'export', '-l', '1', '--format', 'ndjson', '--fields', 'id'],
			],
		],
	] as const)('makes mailctl api, list, get and export exit with 74 (table %s)', async (table, column, paths, commands) => {
		const home = await mkdtemp(join(tmpdir(), 'mailctl-damage-'));
		const file = join(home, 'news.db');
		const call = (...words: readonly string[]) =>
			cli(['--db', file, '--no-input', ...words], { env: { HOME: home } });
		await call('engine', 'init');
		await call('lists', 'create', '--name', 'L', '--email-reason', 'r');
		await call('subscribers', 'create', '-l', '1', '--email', 'a@example.com');
		const db = new Sqlite(file);
		db.exec(`UPDATE ${table} SET ${column} = '{broken'`);
		db.close();
		for (const words of [...paths.map((path) => ['api', 'GET', path]), ...commands]) {
			const { code, stderr } = await call(...words);
			expect({ words, code }).toEqual({ words, code: 74 });
			expect(stderr).toContain('a row of the database is damaged');
		}
		expect(await call('api', 'GET', '/sub/lists/')).toMatchObject({ code: 0 });
	});
});
