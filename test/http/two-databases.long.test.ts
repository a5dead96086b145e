import { expect, it, onTestFinished } from 'vitest';
import { type Operation, operations } from '../../src/api/operations.js';
import { describePostgres } from '../support/postgres.js';
import { ask, type Deployment, deploy } from './server/serving.js';

const noon = Date.parse('2026-11-28T12:00:00Z') * 1_000;

async function deployOn(database: string): Promise<Deployment> {
	let ids = 0;
	const deployment = await deploy({
		database,
		newId: () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`,
		clock: { now: () => noon },
	});
	onTestFinished(deployment.close);
	return deployment;
}

type Made = [path: string, body: object];
const mail = { from: 'news@example.com', subject: 'S', text_body: 'T' };
const gone = { email: 'gone@example.com', reason: 'UNSUBSCRIBED' };
const people = ['Zoe', 'ann', 'Bea', 'Arger', 'a_b', 'a%b', "o'b"];

const records: Made[] = [
	...['t', 'T', 's'].map((name): Made => ['/sub/fields/', { name, variable: `v_${name}` }]),
	...['b', 'B', 'a', 'ä', 'z'].map((name): Made => ['/sub/lists/', { name, email_reason: 'R' }]),
	...people.flatMap((name, at) => {
		const person = { email: `${name}@example.com`, name, is_active: at % 2 === 0, meta: { v_t: at } };
		return [1, 2, 3].map((list): Made => [`/sub/lists/${list}/subscribers/`, person]);
	}),
	...['t', 'T', 's'].map((name): Made => ['/ext/templates/', { name, text_body: name }]),
	...['z@example.com', 'A@example.com'].map(
		(from_email): Made => ['/senders/', { from_email, full_name: 'N' }],
	),
	['/webhooks/', { url: 'https://hooks.example.com/', type: 'UNSUBSCRIBED' }],
	...[null, 3, 1, 2].map((list_id): Made => ['/ext/suppressions/', { ...gone, list_id }]),
	['/ext/suppressions/', { ...gone, reason: 'HARDBOUNCED' }],
	...['x', 'y', 'X'].map(
		(tag): Made => ['/message/send/', { ...mail, to: ['b@a.example', 'a@a.example'], tag }],
	),
	['/ext/mailings/', { ...mail, key: 'K', strict_vars: false, list_id: 3, lists: [3, 1, 2] }],
	...[1, 2, 3].map((list): Made => [`/ext/mailings/MADE/lists/${list}/`, {}]),
	['/ext/mailings/MADE/complete/', { position: 0 }],
	['/ext/mailings/MADE/release/', { expect_count: 4 }],
	['/ext/mailings/', { ...mail, key: 'k' }],
	...[2, 3, 1].map((list): Made => [`/ext/mailings/MADE/lists/${list}/`, {}]),
];

const uuid = '00000000-0000-4000-8000-000000000009';
const values = [
	'',
	...'%20 abc %00 a%00b 0 1 -1 %2B1 01 1.5 1e3 NaN Infinity null 2147483648 9007199254740993'.split(' '),
	...'9223372036854775808 -9223372036854775809 %D9%A3 %ED%A0%80 %FF %F0%9F%92%A9 %C3%A4 %27 %22'.split(' '),
	...'%25 _ %5C %5C%5C [] {} 1:2:3 true last k -date_created HARDBOUNCED queued API findings'.split(' '),
	...'2026-11-28 2026-11-28T12:00:00 2026-13-45 28.11.2026 31.02.2026 99.99.9999 0000-00-00'.split(' '),
	...'a@example.com A@EXAMPLE.COM %40 HARDBOUNCED:1:a HARDBOUNCED::a%00'.split(' '),
	...[uuid, uuid.toUpperCase(), '9'.repeat(400), 'x'.repeat(3_000)],
];

const ids = ['1', '3', '0', '-1', '01', 'abc', '%00', '2147483648', '9223372036854775808', '9'.repeat(400)];
const uuids = [uuid, uuid.toUpperCase(), 'abc', '%00', 'ffffffff-ffff-ffff-ffff-ffffffffffff'];

function pathsOf({ path }: Operation, placeholders: Readonly<Record<string, readonly string[]>>): string[] {
	const [placeholder, name = ''] = /\{(\w+)\}/.exec(path) ?? [];
	if (placeholder === undefined) return [path];
	return (placeholders[name] ?? []).flatMap((value) =>
		pathsOf({ path: path.replace(placeholder, value) } as Operation, placeholders),
	);
}

describePostgres('a server on PostgreSQL', (server) => {
	it('gives the same answers as one on SQLite, even for odd parameters and ids', async () => {
		const [sqlite, postgres] = [await deployOn(':memory:'), await deployOn(await server.createProject())];
		const made: string[] = [];
		for (const [path, body] of records) {
			const place = path.replace('MADE', made.at(-1) ?? '');
			const one = await ask(sqlite, 'POST', place, { body });
			const other = await ask(postgres, 'POST', place, { body });
			expect([place, other.status, other.text]).toEqual([place, one.status, one.text]);
			expect(one.status, place + one.text).toBeLessThan(300);
			made.push(...[...one.text.matchAll(/"id":"([\da-f-]{36})"/g)].map(([, id = '']) => id));
		}
		const known = { list_id: ['1'], id: ['1'], uuid: made.slice(-1), sha256: ['0'.repeat(64)] };
		const odd = { list_id: ids, id: ids, uuid: [...uuids, ...made], sha256: uuids };
		const reading = (Object.values(operations) as Operation[]).filter(
			({ method, isUnsafe, path }) =>
				method === 'GET' && !isUnsafe && path !== operations['ext.deliveries.secrets'].path,
		);
		const paths = reading.flatMap((route) => [
			...pathsOf(route, odd),
			...pathsOf(route, known).flatMap((path) =>
				Object.keys(route.query ?? {}).flatMap((name) => values.map((value) => `${path}?${name}=${value}`)),
			),
		]);
		const differing: object[] = [];
		for (const path of paths) {
			const [one, other] = await Promise.all([ask(sqlite, 'GET', path), ask(postgres, 'GET', path)]);
			if (one.status !== other.status || one.text !== other.text || one.status >= 500)
				differing.push({ path, SQLite: [one.status, one.text], PostgreSQL: [other.status, other.text] });
		}
		expect(differing).toEqual([]);
		expect(paths.length).toBeGreaterThan(2_500);
	});
});
