/**
 * CPU time of the server for requests without a token, which anybody can repeat at the speed of the network. Each is
 * compared with `/healthz` in the same run.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Serving, startServing } from '../support/serving.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

let sink: SmtpSink;
let serving: Serving;
/** Links of a mail by their path prefix: `/c/`, `/o/`, `/u/`, `/v/`. */
const links = new Map<string, string>();

beforeAll(async () => {
	sink = await startSmtpSink();
	serving = await startServing({ smtp: sink.port });
	const mail = {
		...{ from: 'news@example.com', to: ['ann@example.com'], subject: 'Hello', message_type: 'BULK' },
		html_body: `<p><a href="https://shop.example/">Shop</a> <a href="#view_url#">read</a> <a href="#unsubscribe_url#">leave</a>${'<p>text'.repeat(2_000)}`,
	};
	const sent = await serving.fetch('/message/send/', {
		method: 'POST',
		headers: { 'Content-Type': 'application/json' },
		body: JSON.stringify(mail),
	});
	expect(sent.status).toBe(200);
	await sink.until(1);
	const text = String(sink.received[0]?.raw).replaceAll('=\r\n', '');
	for (const [path = ''] of text.matchAll(/\/[couv]\/[\w-]{50,}(\.gif)?/g)) links.set(path.slice(0, 3), path);
	expect([...links.keys()].sort()).toEqual(['/c/', '/o/', '/u/', '/v/']);
});
afterAll(async () => {
	await serving.stop('SIGKILL');
	await sink.close();
});

function cpuMs(): number {
	const tasks = `/proc/${serving.process.pid}/task`;
	const times = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/schedstat`, 'latin1'));
	return times.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0) / 1e6;
}

type Request = [path: string, init?: RequestInit];

async function costOf(request: Request): Promise<number> {
	const requests = 200;
	let before = 0;
	for (let at = -requests; at < requests; at += 1) {
		if (at === 0) before = cpuMs();
		const [path, init] = request;
		await (await serving.fetch(path, { token: null, ...init })).arrayBuffer();
	}
	return (cpuMs() - before) / requests;
}

const get = (path = '', headers: Record<string, string> = {}): Request => [path, { headers }];
const post = (path = '', body = ''): Request => [path, { method: 'POST', body }];
const many = Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`X-${at}`, String(at)]));

const stored = 60;
const routes: [name: string, budget: number, request: () => Request][] = [
	['the root', 8, () => get('/')],
	['readiness', stored, () => get('/readyz')],
	['the OpenAPI document', 20, () => get('/openapi.json')],
	['metrics', 8, () => get('/metrics')],
	['a collection', 8, () => get('/sub/lists/')],
	['an unknown token', 20, () => get('/sub/lists/', { 'X-Secure-Token': 'mctl_x' })],
	['a long query', 40, () => get(`/sub/lists/?${'a=%41&'.repeat(1_000)}`)],
	['many headers', 20, () => get('/', many)],
	['a pixel', 8, () => get(links.get('/o/'))],
	['a link', stored, () => get(links.get('/c/'))],
	['the unsubscribe page', stored, () => get(links.get('/u/'))],
	['a mail in a browser', stored, () => get(links.get('/v/'))],
	['a long form', stored, () => post(links.get('/u/') ?? '', 'scope='.padEnd(60_000, 'a&'))],
	['a body', 20, () => post('/message/send/', '['.repeat(60_000))],
];

describe.skipIf(!existsSync('/proc/self/schedstat'))('a request without a token', () => {
	it.for(routes)('costs the server little CPU time: %s', async ([_, budget, request]) => {
		const cheapest = await costOf(get('/healthz'));
		expect((await costOf(request())) / cheapest).toBeLessThan(budget);
	});
});
