/** A base URL of the right host with the wrong path: what every deployment has is not there. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Finding } from '../../src/cli/doctor/checks.js';
import { cli, makeHome } from '../support/cli.js';
import { type ServedEngine, serveEngine } from '../support/served-engine.js';

describe('a base URL with the wrong path', () => {
	let served: ServedEngine;
	beforeAll(async () => {
		served = await serveEngine();
	});
	afterAll(() => served.close());

	function run(words: string, path: string) {
		const env = { MAILCTL_BASE_URL: served.url + path, MAILCTL_TOKEN: served.token };
		return cli(words.split(' '), { env });
	}

	it.each([
		['lists list', 'GET', '/sub/lists/'],
		['lists get 99', 'GET', '/sub/lists/'],
		['report', 'GET', '/stat/reports/events-report/'],
		['send --from news@example.com --to a@example.com --subject s --text t', 'POST', '/message/send/'],
	])('is asked about by mailctl %s, with what was asked', async (words, method, path) => {
		const foreign = createServer((_, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
		await once(foreign, 'listening');
		const url = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}`;
		const env = { MAILCTL_BASE_URL: `${url}//wrong`, MAILCTL_TOKEN: 't' };
		const { code, stderr } = await cli(words.split(' '), { env });
		foreign.close();
		expect(code).toBe(3);
		expect(stderr).toContain(
			`hint: ${method} ${url}//wrong${path} answered 404: is the base URL right? mailctl doctor looks at it\n`,
		);
	});

	it.each([
		'lists list',
		'report',
		'send --from news@example.com --to a@example.com --subject s --text t',
	])('is told by mailctl %s with the right one, where a mailctl server answers at the root of the host', async (words) => {
		const { code, stderr } = await run(words, '/wrong');
		expect(code).toBe(3);
		expect(stderr).toContain(
			`hint: ${served.url} answers as a mailctl server: the base URL is that: mailctl --base-url ${served.url} doctor\n`,
		);
	});

	it('is told with the command that mends the profile', async () => {
		const home = await makeHome();
		const env = { HOME: home, MAILCTL_TOKEN: served.token };
		await cli(['login', `${served.url}/wrong`, '--profile', 'prod', '--no-check'], { env });
		const { stderr } = await cli(['-p', 'prod', 'lists', 'list'], { env: { HOME: home } });
		expect(stderr).toContain(
			`the base URL is that: mailctl config set --profile prod base-url ${served.url}\n`,
		);
	});

	it('is asked about with the status of the answer', async () => {
		const gone = createServer((_, response) => response.writeHead(410).end()).listen(0, '127.0.0.1');
		await once(gone, 'listening');
		const url = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
		const { stderr } = await cli(['lists', 'list'], {
			env: { MAILCTL_BASE_URL: url, MAILCTL_TOKEN: 't' },
		});
		gone.close();
		expect(stderr).toContain(`hint: GET ${url}/sub/lists/ answered 410: is the base URL right?`);
	});

	it('is a hint for machines, and the rest of the error as it was', async () => {
		const { error } = JSON.parse((await run('fields list -o json', '/wrong')).stderr);
		const http = { status: 404, method: 'GET', path: '/wrong/sub/fields/' };
		expect(error).toMatchObject({ code: 'not_found', exit_code: 3, message: 'Not found.', http });
		expect(error.hint).toContain(`${served.url} answers as a mailctl server`);
	});

	it.each([
		'lists get 99',
		'subscribers list --list 99',
		'webhooks get 99',
		'fields get 99',
	])('is not suspected where a record is missing: mailctl %s', async (words) => {
		const { code, stderr } = await run(words, '');
		expect([code, stderr]).toEqual([3, expect.not.stringContaining('base URL')]);
	});

	it('is told by mailctl doctor with the right one, where a mailctl server answers at the root of the host', async () => {
		const findings = JSON.parse((await run('doctor --only service -o json', '/api')).stdout) as Finding[];
		expect(findings.slice(0, 2)).toEqual([
			{
				check: 'service.answers',
				level: 'problem',
				message: 'it has no /sub/lists/: this is not the service, or its base URL has a path',
				fix: `${served.url} answers as a mailctl server: the base URL is that:\nmailctl --base-url ${served.url} doctor`,
			},
			{
				check: 'service.kind',
				level: 'skipped',
				message: 'the service does not answer as it should',
				fix: null,
			},
		]);
	});

	it('is told by mailctl login with the right one, and with where its token comes from', async () => {
		const words = ['login', `${served.url}/api`, '-p', 'prod', '--token-stdin'];
		const { code, stderr } = await cli(words, { stdin: served.token });
		expect(code).toBe(7);
		expect(stderr).toContain(
			`hint: ${served.url} answers as a mailctl server: the base URL is that: mailctl login --base-url ${served.url} -p prod --token-stdin\n`,
		);
	});

	it('is asked about by mailctl smoke once, at the end', async () => {
		const { code, stderr } = await run('smoke', '/api');
		expect(code).toBe(11);
		expect(stderr).toContain(`hint: is ${served.url}/api the right base URL? mailctl doctor looks at it\n`);
		expect((await run('smoke', '')).stderr).not.toContain('base URL');
	});
});
