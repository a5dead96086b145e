/**
 * An import into another service whose process is killed at random moments and resumed. The check reads that service.
 * `MAILCTL_KILL_ROWS` and `MAILCTL_KILLS` set another size.
 */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cli, isBuilt, makeHome } from '../support/cli.js';
import { type DjangoService, djangoMissing, startDjango } from '../support/drf.js';
import { asked, timeLimit } from '../support/fault-points.js';
import {
	expectedPeople,
	expectImported,
	importKilled,
	writeRows,
	writeStanding,
} from '../support/import-file.js';
import { startKillingProxy } from '../support/killing-proxy.js';

const missing = await djangoMissing();
const rows = asked('MAILCTL_KILL_ROWS', 600);
const kills = asked('MAILCTL_KILLS', 3);

describe.skipIf(!isBuilt || missing !== null)(
	`an import to a Django service (${missing ?? 'django'})`,
	() => {
		it(
			'stores each person once despite kills, throttling and lost answers',
			async () => {
				const home = await makeHome();
				const path = join(await mkdtemp(join(tmpdir(), 'mailctl-kills-')), 'people.csv');
				const django = await startDjango({ pageSize: 1_000, maxPageSize: 1_000, busy: 3 });
				onTestFinished(django.stop);
				const proxy = await startKillingProxy(django.baseUrl);
				onTestFinished(proxy.close);
				const env = { HOME: home, MAILCTL_TOKEN: django.token };
				const direct = ['--base-url', django.baseUrl];
				await createList(django);
				await writeStanding(`${path}.standing`, rows);
				const standing = ['subscribers', 'import', `${path}.standing`, '-l', '1'];
				const { code, stderr } = await cli([...direct, ...standing], { env });
				expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
				await writeRows(path, rows);
				const argv = ['--base-url', proxy.baseUrl, 'subscribers', 'import', path, '-l', '1', '-o', 'json'];
				const { totals, killed } = await importKilled(argv, env, {
					proxy,
					kills,
					span: Math.floor((2 * rows) / (kills + 1)),
				});
				expect(killed).toBeGreaterThan(kills / 2);
				await expectImported(path, rows, totals);
				const people = await peopleOf(django);
				expect(people.length).toBe(expectedPeople(rows));
				expect(new Set(people.map(({ email }) => email)).size).toBe(people.length);
				expect(
					people.filter(({ email, name }) => email !== `p${name.slice('Name '.length)}@example.com`),
				).toEqual([]);
			},
			timeLimit,
		);
	},
);

/** Does not use mailctl, which reports after a busy answer that the list may have been created. */
async function createList(django: DjangoService): Promise<void> {
	const headers = { 'X-Secure-Token': django.token, 'Content-Type': 'application/json' };
	const body = JSON.stringify({ name: 'Readers', email_reason: 'r' });
	do await fetch(`${django.baseUrl}/sub/lists/`, { method: 'POST', headers, body });
	while ((await pageOf(django, '/sub/lists/')).results.length === 0);
}

/** Does not use mailctl, and repeats the request after a busy answer. */
async function pageOf<T>(
	{ baseUrl, token }: DjangoService,
	path: string,
): Promise<{ next: string | null; results: T[] }> {
	let answer: Response;
	do answer = await fetch(`${baseUrl}${path}`, { headers: { 'X-Secure-Token': token } });
	while (answer.status !== 200);
	return (await answer.json()) as { next: string | null; results: T[] }; // a page of the service document
}

async function peopleOf(django: DjangoService): Promise<{ email: string; name: string }[]> {
	const people: { email: string; name: string }[] = [];
	for (let page = 1; ; page += 1) {
		const path = `/sub/lists/1/subscribers/?page_size=1000&page=${page}`;
		const body = await pageOf<(typeof people)[number]>(django, path);
		people.push(...body.results);
		if (body.next === null) return people;
	}
}
