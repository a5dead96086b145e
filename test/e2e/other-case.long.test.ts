// A service that compares addresses case-sensitively, as Django does by default: each person still has one row.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cli } from '../support/cli.js';
import { type DjangoService, djangoMissing, startDjango } from '../support/drf.js';

const missing = await djangoMissing();

describe.skipIf(missing !== null)(
	`on a case-sensitive service${missing === null ? '' : ` (${missing})`}`,
	() => {
		let django: DjangoService;
		let home: string;
		beforeAll(async () => {
			django = await startDjango();
			home = await mkdtemp(join(tmpdir(), 'mailctl-case-'));
			await call('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
			const rows = Array.from({ length: 35 }, (_, at) => `P${at}@Example.com,P${at}`);
			await writeFile(join(home, 'people.csv'), `email,name\n${rows.join('\n')}\n`);
			await call('subscribers', 'import', join(home, 'people.csv'), '-l', '1');
		});
		afterAll(() => django?.stop());

		const call = (...words: string[]) =>
			cli(['--base-url', django.baseUrl, '--no-input', ...words], {
				env: { HOME: home, MAILCTL_TOKEN: django.token },
			});
		const json = async (...words: string[]): Promise<unknown> => {
			const { code, stdout, stderr } = await call(...words, '-o', 'json');
			expect({ words, code, stderr }).toMatchObject({ code: 0 });
			return JSON.parse(stdout);
		};
		const all = () => json('subscribers', 'list', '-l', '1', '--all');

		it('"create --if-exists" finds the subscriber even if the case of the address differs', async () => {
			const words = ['subscribers', 'create', '-l', '1', '--email', 'p3@EXAMPLE.com', '--name', 'Three'];
			expect(await json(...words, '--if-exists', 'update')).toMatchObject({
				email: 'P3@Example.com',
				name: 'Three',
			});
			expect(await json(...words, '--if-exists', 'skip')).toMatchObject({
				email: 'P3@Example.com',
				name: 'Three',
			});
			expect(await all()).toHaveLength(35);
		});

		it('get and find ignore the case of an address', async () => {
			expect(await json('subscribers', 'get', 'p4@example.com', '-l', '1')).toMatchObject({ name: 'P4' });
			expect(await json('subscribers', 'find', 'p4@example.com')).toMatchObject([{ name: 'P4', list_id: 1 }]);
			expect(await call('subscribers', 'get', '4@example.com', '-l', '1')).toMatchObject({ code: 3 });
		});

		it('an import updates the subscriber even if the case of the address differs, and adds no row', async () => {
			await writeFile(join(home, 'few.csv'), 'email,name\np5@example.com,Five\n');
			expect(await json('subscribers', 'import', join(home, 'few.csv'), '-l', '1')).toMatchObject({
				created: 0,
				updated: 1,
			});
			expect(await all()).toHaveLength(35);
		});
	},
);
