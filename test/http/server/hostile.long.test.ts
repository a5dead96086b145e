/** Thousands of hostile requests (`MAILCTL_REQUESTS`), after which the server must be unchanged. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.js';
import { type Hostile, hostileConnection, randomFrom } from './hostile-requests.js';
import { ask, type Deployment, deploy, tokens } from './serving.js';
import { dial, type WireAnswer } from './wire.js';

const wanted = Number(process.env['MAILCTL_REQUESTS'] ?? 10_000);
const keptBytes = 700;
const atOnce = 32;
const seed = 20_261_121;

let deployment: Deployment;
const statuses = new Map<number, number>();
const logged = { lines: 0, withSecrets: [] as string[], errors: [] as string[] };
const secrets = Object.values(tokens);
const holdsSecret = (text: string) => secrets.some((secret) => text.includes(secret.slice(5)));

beforeAll(async () => {
	const log = (line: object) => {
		const text = JSON.stringify(line);
		logged.lines += 1;
		if (holdsSecret(text)) logged.withSecrets.push(text);
		if ('level' in line || ('status' in line && Number(line.status) >= 500)) logged.errors.push(text);
	};
	const limits = { maxBytesInFlight: 4 * 1024 * 1024, maxRequests: 2000 };
	const times = { headersTimeoutMs: 1000, requestTimeoutMs: 1500, checkIntervalMs: 100, lingerMs: 50 };
	deployment = await deploy({ server: { log, limits: { ...limits, ...times } }, handler: { log } });
	await deployment.store.writes.putSettings({ values: { public_url: 'https://mail.example.com' }, now: 0 });
	for (const name of ['one', 'two'])
		await ask(deployment, 'POST', '/sub/lists/', { body: { name, email_reason: 'x' } });
});
afterAll(() => deployment.close());

async function attack({ bytes, ending }: Hostile): Promise<WireAnswer[]> {
	const wire = await dial(deployment.server.url);
	await new Promise<void>((resolve) => wire.socket.write(bytes, () => resolve()));
	if (ending === 'cut') {
		wire.destroy();
		return [];
	}
	const answers: WireAnswer[] = [];
	const method = bytes.subarray(0, 4).toString();
	for (let answer = await wire.read(method); answer !== null; answer = await wire.read(method))
		answers.push(answer);
	wire.destroy();
	expect(holdsSecret(wire.received())).toBe(false);
	return answers;
}

function judge(answer: WireAnswer): void {
	statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
	expect(answer.headers).not.toHaveProperty('x-injected');
	if (answer.headers['content-type'] === 'application/json' && answer.body !== '') JSON.parse(answer.body);
}

function heapInUse(): number {
	setFlagsFromString('--expose-gc');
	const collect: unknown = runInNewContext('gc');
	if (typeof collect === 'function') collect();
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
}

describe('a hostile client', () => {
	it('gets no 5xx and no secret in thousands of requests, and memory stays level', async () => {
		let connections = 0;
		let heapWhenWarm = 0;
		const work = async () => {
			while (logged.lines < wanted) {
				const hostile = hostileConnection(randomFrom(seed + connections++));
				for (const answer of await attack(hostile)) judge(answer);
				if (heapWhenWarm === 0 && logged.lines > wanted / 5) heapWhenWarm = heapInUse();
			}
		};
		await Promise.all(Array.from({ length: atOnce }, work));
		expect(logged.errors.slice(0, 3)).toEqual([]);
		expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
		expect(logged.withSecrets).toEqual([]);
		expect([...statuses.keys()]).toEqual(
			expect.arrayContaining([200, 201, 204, 400, 401, 403, 404, 405, 413, 414, 415, 417, 431]),
		);
		await eventually(() => expect(heapInUse() - heapWhenWarm).toBeLessThan(wanted * keptBytes));
		expect(await ask(deployment, 'GET', '/healthz')).toMatchObject({ status: 200 });
	});

	it.each([
		[
			'both length headers',
			(inner: string) =>
				`Content-Length: ${inner.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
		],
		[
			'both length headers, in reverse order',
			(inner: string) =>
				`Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`,
		],
		[
			'two Content-Length headers',
			(inner: string) => `Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
		],
		['a list in Content-Length', (inner: string) => `Content-Length: 0, ${inner.length}\r\n\r\n${inner}`],
		['an odd encoding', (inner: string) => `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`],
		[
			'a repeated transfer encoding',
			(inner: string) => `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${inner}`,
		],
		[
			'a chunk extension with a line end',
			(inner: string) => `Transfer-Encoding: chunked\r\n\r\n0;a\n\r\n\r\n${inner}`,
		],
		['a bare line feed', (inner: string) => `X: y\nContent-Length: 0\r\n\r\n${inner}`],
		['a space before the colon', (inner: string) => `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${inner}`],
	])('cannot smuggle a request with %s', async (_, frame) => {
		const body = '{"name":"smuggled","email_reason":"x"}';
		const head = (target: string) =>
			`POST ${target} HTTP/1.1\r\nHost: x\r\nX-Secure-Token: ${tokens.admin}\r\nContent-Type: application/json\r\n`;
		const inner = `${head('/sub/lists/')}Content-Length: ${body.length}\r\n\r\n${body}`;
		const wire = await dial(deployment.server.url);
		wire.write(`${head('/sub/fields/')}${frame(inner)}`);
		const answers = [await wire.read(), await wire.read()];
		expect(answers[0]?.status).toBe(400);
		expect(answers[1]).toBe(null);
		const { text } = await ask(deployment, 'GET', '/sub/lists/?page_size=1000');
		expect(text).not.toContain('smuggled');
	});
});
