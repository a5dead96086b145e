/** Malformed and hostile requests; the same seed gives the same requests. */
import { operations } from '../../../src/api/operations.js';
import { tokens } from './serving.js';

/** Pseudorandom numbers in [0, 1) from the seed (mulberry32). */
export function randomFrom(seed: number): () => number {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let mixed = Math.imul(state ^ (state >>> 15), state | 1);
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}

export interface Hostile {
	bytes: Buffer;
	count: number;
	ending: 'wait' | 'cut';
}

export function hostileConnection(random: () => number): Hostile {
	const one = maker(random);
	if (random() < 0.05)
		return { bytes: one.request('HEAD', 'Connection: close\r\n'), count: 1, ending: 'wait' };
	const count = 1 + Math.floor(random() * 40);
	const requests = Array.from({ length: count }, () => one.request());
	const last = Buffer.from('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
	const whole = Buffer.concat([...requests, last]);
	if (random() < 0.1) {
		const cut = whole.subarray(0, Math.floor(random() * whole.length));
		return { bytes: cut, count, ending: 'cut' };
	}
	return { bytes: whole, count: count + 1, ending: 'wait' };
}

const table = Object.values(operations);
const sparing = table.filter(({ method, path }) => method !== 'DELETE' && !path.endsWith('/clear/'));
const ownPaths = '/ /healthz /readyz /metrics /openapi.json /o/abc.gif /c/x /u/y /v/z'.split(' ');
const known = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'];
const unknown = ['PROPFIND', 'get', 'FETCH', 'PURGE'];
const uuid = '7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11';
const ids = [
	'1',
	'2',
	'3',
	'0',
	'-1',
	'999999',
	'9007199254740993',
	'abc',
	'%00',
	'%31',
	'1e3',
	uuid,
	'%0d%0aX-Injected:%201',
	'..',
	'%2e%2e',
	'%ff',
	'é',
	'1;x=1',
];
const parameters = (
	'page page_size email__icontains email__exact is_active date_from date_to campaign_unique_id ' +
	'event_types status to since submission campaign tag human __proto__ x'
).split(' ');
const words = [
	'1',
	'0',
	'-1',
	'last',
	'True',
	'null',
	'',
	'%00',
	'%0d%0aX-Injected:%201',
	'%ff%fe',
	'%',
	'%zz',
	"'%20OR%201=1--",
	'01.02.2026',
	'31.02.2026',
	uuid,
	'SENT',
	'%F0%9F%98%80',
	'a'.repeat(300),
	'\\',
	'[]',
	'2026-01-01T00:00:00.000000',
];
const types = [
	'application/json',
	'application/json; charset=utf-8',
	'text/plain',
	'multipart/form-data; boundary=x',
	'*/*',
	'',
	'application/json\r\nX-Twice: 1',
	'\xff\xfe',
	'a'.repeat(200),
];
const secrets = [
	...Array.from({ length: 40 }, () => tokens.admin),
	tokens.read,
	tokens.send,
	'wrong',
	'',
	'a'.repeat(600),
	`${tokens.admin} `,
	'\xe9',
];
const keys = [
	'name',
	'email_reason',
	'email',
	'meta',
	'is_active',
	'variable',
	'url',
	'type',
	'login',
	'password',
	'is_auth_enabled',
	'from',
	'to',
	'subject',
	'text_body',
	'html_body',
	'template_unique_id',
	'cc',
	'headers',
	'context',
	'tag',
	'list_id',
	'campaign_unique_id',
	'key',
	'on_conflict',
	'reactivate',
	'columns',
	'cells',
	'recipients',
	'expect_count',
	'patch',
	'set',
	'unset',
	'__proto__',
	'constructor',
	'toString',
	'',
];
const texts = [
	'a@example.com',
	'news@example.com',
	'https://example.com/',
	'OPENED',
	'BULK',
	'News',
	'',
	' ',
	'\0',
	'\ud800',
	'\r\nBcc: x@example.com',
	'#name#',
	'<script>',
	'é😀',
	'{"city":"Oslo"}',
	uuid,
	'x'.repeat(1000),
	"'; DROP TABLE lists;--",
	'HTTP/1.1 200 OK\r\n\r\n',
];

const usual: readonly object[] = [
	{ name: 'News', email_reason: 'x' },
	{ email: 'a@example.com' },
	{ variable: 'town', name: 'Town' },
	{ url: 'https://example.com/', type: 'OPENED' },
	{ from: 'news@example.com', to: ['a@example.com'], subject: 's', text_body: 't' },
	{ name: 'T', text_body: 't' },
	{ key: 'k', list_id: 1 },
	{ key: 'k', list_id: 1, reactivate: true },
	{ key: 'm', from: 'news@example.com', subject: 's', text_body: 't' },
	{ columns: ['email'], cells: ['a@example.com', null] },
	{ recipients: [{ to: 'a@example.com' }] },
];

function maker(random: () => number) {
	const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T; // the list is never empty
	const chance = (probability: number) => random() < probability;

	const someId = () => String(1 + Math.floor(random() * 20));
	const path = (template: string) => {
		if (chance(0.08)) return pick(ownPaths);
		if (chance(0.04))
			return `/${Array.from({ length: 8 }, () => String.fromCharCode(0x21 + random() * 0xde)).join('')}`;
		if (chance(0.02)) return `/${'a/'.repeat(random() * 5000)}`;
		const filled = template.replace(/\{(\w+)\}/g, (_, name) =>
			chance(0.9) ? (name === 'uuid' ? uuid : someId()) : pick(ids),
		);
		return chance(0.1) ? filled.slice(0, -1) : filled;
	};
	const query = () => {
		if (chance(0.6)) return '';
		const parts = Array.from(
			{ length: 1 + Math.floor(random() * 4) },
			() => `${pick(parameters)}=${pick(words)}`,
		);
		return `?${parts.join('&')}`;
	};
	const value = (depth: number): unknown => {
		const kind = random();
		if (kind < 0.5) return pick(texts);
		if (kind < 0.65) return pick([0, 1, -1, 1.5, 1e308, 2 ** 53, true, false, null]);
		if (depth > 4) return null;
		if (kind < 0.8) return Array.from({ length: random() * 4 }, () => value(depth + 1));
		return object(depth + 1);
	};
	const object = (depth: number) => {
		const entries = Array.from(
			{ length: 1 + Math.floor(random() * 6) },
			() => [pick(keys), value(depth)] as const,
		);
		return Object.fromEntries(entries);
	};
	const body = (): Buffer => {
		const kind = random();
		if (kind < 0.4) return Buffer.from(JSON.stringify({ ...pick(usual), ...(chance(0.5) && object(0)) }));
		if (kind < 0.7) return Buffer.from(JSON.stringify(object(0)));
		if (kind < 0.75) return Buffer.from('['.repeat(random() * 20_000));
		if (kind < 0.8) return Buffer.alloc(random() * 50_000, 0x20);
		if (kind < 0.85) return Buffer.from(Array.from({ length: 40 }, () => Math.floor(random() * 256)));
		if (kind < 0.9) return Buffer.from(JSON.stringify(object(0)).slice(0, -1));
		if (kind < 0.95) return Buffer.from(JSON.stringify(value(0)));
		return Buffer.alloc(0);
	};
	const headers = () => {
		const lines = ['Host: x'];
		if (chance(0.005)) lines.pop();
		if (chance(0.95)) lines.push(`X-Secure-Token: ${pick(secrets)}`);
		if (chance(0.02)) lines.push(`X-Secure-Token: ${tokens.admin}`);
		lines.push(`Content-Type: ${chance(0.85) ? 'application/json' : pick(types)}`);
		if (chance(0.1)) lines.push(`Idempotency-Key: ${pick(['k', 'k2', 'a b', '\xe9', 'x'.repeat(300)])}`);
		if (chance(0.01)) lines.push(`Expect: ${pick(['100-continue', 'x'])}`);
		if (chance(0.03)) lines.push(`Authorization: Bearer ${pick(secrets)}`);
		if (chance(0.02)) lines.push(`X-Forwarded-For: ${pick(['1.2.3.4', 'x', "';--", '::1'])}`);
		if (chance(0.01)) lines.push(`X-Long: ${'a'.repeat(random() * 18_000)}`);
		if (chance(0.003))
			lines.push(
				pick([
					'Bad Header: x',
					': x',
					'X',
					' folded: y',
					'X: a\0b',
					'Upgrade: websocket',
					'Connection: upgrade',
					'Content-Encoding: gzip',
				]),
			);
		return lines;
	};
	const chunked = (content: Buffer): Buffer => {
		const size = chance(0.01) ? pick(['zz', '-1', 'fffffffffffffffff', '0x1']) : content.length.toString(16);
		return content.length === 0
			? Buffer.from('0\r\n\r\n')
			: Buffer.concat([Buffer.from(`${size}\r\n`), content, Buffer.from('\r\n0\r\n\r\n')]);
	};
	const framed = (content: Buffer): { lines: string[]; octets: Buffer } => {
		const kind = random();
		const length = `Content-Length: ${content.length}`;
		if (kind < 0.86) return { lines: [length], octets: content };
		if (kind < 0.88) return { lines: ['Content-Length: 20000000'], octets: content };
		if (kind < 0.985) return { lines: ['Transfer-Encoding: chunked'], octets: chunked(content) };
		if (kind < 0.988) return { lines: [length, 'Transfer-Encoding: chunked'], octets: chunked(content) };
		if (kind < 0.991) return { lines: [length, `Content-Length: ${content.length + 1}`], octets: content };
		if (kind < 0.994)
			return {
				lines: [
					`Transfer-Encoding: ${pick(['chunked, identity', 'xchunked', '\tchunked', 'gzip, chunked'])}`,
				],
				octets: chunked(content),
			};
		if (kind < 0.998)
			return {
				lines: [`Content-Length: ${pick(['-1', '+3', '0x10', '1e9', '99999999999999999999'])}`],
				octets: content,
			};
		return { lines: [], octets: content };
	};
	const request = (fixed?: string, more = ''): Buffer => {
		const route = pick(chance(0.9) ? sparing : table);
		const other = pick(chance(0.95) ? known : unknown);
		const method = fixed ?? (chance(0.85) ? route.method : other);
		const hasBody = ['POST', 'PUT', 'PATCH'].includes(method) || chance(0.05);
		const { lines, octets } =
			hasBody && fixed === undefined ? framed(body()) : { lines: [], octets: Buffer.alloc(0) };
		const version = chance(0.003) ? pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'x']) : 'HTTP/1.1';
		const head = `${method} ${path(route.path)}${query()} ${version}\r\n${[...headers(), ...lines].join('\r\n')}\r\n${more}\r\n`;
		return Buffer.concat([Buffer.from(head, 'latin1'), octets]);
	};
	return { request };
}
