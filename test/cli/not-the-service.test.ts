/** Base URLs of something other than the service: a server with another protocol, or a web page. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cli } from '../support/cli.js';

const open: Server[] = [];
afterAll(() => {
	for (const server of open) server.close();
});

async function portOf(server: Server): Promise<number> {
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	open.push(server);
	return (server.address() as AddressInfo).port;
}

function run(words: string, url: string) {
	return cli([...words.split(' '), '--retries', '0'], { env: { MAILCTL_BASE_URL: url, MAILCTL_TOKEN: 't' } });
}

const send = 'send --from news@example.com --to a@example.com --subject s --text t';

it('send exits with 7 and suggests mailctl doctor if the server does not speak HTTP', async () => {
	const server = createTcpServer((socket) => {
		socket.on('error', () => {});
		socket.write('220 mail.example.com ESMTP\r\n');
	});
	const url = `http://127.0.0.1:${await portOf(server)}`;
	const { code, stderr } = await run(send, url);
	expect(code).toBe(7);
	expect(stderr).toMatch(/^error: Cannot tell which service this is: the answer of \S+ is not HTTP \(.+\)\n/);
	expect(stderr).toContain('hint: check the connection: mailctl doctor\n');
});

describe('a web page instead of the service’s answer', () => {
	const page = '<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body>Hello</body></html>';
	const answer: RequestListener = (_, response) =>
		response.writeHead(200, { 'content-type': 'text/html' }).end(page);
	let url: string;
	beforeAll(async () => {
		url = `http://127.0.0.1:${await portOf(createServer(answer))}`;
	});

	it.each([
		['lists list', '/sub/lists/'],
		['report', '/stat/reports/events-report/'],
		['login --no-input', '/sub/lists/'],
	])('is reported by mailctl %s', async (words, path) => {
		const { code, stderr } = await run(words, url);
		expect(code).toBe(7);
		expect(stderr).toContain(`error: The answer is a web page, not JSON: "Welcome" (GET ${path}).\n`);
		expect(stderr).toMatch(/check the connection: mailctl (?:--base-url \S+ )?doctor\n/);
	});

	it('makes the outcome of a send uncertain, and appears in the error', async () => {
		const { code, stderr } = await run(send, url);
		expect(code).toBe(13);
		expect(stderr).toContain('the message may or may not have been sent: The answer is a web page, not JSON');
		expect(stderr).toContain('hint: look at the report or ask a recipient before you send it again\n');
	});
});

describe('mailctl smoke on a server that is not the service', () => {
	it.each<[string, RequestListener, string]>([
		[
			'the same page for every path',
			(_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Hello</html>'),
			'GET /sub/lists/ answered 200 with a web page',
		],
		[
			'a page that says not found',
			(_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<html>None</html>'),
			'GET /sub/lists/ answered 404',
		],
		[
			'a redirect',
			(_, response) => response.writeHead(302, { location: 'https://mail.example.com/' }).end(),
			'GET /sub/lists/ answered 302 with a redirect to https://mail.example.com/',
		],
	])('fails one check and skips the others if the answer is %s', async (_, listener, what) => {
		const url = `http://127.0.0.1:${await portOf(createServer(listener))}`;
		const { code, stdout, stderr } = await run('smoke -o json', url);
		const [first, ...rest] = JSON.parse(stdout).checks as { id: string; outcome: string; detail: string }[];
		expect(code).toBe(11);
		expect(first).toMatchObject({
			id: 'connection.reachable',
			outcome: 'fail',
			detail: `the base URL belongs to another service: ${what}`,
		});
		expect(new Set(rest.map(({ outcome, detail }) => `${outcome}: ${detail}`))).toEqual(
			new Set(['skip: another service answers']),
		);
		expect(stderr).toContain(`is ${url} the right base URL? mailctl doctor checks it`);
	});
});
