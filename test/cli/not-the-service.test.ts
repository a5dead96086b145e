/** A base URL at which something else answers than the service: a port that speaks TLS, or a page for people. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificates } from '../support/certificates.js';
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

describe('http:// to a port that speaks TLS', () => {
	let port: number;
	beforeAll(async () => {
		const { cert, key } = await makeCertificates(['IP:127.0.0.1']);
		port = await portOf(createTlsServer({ cert, key }));
	});

	it.each(['lists list', 'report', 'login --no-input'])('is asked about by mailctl %s', async (words) => {
		const { code, stderr } = await run(words, `http://127.0.0.1:${port}`);
		expect(code).toBe(6);
		expect(stderr).toContain(`hint: the port may speak TLS: is it https://127.0.0.1:${port}? mailctl `);
	});

	it('is asked about where an alert comes in place of a closed connection', async () => {
		const alerting = createTcpServer((socket) => {
			socket.on('error', () => {});
			socket.once('data', () => socket.end(Buffer.from([0x15, 3, 1, 0, 2, 2, 0x46])));
		});
		const { stderr } = await run('lists list', `http://127.0.0.1:${await portOf(alerting)}`);
		expect(stderr).toContain('hint: the port may speak TLS: is it https://');
	});

	it('is not suspected where a part of an answer came', async () => {
		const cutting = createTcpServer((socket) => {
			socket.on('error', () => {});
			socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'));
		});
		const { code, stderr } = await run('lists list', `http://127.0.0.1:${await portOf(cutting)}`);
		expect([code, stderr]).toEqual([6, expect.not.stringContaining('TLS')]);
	});
});

describe('a server that speaks another protocol', () => {
	const greeting = '220 mail.example.com ESMTP\r\n';
	let url: string;
	beforeAll(async () => {
		const server = createTcpServer((socket) => {
			socket.on('error', () => {});
			socket.write(greeting);
			socket.on('data', () => socket.write('500 5.5.1 Error: command not recognized\r\n'));
		});
		url = `http://127.0.0.1:${await portOf(server)}`;
	});

	it.each(['lists list', 'report', 'login --no-input'])('is told as such by mailctl %s', async (words) => {
		const { code, stderr } = await run(words, url);
		expect(code).toBe(7);
		expect(stderr).toContain(`error: what answers at ${url} does not speak HTTP\n`);
		expect(stderr).toContain(`hint: is ${url} the right base URL? mailctl `);
	});

	it('is told before a message leaves', async () => {
		expect(await run(send, url)).toMatchObject({
			code: 7,
			stderr: `error: What this service is cannot be learnt: what answers at ${url} does not speak HTTP\nhint: is ${url} the right base URL? mailctl doctor looks at it\n`,
		});
	});

	it('ends mailctl smoke at its first check', async () => {
		const { code, stdout, stderr } = await run('smoke -o json', url);
		const [first, ...rest] = JSON.parse(stdout).checks as { outcome: string; detail: string }[];
		expect(code).toBe(11);
		expect(first).toMatchObject({
			outcome: 'fail',
			detail: `this is not the service: what answers at ${url} does not speak HTTP`,
		});
		expect(new Set(rest.map(({ outcome }) => outcome))).toEqual(new Set(['skip']));
		expect(stderr).toContain(`is ${url} the right base URL? mailctl doctor looks at it`);
	});

	it('is not suspected behind an answer in HTTP', async () => {
		const broken = createTcpServer((socket) => {
			socket.on('error', () => {});
			socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\nno header\r\n\r\n'));
		});
		const at = `http://127.0.0.1:${await portOf(broken)}`;
		const { code, stderr } = await run('lists list', at);
		expect(code).toBe(7);
		expect(stderr).toMatch(/^error: what \S+ answered is not HTTP \(Invalid header token\)\n$/);
	});
});

describe('a web page in place of the service', () => {
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
	])('is called that by mailctl %s', async (words, path) => {
		const { code, stderr } = await run(words, url);
		expect(code).toBe(7);
		expect(stderr).toContain(`error: The answer is a web page, not JSON: "Welcome" (GET ${path}).\n`);
		expect(stderr).toContain(`hint: GET ${url}${path} answered with a web page: is the base URL right?`);
	});

	it('leaves it open whether a send happened, and says what answered', async () => {
		const { code, stderr } = await run(send, url);
		expect(code).toBe(13);
		expect(stderr).toContain('it may or may not have been sent: The answer is a web page, not JSON');
		expect(stderr).toContain('hint: look at the report or ask a recipient before you send it again\n');
		expect(stderr).toContain(`POST ${url}/message/send/ answered with a web page: is the base URL right?`);
	});
});

it('a certificate of an unknown authority is mended by naming that', async () => {
	const { cert, key } = await makeCertificates(['IP:127.0.0.1']);
	const url = `https://127.0.0.1:${await portOf(createTlsServer({ cert, key }))}`;
	for (const words of ['login --no-input', 'lists list']) {
		const { code, stderr } = await run(words, url);
		expect([code, stderr]).toEqual([
			6,
			expect.stringContaining('hint: --ca-cert FILE names an authority of your own\n'),
		]);
	}
});

describe('mailctl smoke where another service answers', () => {
	it.each<[string, RequestListener, string]>([
		[
			'a page for every path',
			(_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Hello</html>'),
			'GET /sub/lists/ answered 200 with a web page',
		],
		[
			'a page that says that nothing is there',
			(_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<html>None</html>'),
			'GET /sub/lists/ answered 404',
		],
		[
			'a redirect',
			(_, response) => response.writeHead(302, { location: 'https://mail.example.com/' }).end(),
			'GET /sub/lists/ answered 302 and redirects to https://mail.example.com/',
		],
	])('with %s fails once and skips the rest', async (_, listener, what) => {
		const url = `http://127.0.0.1:${await portOf(createServer(listener))}`;
		const { code, stdout, stderr } = await run('smoke -o json', url);
		const [first, ...rest] = JSON.parse(stdout).checks as { id: string; outcome: string; detail: string }[];
		expect(code).toBe(11);
		expect(first).toMatchObject({
			id: 'connection.reachable',
			outcome: 'fail',
			detail: `this is not the service: ${what}`,
		});
		expect(new Set(rest.map(({ outcome, detail }) => `${outcome}: ${detail}`))).toEqual(
			new Set(['skip: it is not this service']),
		);
		expect(stderr).toContain(`is ${url} the right base URL? mailctl doctor looks at it`);
	});
});
