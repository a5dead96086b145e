/** Fields of subscribers are accepted by variable and by name in `--fields`, `--where` and `--sort`. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { cli } from '../../support/cli.js';
import { makeProject, type Project } from '../../support/project.js';

describe('a field of subscribers', () => {
	let project: Project;
	const inList = ['-l', '1'];

	beforeAll(async () => {
		project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		for (const [variable, name] of [
			['city', 'Home town'],
			['plan', 'Plan'],
		] as const)
			await project.json(['fields', 'create', '--variable', variable, '--name', name]);
		const create = ['subscribers', 'create', ...inList, '--email'];
		await project.json([...create, 'ann@example.com', '--meta', 'city=Oslo']);
		await project.json([...create, 'bob@example.com', '--meta', 'city=Rome']);
	});
	const shown = (...argv: string[]) => project.run(['subscribers', ...argv]);

	it.each([
		'meta.city',
		'meta.City',
		'meta.Home town',
		'meta.home TOWN',
	])('can be called %s in --fields, and keeps that name in the output', async (name) => {
		expect((await shown('list', ...inList, '--fields', name)).stdout).toBe('Oslo\nRome\n');
		expect((await shown('list', ...inList, '--fields', name, '-o', 'csv')).stdout).toBe(
			`${name}\r\nOslo\r\nRome\r\n`,
		);
		const get = ['subscribers', 'get', 'ann@example.com', ...inList, '--fields', `${name},email`];
		expect(await project.json(get)).toEqual({ [name]: 'Oslo', email: 'ann@example.com' });
	});

	it.each([
		['list', ...inList],
		['get', '1', ...inList],
		['find', 'ann@example.com'],
		['create', ...inList, '--email', 'new@example.com'],
		['update', '1', ...inList, '--name', 'Ann'],
		['deactivate', '1', ...inList],
	])('is rejected by subscribers %s if it is unknown, before anything changes', async (...argv) => {
		for (const format of ['tsv', 'json', 'csv']) {
			const run = await shown(...argv, '--fields', 'meta.nosuch', '-o', format);
			expect({ code: run.code, stdout: run.stdout }).toEqual({ code: 2, stdout: '' });
			expect(run.stderr).toContain('meta.city, meta.plan');
		}
		const people = (await project.json(['subscribers', 'list', ...inList])) as object[];
		expect(people).toMatchObject([
			{ email: 'ann@example.com', name: '', is_active: true },
			{ email: 'bob@example.com' },
		]);
	});

	it.each([
		'meta.city=Oslo',
		'meta.City = Oslo',
		'meta.Home town=Oslo',
	])('can be used in --where %j', async (condition) => {
		expect((await shown('list', ...inList, '--where', condition, '--fields', 'email')).stdout).toBe(
			'ann@example.com\n',
		);
	});

	it.each(['meta.city', 'meta.Home town', 'meta.home TOWN'])('can be called %s in --sort', async (name) => {
		const emails = async (sort: string, ...more: string[]) =>
			(await shown('list', ...inList, '--sort', sort, ...more)).stdout;
		expect(await emails(name, '--fields', 'email')).toBe('ann@example.com\nbob@example.com\n');
		expect(await emails(`-${name}`, '--fields', 'email')).toBe('bob@example.com\nann@example.com\n');
		const [header] = (await emails(name, '-o', 'csv')).split('\r\n');
		expect(header).not.toContain('meta.');
	});

	it('is rejected by --sort if it is unknown', async () => {
		expect(await shown('list', ...inList, '--sort', '-meta.citty')).toMatchObject({
			code: 2,
			stdout: '',
			stderr: expect.stringMatching(
				/^error: --sort: unknown column "meta\.citty"\nhint: did you mean meta\.city\? valid: .*meta\.plan\n$/,
			),
		});
	});

	it('is accepted without a check if the service does not list its fields', async () => {
		const person = { id: 1, list_id: 1, email: 'ann@example.com', name: '', is_active: true };
		const list = { id: 1, name: 'Readers', email_reason: 'r' };
		const pageOf = (one: object) => ({ count: 1, next: null, previous: null, results: [one] });
		const answers: Record<string, object> = {
			'/sub/lists/1/': list,
			'/sub/lists/': pageOf(list),
			'/sub/lists/1/subscribers/': pageOf({ ...person, meta: { City: 'Oslo' } }),
		};
		const service = createServer(({ url = '' }, response) => {
			const answer = answers[url.replace(/\?.*/, '')];
			const status = url.startsWith('/sub/fields/') ? 403 : answer === undefined ? 404 : 200;
			response.writeHead(status, { 'content-type': 'application/json' });
			response.end(JSON.stringify(answer ?? { detail: 'You do not have permission.' }));
		}).listen(0, '127.0.0.1');
		await once(service, 'listening');
		const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
		const run = await cli(['subscribers', 'list', ...inList, '--fields', 'meta.City'], {
			env: { MAILCTL_BASE_URL: url, MAILCTL_TOKEN: 't' },
		});
		service.close();
		expect(run).toMatchObject({ code: 0, stdout: 'Oslo\n' });
	});
});
