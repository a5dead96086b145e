import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/api/errors.js';
import { cli, makeHome } from '../../support/cli.js';
import { makeProject } from '../../support/project.js';
import { startServer } from '../../support/running-server.js';
import { type Answer, wireOf } from '../../support/wire.js';

const base = ['--base-url', 'https://mail.example.com/api', 'api'];
const always = (answer: Answer | Error) => wireOf(() => answer);

describe('mailctl api', () => {
	it('prints the response body unchanged', async () => {
		const wire = always({ body: '{"id":1, "big": 12345678901234567890}' });
		const { code, stdout, stderr } = await cli([...base, 'get', 'sub/lists/1/'], { connect: wire.connect });
		expect([code, stdout, stderr]).toEqual([0, '{"id":1, "big": 12345678901234567890}', '']);
		expect(wire.asked).toMatchObject([{ method: 'GET', path: '/sub/lists/1/' }]);
		expect(wire.asked[0]).toHaveProperty('headers', {});
		expect(wire.asked[0]).not.toHaveProperty('token');
	});

	it('formats JSON on a terminal and escapes control characters', async () => {
		const json = await cli([...base, 'GET', '/x/'], {
			connect: always({ body: { name: 'a\u202eb' } }).connect,
			columns: 80,
		});
		expect(json.stdout).toBe('{\n  "name": "a\\u202eb"\n}\n');
		const text = await cli([...base, 'GET', '/x/'], {
			connect: always({ body: '<h1>\u001b[2J</h1>\r\n' }).connect,
			columns: 80,
		});
		expect(text.stdout).toBe('<h1>\\x1b[2J</h1>\n');
	});

	it('sends a body as JSON with the given query and headers', async () => {
		const wire = always({ status: 201, body: '{}' });
		const words = ['POST', '/sub/lists/', '--data', '{"name": "N"}', '--param', 'a=b c', '--param', 'a=&d'];
		const { code } = await cli([...base, ...words, '--header', 'X-Trace: 7'], { connect: wire.connect });
		expect(code).toBe(0);
		expect(wire.asked).toMatchObject([
			{
				method: 'POST',
				path: '/sub/lists/?a=b%20c&a=%26d',
				headers: { 'content-type': 'application/json', 'x-trace': '7' },
				body: '{"name": "N"}',
			},
		]);
	});

	it('reads the body from standard input', async () => {
		const wire = always({});
		await cli([...base, 'PUT', '/x/', '--data', '-', '--header', 'Content-Type: text/plain'], {
			connect: wire.connect,
			stdin: 'hello',
		});
		expect(wire.asked).toMatchObject([{ body: 'hello', headers: { 'content-type': 'text/plain' } }]);
	});

	it('prints status and headers first with --include', async () => {
		const wire = always({
			status: 404,
			headers: { 'content-type': 'application/json' },
			body: '{"detail":"Not found."}',
		});
		const { code, stdout } = await cli([...base, 'GET', '/x/', '--include'], { connect: wire.connect });
		expect({ code, stdout }).toEqual({
			code: 3,
			stdout: 'HTTP/1.1 404 Not Found\ncontent-type: application/json\n\n{"detail":"Not found."}',
		});
	});

	it.each([
		[400, 5],
		[401, 4],
		[404, 3],
		[429, 7],
		[301, 7],
		[500, 7],
	])('turns the HTTP status %i into the exit code %i, and prints the body to stdout and an error to stderr', async (status, exit) => {
		const wire = always({ status, body: '{"detail":"So."}' });
		const { code, stdout, stderr } = await cli([...base, 'GET', '/x/?a=1'], { connect: wire.connect });
		expect({ code, stdout }).toEqual({ code: exit, stdout: '{"detail":"So."}' });
		const why = status === 301 ? `${status}, a redirect, to GET /x/` : `${status} to GET /x/: So.`;
		expect(stderr.split('\n').filter((line) => line.startsWith('error:'))).toEqual([
			`error: the service answered ${why}`,
		]);
	});

	it('prints the token’s scopes and the needed scopes after a 403', async () => {
		const headers = { 'x-accepted-scopes': 'read', 'x-token-scopes': 'send' };
		const wire = always({ status: 403, headers, body: '{"detail":"No."}' });
		const { code, stderr } = await cli([...base, 'GET', '/x/'], { connect: wire.connect });
		expect({ code, stderr }).toEqual({
			code: 4,
			stderr:
				'error: the service answered 403 to GET /x/: No. The token needs the scope read, or admin; it has send.\n' +
				'hint: use a token with the right scope; on the server: mailctl engine tokens create --name NAME --scope SCOPE\n',
		});
	});

	it('accepts only JSON or an empty answer with -o json', async () => {
		const { code, stdout, stderr } = await cli([...base, 'GET', '/', '-o', 'json'], {
			connect: always({ body: '<html>' }).connect,
		});
		expect({ code, stdout }).toEqual({ code: 7, stdout: '' });
		expect(JSON.parse(stderr).error).toMatchObject({ code: 'bad_answer', exit_code: 7 });
		const empty = await cli([...base, 'DELETE', '/x/', '--json'], {
			connect: always({ status: 204 }).connect,
		});
		expect(empty).toEqual({ code: 0, stdout: '', stderr: '' });
	});

	it('reports a message as possibly sent if the server does not answer', async () => {
		const wire = always(new ApiError('network', 'the connection was cut', { unanswered: true }));
		const { code, stderr } = await cli([...base, 'POST', '/message/send/', '--data', '{}'], {
			connect: wire.connect,
		});
		expect(code).toBe(13);
		expect(stderr).toContain('error: the message may or may not have been sent: the connection was cut\n');
	});
});

describe('the path argument of mailctl api', () => {
	it.each([
		['sub/lists/', '/sub/lists/'],
		['/', '/'],
		['https://mail.example.com/api/sub/lists/?page=2', '/sub/lists/?page=2'],
		['/sub/fields/ü x/', '/sub/fields/%C3%BC%20x/'],
	])('%s becomes the request path %s', async (given, path) => {
		const wire = always({});
		expect((await cli([...base, 'GET', given], { connect: wire.connect })).code).toBe(0);
		expect(wire.asked[0]?.path).toBe(path);
	});

	it.each([
		'https://evil.example/api/sub/lists/',
		'https://mail.example.com/apiary/',
		'https://mail.example.com/api/../admin/',
		'https://ann@mail.example.com/api/x/',
		'//evil.example/x',
		'/\\evil.example/x',
		'/x/%2E%2e/admin/',
		'file:///etc/passwd',
	])('is rejected before mailctl sends a request: %s', async (given) => {
		const wire = always({});
		const { code } = await cli([...base, 'GET', given], { connect: wire.connect });
		expect({ code, asked: wire.asked }).toEqual({ code: 2, asked: [] });
	});
});

describe('mailctl api with invalid arguments', () => {
	it.each([
		[['FETCH', '/x/']],
		[['GET', '/x/', '--data', '{}']],
		[['GET', '/x/', '--header', 'x-secure-token: t']],
		[['GET', '/x/', '--header', 'Host: evil']],
		[['GET', '/x/', '--header', 'X-A: 1\r\nX-B: 2']],
		[['GET', '/x/', '-o', 'csv']],
		[['POST', '/x/', '--paginate']],
	])('exits with 2 before it sends a request: %j', async (words) => {
		const wire = always({});
		const { code } = await cli([...base, ...words], { connect: wire.connect });
		expect({ code, asked: wire.asked }).toEqual({ code: 2, asked: [] });
	});
});

describe('mailctl api --paginate', () => {
	const pages: Record<string, Answer> = {
		'/x/?q=1': { body: { next: 'http://inside:9/other/?q=1&page=2', results: [{ id: 1 }, { id: 2 }] } },
		'/x/?q=1&page=2': { body: { next: null, results: [{ id: 3 }] } },
	};

	it('takes only the query from each next link, and prints all rows in one array', async () => {
		const wire = wireOf(({ path }) => pages[path] ?? { status: 404 });
		const { code, stdout } = await cli([...base, 'GET', '/x/?q=1', '--paginate'], { connect: wire.connect });
		expect({ code, stdout }).toEqual({ code: 0, stdout: '[\n{"id":1},\n{"id":2},\n{"id":3}\n]\n' });
	});

	it.each([
		['a page whose next link names itself', { next: '/x/', results: [1] }],
		['an empty page with a next link', { next: '/x/?page=2', results: [] }],
		['an answer that is not a page', { id: 1 }],
	])('exits with 7 for %s', async (_, body) => {
		const { code } = await cli([...base, 'GET', '/x/', '--paginate'], { connect: always({ body }).connect });
		expect(code).toBe(7);
	});

	it('exits with 7 if a page repeats the rows of the previous page', async () => {
		let page = 1;
		const wire = wireOf(() => {
			page += 1;
			return { body: { next: `/x/?page=${page}`, results: [{ id: 1 }] } };
		});
		const { code } = await cli([...base, 'GET', '/x/', '--paginate'], { connect: wire.connect });
		expect({ code, asked: wire.asked.length }).toEqual({ code: 7, asked: 2 });
	});
});

describe('a raw request that changes data', () => {
	async function protectedHome(more: object = {}): Promise<string> {
		const home = await makeHome();
		await mkdir(join(home, '.config/mailctl'), { recursive: true });
		const prod = { baseUrl: 'https://mail.example.com', protected: true, ...more };
		await writeFile(join(home, '.config/mailctl/config.json'), JSON.stringify({ profiles: { prod } }));
		return home;
	}

	it('is printed in a dry run, which sends only requests that read data', async () => {
		const wire = always({ body: '{}' });
		const { code, stdout } = await cli([...base, 'DELETE', '/sub/lists/1/', '-n', '-o', 'json'], {
			connect: wire.connect,
		});
		expect({ code, document: JSON.parse(stdout), asked: wire.asked }).toEqual({
			code: 0,
			document: { dry_run: true, request: { method: 'DELETE', path: '/sub/lists/1/', body: null } },
			asked: [],
		});
		const hook = await cli(
			[...base, 'POST', '/webhooks/', '--data', '{"url": "u", "password": "p"}', '-n', '--json'],
			{
				connect: wire.connect,
			},
		);
		expect(JSON.parse(hook.stdout).request.body).toEqual({ url: 'u', password: null });
		await cli([...base, 'GET', '/webhooks/3/run_test/', '-n'], { connect: wire.connect });
		expect(wire.asked).toEqual([]);
		await cli([...base, 'GET', '/sub/lists/', '-n'], { connect: wire.connect });
		expect(wire.asked).toHaveLength(1);
	});

	it('needs a confirmation if the profile is protected', async () => {
		const wire = always({ body: '{}' });
		const env = { HOME: await protectedHome() };
		const refused = await cli(['-p', 'prod', 'api', 'DELETE', '/sub/lists/1/'], {
			env,
			connect: wire.connect,
		});
		expect([refused.code, wire.asked.length]).toEqual([2, 0]);
		const read = await cli(['-p', 'prod', 'api', 'GET', '/sub/lists/1/'], { env, connect: wire.connect });
		const agreed = await cli(['-p', 'prod', 'api', 'DELETE', '/sub/lists/1/', '-y'], {
			env,
			connect: wire.connect,
		});
		expect([read.code, agreed.code, wire.asked.length]).toEqual([0, 0, 2]);
	});

	it('is rejected if it sends mail to a recipient that the profile does not allow', async () => {
		const wire = always({ body: '{}' });
		const env = { HOME: await protectedHome({ protected: false, allowRecipients: ['*@example.com'] }) };
		const send = (body: object) =>
			cli(['-p', 'prod', 'api', 'POST', 'message/send', '--data', JSON.stringify(body)], {
				env,
				connect: wire.connect,
			});
		expect((await send({ to: ['ann@example.com'], bcc: ['bo@evil.org'] })).code).toBe(2);
		expect((await send({ to: 'bo@evil.org' })).code).toBe(2);
		for (const path of ['/ext/mailings/', '/ext/%6Dailings/', '/%65xt/mailings/x/lists/1/']) {
			const words = ['-p', 'prod', 'api', 'POST', path, '--data', '{}'];
			expect(await cli(words, { env, connect: wire.connect })).toMatchObject({
				code: 2,
				stderr: expect.stringContaining('a campaign goes by mailctl'),
			});
		}
		const spelled = ['-p', 'prod', 'api', 'POST', '/message/%73end/', '--data', '{"to": "bo@evil.org"}'];
		expect((await cli(spelled, { env, connect: wire.connect })).code).toBe(2);
		expect(wire.asked).toEqual([]);
		expect((await send({ to: ['ann@example.com'] })).code).toBe(0);
	});
});

describe('a raw request to a local database', () => {
	it('is rejected if it has a URL instead of a path', async () => {
		const { db, run } = await makeProject();
		const { code, stderr } = await run(['api', 'GET', 'http://127.0.0.1:8080/sub/lists/']);
		expect({ code, stderr }).toEqual({
			code: 2,
			stderr: `error: give the path; --base-url takes the URL\nhint: mailctl --db ${db} api GET /sub/lists/\n`,
		});
	});

	it('gets the answer that a server on the same database would give', async () => {
		const { db, run } = await makeProject();
		const server = await startServer(db);
		const there = (argv: readonly string[]) =>
			cli(['--base-url', server.baseUrl, ...argv], { env: { MAILCTL_TOKEN: server.token } });
		try {
			const body = ['--data', '{"name": "News", "email_reason": "r"}'];
			const { code, stdout } = await run(['api', 'POST', 'sub/lists/', ...body]);
			expect({ code, list: JSON.parse(stdout) }).toMatchObject({ code: 0, list: { id: 1, name: 'News' } });
			for (const argv of [
				['api', 'GET', '/sub/lists/1/'],
				['api', 'GET', '/sub/lists/', '--paginate'],
				['api', 'GET', '/sub/lists/99/'],
				['api', 'GET', '/nowhere/'],
				['api', 'PATCH', '/sub/lists/1/', '--data', '{"name": ""}'],
				['api', 'PUT', '/sub/lists/', '--data', '{}'],
				['api', 'POST', '/sub/lists/', '--data', '{"name": '],
				['api', 'POST', '/sub/lists/', '--data', 'x', '--header', 'Content-Type: text/plain'],
			])
				expect(await there(argv)).toEqual(await run(argv));
			const links = await there(['api', 'GET', `${server.baseUrl}/sub/lists/?page_size=1`, '--json']);
			expect(JSON.parse(links.stdout)).toMatchObject({ count: 1, next: null });
			expect((await there(['api', 'DELETE', '/sub/lists/1/'])).code).toBe(0);
			expect((await run(['api', 'GET', '/sub/lists/1/'])).code).toBe(3);
		} finally {
			await server.stop();
		}
	});
});

describe('a dry run on a local database', () => {
	const twoThousand = 2_001;

	it.each<[code: number, method: string, path: string, data?: string]>([
		[3, 'DELETE', '/sub/lists/9/'],
		[5, 'POST', '/sub/lists/', '{"name": ""}'],
		[5, 'PUT', '/sub/lists/1/', '{"name": ""}'],
		[5, 'POST', '/sub/lists/', 'no json'],
		[3, 'POST', '/nowhere/', '{}'],
		[3, 'GET', '/webhooks/9/run_test/'],
		[
			5,
			'POST',
			'/message/send/',
			'{"from": "x@example.com", "to": ["a@example.com"], "subject": "S", "text_body": "T"}',
		],
	])('exits with %i, as the real request does: %s %s', async (code, method, path, data) => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		const words = ['api', method, path, ...(data === undefined ? [] : ['--data', data])];
		const dry = await project.run([...words, '-n']);
		expect(dry).toEqual(await project.run(words));
		expect(dry.code).toBe(code);
	});

	it('prints a valid request, changes nothing and calls no webhook', async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		await project.json(['webhooks', 'create', '--url', 'https://hooks.invalid/', '--type', 'OPENED']);
		for (const [method, path] of [
			['DELETE', '/sub/lists/1/'],
			['GET', '/webhooks/1/run_test/?x=1'],
		] as const) {
			const dry = await project.json(['api', method, path, '-n']);
			expect(dry).toEqual({ dry_run: true, request: { method, path, body: null } });
		}
		expect(await project.json(['lists', 'list'])).toHaveLength(1);
	});

	it('accepts requests that the engine processes in several slices', async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		const people = Array.from({ length: twoThousand }, (_, n) => `a${n}@example.com`);
		const file = await project.file('people.csv', `email\n${people.join('\n')}\n`);
		await project.json(['subscribers', 'import', file, '-l', '1']);
		const spec = { key: 'j', from: 'news@example.com', subject: 'S', text_body: 'T', list_id: 1 };
		const api = (...words: string[]) => project.json(['api', ...words]);
		const { id } = (await api('POST', '/ext/mailings/', '--data', JSON.stringify(spec))) as { id: string };
		const add = ['POST', `/ext/mailings/${id}/lists/1/`];
		expect(await api(...add, '-n')).toMatchObject({ dry_run: true });
		expect(await api(...add)).toMatchObject({ counts: { staged: twoThousand } });
		expect(await api('POST', `/ext/mailings/${id}/cancel/`, '-n')).toMatchObject({ dry_run: true });
	});
});
