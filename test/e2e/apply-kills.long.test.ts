import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli, isBuilt, makeHome, startProgram } from '../support/cli.js';
import { asked, ended, expectSound, seeded, timeLimit } from '../support/fault-points.js';
import { startKillingProxy } from '../support/killing-proxy.js';
import { describePostgres } from '../support/postgres.js';
import { type RunningServer, startServer } from '../support/running-server.js';

const kills = asked('MAILCTL_KILLS', 4);
const names = Array.from({ length: 12 }, (_, at) => `List ${at}`);
const declared = [
	'fields:',
	...['city', 'plan'].map((name) => `  - variable: ${name}\n    name: ${name}`),
	'lists:',
	...names.map((name) => `  - name: ${name}\n    email_reason: You read ${name}`),
	'webhooks:',
	...['OPENED', 'UNSUBSCRIBED'].map((type) => `  - type: ${type}\n    url: https://hooks.example.com/in`),
].join('\n');

let db: string;
let file: string;
let server: RunningServer;
let endings: (() => Promise<unknown>)[];

beforeEach(async () => {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-apply-'));
	db = join(folder, 'mail.db');
	file = join(folder, 'mail.yaml');
	await writeFile(file, declared);
	await here('--db', db, 'engine', 'init');
	server = await startServer(db, ['--no-worker']);
	endings = [server.stop];
});
afterEach(async () => {
	for (const end of endings.reverse()) await end();
});

async function here(...words: string[]) {
	const result = await cli(words, { env: { HOME: await makeHome() } });
	expect({ words, ...result }).toMatchObject({ code: 0 });
	return result.stdout;
}

async function expectOnce(): Promise<void> {
	const of = async (...words: string[]) =>
		JSON.parse(await here('--db', db, ...words, '-o', 'json')) as Record<string, unknown>[];
	expect((await of('lists', 'list')).map(({ name }) => name).sort()).toEqual([...names].sort());
	expect((await of('fields', 'list')).map(({ variable }) => variable).sort()).toEqual(['city', 'plan']);
	expect((await of('webhooks', 'list')).map(({ type }) => type).sort()).toEqual(['OPENED', 'UNSUBSCRIBED']);
	expect(await here('--db', db, 'apply', '-f', file, '-o', 'json')).toBe('[]\n');
	expectSound(db);
}

describe.skipIf(!isBuilt)('apply', () => {
	it(
		'that is killed at any request and run again creates each record once',
		async () => {
			const proxy = await startKillingProxy(server.baseUrl);
			endings.push(proxy.close);
			const random = seeded();
			const env = { HOME: await makeHome(), MAILCTL_TOKEN: server.token };
			for (let killed = 0; ; killed += 1) {
				const child = startProgram(['--base-url', proxy.baseUrl, 'apply', '-f', file, '-y'], env);
				const when = random() < 0.5 ? 'before' : 'after';
				const at = 1 + Math.floor(random() * 8);
				if (killed < kills) proxy.arm({ at, when, only: 'POST ', strike: () => child.kill('SIGKILL') });
				else proxy.disarm();
				const { code, stderr } = await ended(child);
				if (code === null) continue;
				expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
				break;
			}
			await expectOnce();
		},
		timeLimit,
	);

	it(
		'that loses the answer about a created list finds the list in its next run',
		async () => {
			const proxy = await startKillingProxy(server.baseUrl);
			endings.push(proxy.close);
			proxy.arm({
				at: 1,
				when: 'after',
				only: 'POST /ext/lists/',
				strike: (response) => response.destroy(),
			});
			const env = { HOME: await makeHome(), MAILCTL_TOKEN: server.token };
			const child = startProgram(['--base-url', proxy.baseUrl, 'apply', '-f', file, '-y'], env);
			expect(await ended(child)).toMatchObject({ code: 0 });
			await expectOnce();
		},
		timeLimit,
	);

	it(
		'that runs twice at once from two homes creates each record once',
		async () => {
			const proxy = await startKillingProxy(server.baseUrl);
			endings.push(proxy.close);
			const run = async (baseUrl: string) => {
				const env = { HOME: await makeHome(), MAILCTL_TOKEN: server.token };
				return ended(startProgram(['--base-url', baseUrl, 'apply', '-f', file, '-y'], env));
			};
			// The second run does all its work after the first run has planned and before the first run creates a
			// list.
			const second = new Promise((resolve, reject) =>
				proxy.arm({
					at: 1,
					when: 'before',
					only: 'POST /ext/lists/',
					strike: (response) => {
						void run(server.baseUrl)
							.then(resolve, reject)
							.finally(() => response.writeHead(503, { 'retry-after': '0' }).end());
					},
				}),
			);
			const first = await run(proxy.baseUrl);
			expect([await second, first]).toMatchObject([{ code: 0 }, { code: 0 }]);
			const lists = JSON.parse(await here('--db', db, 'lists', 'list', '-o', 'json')) as { id: number }[];
			expect(lists.map(({ id }) => id).sort((a, b) => a - b)).toEqual(names.map((_, at) => at + 1));
			await expectOnce();
		},
		timeLimit,
	);
});

/** Each run has its own home, because a lock refuses a second run in the same home. */
function fourAtOnce(make: () => Promise<string>) {
	it('creates each declared list exactly once if four runs start at once', async () => {
		const db = await make();
		const folder = await mkdtemp(join(tmpdir(), 'mailctl-apply-'));
		const file = join(folder, 'mail.yaml');
		await writeFile(file, declared);
		await here('--db', db, 'engine', 'init');
		const run = async () => {
			const child = startProgram(['--db', db, 'apply', '-f', file, '-y'], { HOME: await makeHome() });
			return ended(child);
		};
		for (const { code, stderr } of await Promise.all([run(), run(), run(), run()]))
			expect(code, stderr).toBe(0);
		const lists = JSON.parse(await here('--db', db, 'lists', 'list', '-o', 'json')) as { id: number }[];
		// An id is never reused, so a list that was created and deleted again would leave a gap.
		expect(lists.map(({ id }) => id)).toEqual(names.map((_, at) => at + 1));
	});
}

describe.skipIf(!isBuilt)('apply on SQLite', () => {
	fourAtOnce(async () => join(await mkdtemp(join(tmpdir(), 'mailctl-apply-')), 'mail.db'));
});

describePostgres('apply on PostgreSQL', ({ createDatabase }) => {
	fourAtOnce(createDatabase);
});
