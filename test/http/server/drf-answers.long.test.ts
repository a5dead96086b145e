/** Compares the server with recorded answers of Django REST framework 3.14 to the same requests, over real sockets. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, ask, type Deployment, deploy, tokens } from './serving.js';

interface Recorded {
	name: string;
	seed?: boolean;
	differs?: string;
	request: { method: string; path: string; headers: Record<string, string>; body?: unknown; raw?: string };
	response: { status: number; headers: Record<string, string>; body: unknown };
}

const file = join(import.meta.dirname, '../../fixtures/drf-answers.json');
const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded[];
const seed = recorded.filter((one) => one.seed === true);

const ownWay: Readonly<Record<string, string>> = {
	'GET Accept text/html': 'JSON is all there is, whatever is asked for',
	'GET Accept application/xml': 'JSON is all there is, whatever is asked for',
	'filter: is_active=TRUE': 'only True, False, true, false, 1 and 0 filter',
	'PUT list: only name': 'a PUT of a list keeps what it does not name',
	'PUT list: nothing': 'a PUT of a list keeps what it does not name',
	'wrong method: TRACE': 'fetch cannot ask it; see protocol.long.test.ts',
};

const needed = ['This field is required.'];

const alsoSaid: Readonly<Record<string, object>> = {
	'send: nothing': { subject: needed, text_body: needed, html_body: needed },
	'send: no body and a wrong address': { text_body: needed, html_body: needed },
};

const cases = recorded.filter(
	({ seed: isSeed, differs, name }) => isSeed === undefined && differs === undefined && !(name in ownWay),
);

let deployment: Deployment;
let isClean = false;

async function perform({ request }: Recorded): Promise<Answer> {
	const { 'X-Secure-Token': token = null, ...headers } = request.headers;
	return ask(deployment, request.method, request.path, {
		token: token === 'django-token' ? tokens.admin : token,
		headers,
		...('body' in request && { body: request.body }),
		...(request.raw !== undefined && { raw: request.raw }),
	});
}

async function start(): Promise<void> {
	deployment = await deploy();
	await deployment.store.writes.putSettings({ values: { public_url: 'http://testserver' }, now: 0 });
	for (const one of seed) await perform(one);
	isClean = true;
}

function masked(text: string): string {
	return text
		.replace(/"date_created":"[^"]*"/g, '"date_created":"<date>"')
		.replace(/"id":"[0-9a-f-]{36}"/g, '"id":"<uuid>"')
		.replace(/JSON parse error - .*"/, 'JSON parse error - …"');
}

function allowed(header: string | undefined, path: string): string | null {
	return header === undefined ? null : path.endsWith('/run_test/') ? header.replace(' HEAD,', '') : header;
}

beforeAll(start);
afterAll(() => deployment.close());

describe('the recorded answers of Django', () => {
	test('include more than 500 cases', () => expect(cases.length).toBeGreaterThan(500));

	test.each(cases)('equal the server’s: case %#, $request.method $request.path: $name', async (one) => {
		if (!isClean) {
			await deployment.close();
			await start();
		}
		const answer = await perform(one);
		isClean = answer.status >= 300 || ['GET', 'HEAD'].includes(one.request.method);
		const { status, headers, body } = one.response;
		expect(answer.status).toBe(status);
		expect(answer.headers.get('allow')).toBe(allowed(headers['Allow'], one.request.path));
		expect(answer.headers.get('content-type')).toBe(headers['Content-Type'] ?? null);
		expect(answer.headers.get('www-authenticate')).toBe(headers['WWW-Authenticate'] ?? null);
		const text = masked(answer.text);
		if (body === '') expect(text).toBe('');
		else if (status === 400)
			expect(JSON.parse(text)).toEqual({
				...JSON.parse(masked(JSON.stringify(body))),
				...alsoSaid[one.name],
			});
		else expect(text).toBe(JSON.stringify(body));
		if (answer.text !== '') expect(answer.text).toBe(JSON.stringify(answer.body));
	});
});
