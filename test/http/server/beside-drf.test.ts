/**
 * Random requests, asked of our server and of a service by Django REST framework itself: what differs must be one of
 * the differences that are meant. BESIDE_DRF_REQUESTS asks for more than the few hundred of every run, BESIDE_DRF_SEED
 * for others.
 */
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWitness, type Witness, witnessMissing } from '../../support/drf.js';
import { meantDifference, type Shown } from './drf-differences.js';
import { type Asked, randomRequest } from './drf-requests.js';
import { randomFrom } from './hostile-requests.js';
import { type Deployment, deploy, tokens } from './serving.js';

const wanted = Number(process.env['BESIDE_DRF_REQUESTS'] ?? 400);
const seed = Number(process.env['BESIDE_DRF_SEED'] ?? 20_261_122);
const missing = await witnessMissing();

export interface Answered {
	status: number;
	headers: Record<string, string>;
	text: string;
}

let deployment: Deployment;
let witness: Witness;

beforeAll(async () => {
	if (missing !== null) return;
	deployment = await deploy();
	witness = await startWitness({ pageSize: 100, maxPageSize: 1000 });
	await deployment.store.writes.putSettings({ values: { public_url: witness.baseUrl }, now: 0 });
	for (const one of [
		...['One', 'Two'].map((name) => post('/sub/lists/', { name, email_reason: 'asked' })),
		...['city', 'age'].map((variable) => post('/sub/fields/', { variable, name: variable })),
		...[1, 2, 3].map((n) =>
			post('/sub/lists/1/subscribers/', { email: `p${n}@example.com`, is_active: n > 1 }),
		),
		post('/webhooks/', { url: 'https://example.com/hook', type: 'OPENED' }),
	])
		await both(one);
});
afterAll(async () => {
	await deployment?.close();
	await witness?.stop();
});

function post(path: string, body: unknown): Asked {
	return {
		method: 'POST',
		path,
		token: 'good',
		headers: { 'Content-Type': 'application/json' },
		raw: JSON.stringify(body),
	};
}

function ask(
	base: string,
	token: string,
	{ method, path, raw, headers, ...asked }: Asked,
): Promise<Answered> {
	const sent = asked.token === 'good' ? token : asked.token;
	return new Promise((resolve) => {
		const outgoing = httpRequest(
			`${base}${path}`,
			{
				method,
				agent: false,
				headers: {
					...headers,
					...(sent !== null && { 'X-Secure-Token': sent }),
					'Content-Length': Buffer.byteLength(raw ?? ''),
				},
			},
			(response) => {
				const chunks: Buffer[] = [];
				response
					.on('data', (chunk: Buffer) => chunks.push(chunk))
					.on('end', () =>
						resolve({
							status: response.statusCode ?? 0,
							headers: Object.fromEntries(
								['allow', 'content-type', 'www-authenticate'].map((name) => [
									name,
									String(response.headers[name] ?? ''),
								]),
							),
							text: Buffer.concat(chunks).toString(),
						}),
					);
			},
		);
		outgoing
			.on('error', (error) => resolve({ status: 0, headers: {}, text: `${base} ${error.message}` }))
			.end(raw);
	});
}

async function both(asked: Asked): Promise<{ ours: Answered; theirs: Answered }> {
	const isHead = asked.method === 'HEAD';
	const [ours, theirs] = await Promise.all([
		ask(deployment.server.url, tokens.admin, asked),
		// Its server sends a body to HEAD, which no client can read.
		ask(witness.baseUrl, witness.token, isHead ? { ...asked, method: 'GET' } : asked),
	]);
	return { ours, theirs: isHead ? { ...theirs, text: '' } : theirs };
}

/** Comparable: what differs from run to run is masked, complaints have no order. */
function shown({ status, headers, text }: Answered): Shown {
	const masked = text
		.replace(/"date_created":"[^"]*"/g, '"date_created":""')
		.replace(/"id":"[0-9a-f-]{36}"/g, '"id":""')
		// Renaming a field renames its key in every subscriber; the witness leaves it.
		.replace(/"meta":\{[^}]*\}/g, '"meta":{}')
		.replace(/JSON parse error - .*"/, 'JSON parse error"');
	return {
		status,
		headers,
		body: headers['content-type'] === 'application/json' ? JSON.parse(masked || 'null') : masked,
	};
}

/** After an answer that differs as it is meant to, both hold the same again: a row more or less, and its id, go. */
async function resync(asked: Asked, ours: Answered, theirs: Answered): Promise<void> {
	const created = (answer: Answered) =>
		answer.status === 201 ? (JSON.parse(answer.text) as { id: number }).id : null;
	const [path = ''] = asked.path.split('?');
	const sides = [
		[deployment.server.url, tokens.admin, created(ours)],
		[witness.baseUrl, witness.token, created(theirs)],
	] as const;
	const isOne = asked.method !== 'POST';
	const collection = `${path.replace(/\/$/, '').replace(isOne ? /\/[^/]*$/ : /$^/, '')}/`;
	const unique = `u${Math.random().toString(36).slice(2, 10)}`;
	const good = goodBody(collection, unique);
	if (asked.method === 'POST' && sides.some(([, , id]) => id !== null)) {
		for (const [base, token, id] of sides) {
			const made = id ?? created(await ask(base, token, post(collection, good)));
			await ask(base, token, { method: 'DELETE', path: `${collection}${made}/`, token: 'good', headers: {} });
		}
	} else if (asked.method === 'PUT' || asked.method === 'PATCH')
		for (const [base, token] of sides)
			await ask(base, token, { ...post(path.replace(/\/?$/, '/'), good), method: 'PUT' });
}

function goodBody(collection: string, unique: string): object {
	if (collection.endsWith('/subscribers/'))
		return { email: `${unique}@example.com`, name: '', meta: {}, is_active: true };
	if (collection === '/sub/fields/') return { variable: unique, name: 'x' };
	if (collection === '/webhooks/')
		return { url: 'https://example.com/', type: 'OPENED', is_auth_enabled: false, login: '', password: '' };
	return { name: 'x', email_reason: 'x' };
}

describe.skipIf(missing !== null)('beside Django REST framework', () => {
	it(`answers ${wanted} random requests alike, but where it means to differ`, {
		timeout: 300_000 + wanted * 60,
	}, async () => {
		const random = randomFrom(seed);
		const found: unknown[] = [];
		for (let n = 0; n < wanted && found.length < 10; n++) {
			const asked = randomRequest(random);
			const { ours, theirs } = await both(asked);
			const [a, b] = [shown(ours), shown(theirs)];
			if (JSON.stringify(sorted(a)) === JSON.stringify(sorted(b))) continue;
			if (meantDifference(asked, a, b) === null) found.push({ n, asked, ours: a, theirs: b });
			await resync(asked, ours, theirs);
		}
		expect(found).toEqual([]);
	});
});

function sorted(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(sorted);
	if (typeof value !== 'object' || value === null) return value;
	return Object.fromEntries(
		Object.entries(value)
			.sort(([x], [y]) => (x < y ? -1 : 1))
			.map(([key, inner]) => [key, sorted(inner)]),
	);
}
