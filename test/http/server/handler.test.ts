/** Decisions of the API contract, one by one, over real sockets with the real engine. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiError, StoreError } from '../../../src/api/errors.js';
import { createThrottle } from '../../../src/http/server/authenticate.js';
import {
	type Answer,
	type Asking,
	ask,
	type Deployment,
	type DeploymentOptions,
	deploy,
	tokens,
} from './serving.js';

let deployment: Deployment;
async function restart(options: DeploymentOptions): Promise<void> {
	await deployment.close();
	deployment = await deploy(options);
}
beforeEach(async () => {
	deployment = await deploy();
});
afterEach(() => deployment.close());

const wire = (method: string, path: string, asking?: Asking): Promise<Answer> =>
	ask(deployment, method, path, asking);
const list = { name: 'News', email_reason: 'You asked' };
const letter = { from: 'news@example.com', to: ['a@example.com'], subject: 'Hi', text_body: 'Hello' };
const unknown = '7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11';

describe('bodies', () => {
	it('are JSON in UTF-8; an answer escapes U+2028, and has no spaces between JSON tokens', async () => {
		const answer = await wire('POST', '/sub/lists/', { body: { name: 'Ærø \u2028 😀', email_reason: 'ж' } });
		expect(answer.status).toBe(201);
		expect(answer.text).toMatch(/^\{"id":1,"name":"Ærø \\u2028 😀","email_reason":"ж",/);
		expect(answer.headers.get('content-type')).toBe('application/json');
		expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(answer.text)));
	});

	it('escape U+2028 even if the database encodes their JSON', async () => {
		await wire('POST', '/sub/lists/', { body: list });
		const person = { email: 'a@example.com', name: 'é"\u2028\u2029"results":[]' };
		await wire('POST', '/sub/lists/1/subscribers/', { body: person });
		for (const path of ['/sub/lists/1/subscribers/', '/ext/lists/1/subscribers/']) {
			const answer = await wire('GET', path);
			expect(answer).toMatchObject({ status: 200, body: { results: [person] } });
			expect(answer.text).toContain('"name":"é\\"\\u2028\\u2029\\"results\\":[]"');
			expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(answer.text)));
		}
	});

	it.each([
		['malformed JSON', '{'],
		['a byte order mark', '\ufeff{}'],
		['NaN', '{"name": NaN}'],
		['octets that are not UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22])],
		['33 levels', '['.repeat(33) + ']'.repeat(33)],
		['a hundred thousand levels', '['.repeat(100_000)],
		['a hundred thousand closed levels', '['.repeat(100_000) + ']'.repeat(100_000)],
	])('get a parse error if they contain %s', async (_, raw) => {
		const answer = await wire('POST', '/sub/lists/', { raw });
		expect(answer.status).toBe(400);
		expect(answer.text).toMatch(/^\{"detail":"JSON parse error - .*"\}$/);
		expect(answer.headers.get('x-error-code')).toBe('parse_error');
	});

	it('with lone surrogates or NUL are rejected, and the error names the field', async () => {
		const raw = '{"name": "a\\ud800b", "email_reason": "x\\u0000y"}';
		const answer = await wire('POST', '/sub/lists/', { raw });
		expect(answer.status).toBe(400);
		expect(Object.keys(answer.body as object)).toEqual(['name', 'email_reason']);
	});

	it('with keys like __proto__ do not change any other value', async () => {
		const raw = '{"__proto__": {"name": "x"}, "constructor": 1, "email_reason": "y"}';
		expect(await wire('POST', '/sub/lists/', { raw })).toMatchObject({
			status: 400,
			text: '{"name":["This field is required."]}',
		});
	});
});

describe('a request with a token', () => {
	it('gets a 403 if the token lacks a scope, and the headers name the required and the given scopes', async () => {
		const told = async (method: string, path: string, token: string) => {
			const { status, headers } = await wire(method, path, { token });
			return [status, headers.get('x-accepted-scopes'), headers.get('x-token-scopes')];
		};
		const uuid = '00000000-0000-4000-8000-000000000000';
		expect(await told('GET', '/sub/lists/', tokens.send)).toEqual([403, 'read', 'send']);
		expect(await told('POST', '/sub/lists/', tokens.read)).toEqual([403, 'admin', 'read']);
		const both = await told('POST', `/ext/messages/${uuid}/retry/`, tokens.send);
		expect(both).toEqual([403, 'send read', 'send']);
		expect(await told('GET', '/sub/lists/', tokens.read)).toEqual([200, null, null]);
	});

	it('is allowed if the scopes of its token cover it', async () => {
		const may = async (token: string, method: string, path: string) =>
			(await wire(method, path, { token, ...(method === 'POST' && { body: {} }) })).status !== 403;
		const paths: [string, string][] = [
			['GET', '/sub/lists/'],
			['GET', '/webhooks/'],
			['POST', '/sub/lists/'],
			['POST', '/message/send/'],
			['GET', `/ext/mailings/${unknown}/`],
			['POST', `/ext/mailings/${unknown}/lists/1/`],
		];
		const rights = async (token: string) =>
			Promise.all(paths.map(([method, path]) => may(token, method, path)));
		expect(await rights(tokens.read)).toEqual([true, false, false, false, true, false]);
		expect(await rights(tokens.send)).toEqual([false, false, false, true, true, false]);
		expect(await rights(tokens.admin)).toEqual([true, true, true, true, true, true]);
	});

	it('to /tuples/ gets the next position in the body and X-Next, or a 400 for an unknown value of keys=', async () => {
		await wire('POST', '/sub/lists/', { body: { name: 'L', email_reason: 'r' } });
		await wire('POST', '/sub/lists/1/subscribers/', { body: { email: 'a@example.com' } });
		const first = await wire('GET', '/ext/lists/1/tuples/?limit=1');
		expect(first.text).toBe('{"results":[["a@example.com","",true,null,{}]],"next":1}');
		expect(first.headers.get('x-next')).toBe('1');
		const last = await wire('GET', '/ext/lists/1/tuples/?keys=all&after=1');
		expect({ text: last.text, next: last.headers.get('x-next') }).toEqual({
			text: '{"results":[],"next":null}',
			next: null,
		});
		expect(await wire('GET', '/ext/lists/1/tuples/?keys=none')).toMatchObject({
			status: 400,
			text: '{"keys":["\\"none\\" is not a valid choice."]}',
		});
	});

	it.each([
		...['messages/?status', 'messages/slice/?ordering', 'mailings/?state', 'mailings/?ordering'],
		...['suppressions/?reason', 'suppressions/?source', 'webhooks/1/deliveries/?state'],
		...['webhooks/1/deliveries/?ordering', `mailings/${unknown}/results/?only`],
	])('is rejected for an unknown or empty value of %s=', async (path) => {
		for (const word of ['bogus', '']) {
			const { status, text } = await wire('GET', `/ext/${path}=${word}`);
			const body = { [path.split('?')[1] ?? '']: [`"${word}" is not a valid choice.`] };
			expect({ status, text }).toEqual({ status: 400, text: JSON.stringify(body) });
		}
	});

	it('counts towards the request limit of its token', async () => {
		let now = 0;
		await restart({
			handler: { throttle: createThrottle({ perSecond: 0.4, burst: 2, clock: { now: () => now } }) },
		});
		const statuses = async (token: string, times: number) => {
			const answers: Answer[] = [];
			for (let i = 0; i < times; i++) answers.push(await wire('GET', '/sub/lists/', { token }));
			return answers;
		};
		const answers = await statuses(tokens.admin, 3);
		expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
		expect(answers[2]?.text).toBe('{"detail":"Request was throttled. Expected available in 3 seconds."}');
		expect(answers[2]?.headers.get('retry-after')).toBe('3');
		expect((await statuses(tokens.read, 1))[0]?.status).toBe(200);
		now += 2_000_000;
		const waiting = (await statuses(tokens.admin, 1))[0];
		expect(waiting?.text).toBe('{"detail":"Request was throttled. Expected available in 1 second."}');
		now += 500_000;
		expect((await statuses(tokens.admin, 1))[0]?.status).toBe(200);
	});
});

describe('paths', () => {
	it.each([
		'/nope/',
		'/sub//lists/',
		'/sub/lists//',
		'/sub/lists/%zz/',
		'/sub/lists/1.5/',
		'/sub/lists/-1/',
		'/sub/lists/1%2F/',
		'/sub/lists/18446744073709551616/',
		'/sub/lists/9007199254740993/',
		'/healthz/',
		'/sub/lists/constructor/',
		'/ext/templates/1/',
		`/ext/templates/${unknown}0/`,
		'/o/abc.gif',
		'/%2e%2e/etc/passwd',
	])('that are unknown give a 404 in JSON: %s', async (path) => {
		expect(await wire('GET', path)).toMatchObject({ status: 404, text: '{"detail":"Not found."}' });
	});

	it('match if they are percent-encoded, or have a UUID in upper case', async () => {
		await wire('POST', '/sub/l%69sts/', { body: list });
		expect((await wire('GET', '/sub/lists/%31/')).status).toBe(200);
		const { body } = await wire('POST', '/ext/templates/', { body: { name: 'T', text_body: 'x' } });
		const { id } = body as { id: string };
		expect((await wire('GET', `/ext/templates/${id.toUpperCase()}/`)).status).toBe(200);
	});

	it('answer HEAD like GET but without a body, except that /run_test/ rejects HEAD', async () => {
		let tests = 0;
		await restart({
			ports: {
				notifyTest: async () => {
					tests += 1;
					return { result: true, status_code: 200, error: null, duration_ms: 1 };
				},
			},
		});
		const hook = { url: 'https://example.com/', type: 'OPENED' };
		await wire('POST', '/webhooks/', { body: hook });
		const [get, head] = [await wire('GET', '/webhooks/1/'), await wire('HEAD', '/webhooks/1/')];
		expect(head.status).toBe(200);
		expect(head.text).toBe('');
		expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
		const refused = await wire('HEAD', '/webhooks/1/run_test/');
		expect(refused.status).toBe(405);
		expect(refused.headers.get('allow')).toBe('GET, OPTIONS');
		expect(tests).toBe(0);
		expect(await wire('GET', '/webhooks/1/run_test/')).toMatchObject({
			status: 200,
			text: '{"result":true,"status_code":200,"error":null,"duration_ms":1}',
		});
		expect(tests).toBe(1);
	});
});

describe('collections', () => {
	it('link to their pages with the public URL, and encode other parameters as DRF does', async () => {
		for (let i = 0; i < 5; i++) await wire('POST', '/sub/lists/', { body: list });
		const links = async (query: string) => {
			const { next, previous } = (
				await wire('GET', `/sub/lists/?${query}`, { headers: { Host: 'evil.example' } })
			).body as Record<string, string>;
			return [next, previous];
		};
		expect(await links('page_size=2&x=a b&x=~*!&page=2&b=%C3%A9')).toEqual([
			'http://testserver/sub/lists/?b=%C3%A9&page=3&page_size=2&x=a+b&x=~%2A%21',
			'http://testserver/sub/lists/?b=%C3%A9&page_size=2&x=a+b&x=~%2A%21',
		]);
		expect(await links('page=last&page_size=2')).toEqual([
			null,
			'http://testserver/sub/lists/?page=2&page_size=2',
		]);
		await deployment.store.writes.putSettings({
			values: { public_url: 'https://mail.example.com/api' },
			now: 0,
		});
		expect(await links('page_size=4')).toEqual([
			'https://mail.example.com/api/sub/lists/?page=2&page_size=4',
			null,
		]);
	});
});

describe('sending', () => {
	const send = (key: string | null, more: object = {}) =>
		wire('POST', '/message/send/', {
			body: { ...letter, ...more },
			...(key !== null && { headers: { 'Idempotency-Key': key } }),
		});

	it('returns the submission id in a header, and for a bulk send also the campaign id', async () => {
		await deployment.store.writes.putSettings({ values: { public_url: 'https://mail.example.com' }, now: 0 });
		const one = await send(null);
		expect(one.status).toBe(200);
		expect(one.headers.get('x-submission-id')).toMatch(/^[0-9a-f-]{36}$/);
		expect(one.headers.get('x-campaign-id')).toBe(null);
		expect(one.headers.get('idempotency-replayed')).toBe(null);
		const bulk = await send(null, { type: 'BULK' });
		expect(bulk.headers.get('x-campaign-id')).toMatch(/^[0-9a-f-]{36}$/);
	});

	it('lets two tokens use the same idempotency key independently', async () => {
		const asSender = { body: letter, token: tokens.send, headers: { 'Idempotency-Key': 'same' } };
		const mine = await send('same');
		const theirs = await wire('POST', '/message/send/', asSender);
		expect(theirs.status).toBe(200);
		expect(theirs.text).not.toBe(mine.text);
	});

	it.each(['a b', 'é', 'x'.repeat(256), ''])('rejects the idempotency key "%s"', async (key) => {
		const answer = await send(key);
		expect(answer.status).toBe(400);
		expect(answer.body).toEqual({ 'Idempotency-Key': ['Use 1 to 255 visible ASCII characters.'] });
	});
});

describe('the extensions of the API', () => {
	it.each([
		['POST', '/ext/imports/', {}],
		['POST', '/ext/imports/', { key: 'k', list_id: 'x' }],
		['POST', '/ext/imports/', { key: '', list_id: 1 }],
		['POST', '/ext/imports/', { key: 'k', list_id: 1, on_conflict: 'maybe' }],
		['PUT', `/ext/imports/${unknown}/batches/0/`, {}],
		['PUT', `/ext/imports/${unknown}/batches/0/`, { columns: 'email', cells: [] }],
		['PUT', `/ext/imports/${unknown}/batches/0/`, { columns: [], cells: [] }],
		['PUT', `/ext/imports/${unknown}/batches/0/`, { columns: ['email'], cells: [1] }],
		['PUT', `/ext/imports/${unknown}/batches/0/`, { columns: ['name'], cells: ['x'] }],
		['PUT', `/ext/mailings/${unknown}/batches/0/`, { recipients: [{ to: 1 }] }],
		['PUT', `/ext/mailings/${unknown}/batches/0/`, { recipients: [{ to: 'a', context: { x: 1 } }] }],
		['PUT', `/ext/mailings/${unknown}/batches/0/`, { recipients: {} }],
		['POST', '/ext/mailings/', {}],
		['POST', '/ext/mailings/', []],
		['POST', '/ext/mailings/', { key: 'k' }],
		['POST', `/ext/mailings/${unknown}/release/`, { expect_count: -1 }],
		['PATCH', '/ext/lists/1/subscribers/1/', { unset: 'x' }],
		['PATCH', '/ext/lists/1/subscribers/1/', { patch: [] }],
		['GET', '/ext/messages/progress/', undefined],
		['GET', '/ext/messages/?since=yesterday', undefined],
	])('reject a malformed body or query: %s %s %j', async (method, path, body) => {
		const answer = await wire(method, path, body === undefined ? {} : { body });
		expect(answer.status).toBe(400);
		expect(answer.body).toEqual(expect.any(Object));
	});
});

describe('failures of the service', () => {
	const failing = (error: unknown) => {
		deployment.engine.lists.page = () => Promise.reject(error);
		return wire('GET', '/sub/lists/');
	};

	it('give a 503 with Retry-After if the database is locked too long', async () => {
		const answer = await failing(new StoreError('locked', '/var/lib/news.db is locked'));
		expect(answer).toMatchObject({ status: 503, text: '{"detail":"The database is busy. Try again."}' });
		expect(answer.headers.get('retry-after')).toBe('1');
	});

	it('give a 507 if the disk is full', async () => {
		const answer = await failing(new StoreError('disk_full', 'no room beside /var/lib/news.db'));
		expect(answer).toMatchObject({ status: 507, text: '{"detail":"The disk of the service is full."}' });
	});

	it('are logged, and give a 503 with Retry-After if the database is read-only', async () => {
		const answer = await failing(new StoreError('read_only', '/var/lib/news.db'));
		expect(answer).toMatchObject({
			status: 503,
			text: '{"detail":"The database of the service is read-only. Try again."}',
		});
		expect(answer.headers.get('retry-after')).toBe('1');
		expect(deployment.lines[0]).toMatchObject({ level: 'error', error: '/var/lib/news.db' });
	});

	const unknown = ['server_error', 'A server error occurred.'] as const;
	const failed = (what: string) => ['storage_failed', what] as const;
	it.each([
		[
			new StoreError('io', 'SELECT * FROM tokens: disk I/O error at /var/lib/news.db'),
			failed('The disk of the service failed.'),
		],
		[new StoreError('damaged', '/var/lib/news.db'), failed('The database of the service is damaged.')],
		[
			new StoreError('not_a_database', '/var/lib/news.db'),
			failed('The database file of the service is not a database.'),
		],
		[
			new StoreError('not_overwritten', '/var/lib/news.db'),
			[
				'not_overwritten',
				'The request is done, but the disk of the service still holds the deleted data. To overwrite this data, repeat the request.',
			],
		],
		[new TypeError('cannot read secret'), unknown],
		['a text', unknown],
		[null, unknown],
	] as const)('are logged, but their details are not sent: %s becomes %j', async (error, [code, detail]) => {
		const answer = await failing(error);
		expect(answer).toMatchObject({ status: 500, text: JSON.stringify({ detail }) });
		expect(answer.headers.get('x-error-code')).toBe(code);
		const id = answer.headers.get('x-request-id');
		const said = error instanceof Error ? error.message : String(error);
		expect(deployment.lines).toMatchObject([
			{ level: 'error', id, method: 'GET', path: '/sub/lists/', error: said },
			{ id, status: 500, error: code },
		]);
	});

	it('keep the Retry-After that the engine gives', async () => {
		const answer = await failing(new ApiError('throttled', 'Slow down.', { retryAfterMs: 2500 }));
		expect(answer.status).toBe(429);
		expect(answer.headers.get('retry-after')).toBe('3');
	});

	it('make /readyz fail, but not /healthz', async () => {
		await restart({ handler: { ready: async () => 'the disk is full' } });
		const answer = await wire('GET', '/readyz', { token: null });
		expect(answer).toMatchObject({
			status: 503,
			text: '{"status":"unavailable","detail":"the disk is full"}',
		});
		await restart({ handler: { ready: () => Promise.reject(new Error('/var/lib/news.db')) } });
		expect((await wire('GET', '/readyz')).text).toBe(
			'{"status":"unavailable","detail":"The database does not answer."}',
		);
		expect((await wire('GET', '/healthz')).status).toBe(200);
	});
});

describe('the server', () => {
	it('has metrics that Prometheus can read with a Bearer token', async () => {
		await restart({
			handler: {
				gauges: async () => ({
					'mailctl_messages{state="sent"}': 2,
					'mailctl_messages{state="queued"}': 1,
					mailctl_lists: 0,
				}),
			},
		});
		await wire('GET', '/sub/lists/');
		await wire('GET', '/sub/lists/?page=9');
		await wire('GET', '/nope/');
		expect((await wire('GET', '/metrics', { token: null })).status).toBe(401);
		expect((await wire('GET', '/metrics', { token: tokens.send })).status).toBe(403);
		const answer = await wire('GET', '/metrics', {
			token: null,
			headers: { Authorization: `Bearer ${tokens.read}` },
		});
		expect(answer.status).toBe(200);
		expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
		const lines = answer.text.split('\n');
		expect(lines).toEqual(
			expect.arrayContaining([
				'mailctl_http_requests_total{operation="lists.page",status="200"} 1',
				'mailctl_http_requests_total{operation="lists.page",status="404"} 1',
				'mailctl_http_requests_total{operation="other",status="404"} 1',
				'mailctl_http_request_duration_seconds_bucket{operation="lists.page",le="+Inf"} 2',
				'mailctl_http_request_duration_seconds_count{operation="lists.page"} 2',
				'mailctl_http_requests_in_flight 1',
				'# TYPE mailctl_messages gauge',
				'mailctl_messages{state="sent"} 2',
				'mailctl_lists 0',
			]),
		);
		expect(lines.filter((line) => line === '# TYPE mailctl_messages gauge').length).toBe(1);
		expect(
			lines.every((line) => line === '' || /^(# (HELP|TYPE) .+|[a-z_]+(\{[^}]+\})? [0-9.e+-]+)$/.test(line)),
		).toBe(true);
	});

	it('logs one line for each request, without query, token or body', async () => {
		await wire('GET', '/sub/lists/?email=secret@example.com');
		await wire('GET', `/${tokens.admin}/sub`, { token: null });
		await wire('GET', `/sub/lists/${tokens.admin}/`);
		expect(deployment.lines).toEqual([
			{
				time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
				id: expect.any(String),
				method: 'GET',
				path: '/sub/lists/',
				status: 200,
				ms: expect.any(Number),
				bytes: 52,
				token: 'admin token',
				ip: '127.0.0.1',
				error: null,
			},
			expect.objectContaining({ path: '/…/sub', status: 404, token: null, error: 'not_found', bytes: 23 }),
			expect.objectContaining({ path: '/sub/lists/…/', status: 404, token: 'admin token' }),
		]);
	});
});
