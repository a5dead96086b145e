import { readdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/api/datetime.js';
import type { Meta } from '../../../../src/api/records.js';
import { connect } from '../../../../src/cli/connect.js';
import type { Connect } from '../../../../src/cli/frame/connection.js';
import { openStore } from '../../../../src/store/open.js';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';

const people = [
	'email,name,is_active,disable_reason,city,meta',
	'ann@example.com,Ann,true,,Oslo,',
	'bob@example.com,"Bob, ""B""",false,UNSUBSCRIBED,,"{""age"":7}"',
	'',
].join('\n');

async function withList(): Promise<Project> {
	const project = await makeProject();
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	for (const variable of ['city', 'age'])
		await project.json(['fields', 'create', '--variable', variable, '--name', variable]);
	return project;
}

describe('mailctl subscribers export', () => {
	let project: Project;
	beforeEach(async () => {
		project = await withList();
		const path = await project.file('people.csv', people);
		await project.json(['subscribers', 'import', path, '-l', '1']);
	});
	const words = (...more: string[]) => ['subscribers', 'export', '-l', '1', ...more];
	const written = (name: string) => readFile(join(project.folder, name), 'utf8');

	it('writes the columns that an import reads, with nested values inside meta', async () => {
		const { code, stdout, stderr } = await project.run(words());
		expect({ code, stderr }).toEqual({ code: 0, stderr: 'exported 2 subscribers\n' });
		expect(stdout).toBe(
			[
				'email,name,is_active,disable_reason,city,age,meta',
				'ann@example.com,Ann,true,,Oslo,,',
				'bob@example.com,"Bob, ""B""",false,UNSUBSCRIBED,,,"{""age"":7}"',
				'',
			].join('\n'),
		);
	});

	it('writes NDJSON, or one JSON document', async () => {
		const ann = {
			...{ email: 'ann@example.com', name: 'Ann', is_active: true, disable_reason: null },
			meta: { city: 'Oslo' },
		};
		const bob = {
			...{ email: 'bob@example.com', name: 'Bob, "B"', is_active: false, disable_reason: 'UNSUBSCRIBED' },
			meta: { age: 7 },
		};
		const lines = (await project.run(words('--format', 'ndjson'))).stdout;
		expect(lines).toBe(`${JSON.stringify(ann)}\n${JSON.stringify(bob)}\n`);
		expect(JSON.parse((await project.run(words('-o', 'json'))).stdout)).toEqual([ann, bob]);
		expect((await project.run(words('-o', 'ndjson'))).stdout).toBe(lines);
	});

	it('filters as the list command does', async () => {
		const emails = async (...more: string[]) =>
			(await project.run(words('--fields', 'email', ...more))).stdout.trimEnd().split('\n');
		expect(await emails('--active')).toEqual(['email', 'ann@example.com']);
		expect(await emails('--inactive')).toEqual(['email', 'bob@example.com']);
		expect(await emails('--email-contains', 'B@')).toEqual(['email', 'bob@example.com']);
		expect(await emails('--where', 'meta.city=Oslo')).toEqual(['email', 'ann@example.com']);
		expect((await project.run(words('--email-contains', 'none', '-o', 'json'))).stdout).toBe('[]\n');
		expect((await project.run(words('--email-contains', 'none', '--exit-empty'))).code).toBe(8);
	});

	it('writes only the chosen columns, and rejects an unknown column', async () => {
		const some = await project.run(words('--fields', 'id,meta.city,source,meta'));
		expect(some.stdout).toBe('id,city,source,meta\n1,Oslo,IMPORT,\n2,,IMPORT,"{""age"":7}"\n');
		await project.json(['fields', 'update', 'city', '--name', 'Home town']);
		for (const named of ['Home town', 'meta.HOME TOWN'])
			expect((await project.run(words('--fields', `id,${named}`))).stdout).toBe('id,city\n1,Oslo\n2,\n');
		const { code, stderr } = await project.run(words('--fields', 'cite'));
		expect({ code, stderr: stderr.split('\n')[0] }).toEqual({
			code: 2,
			stderr: 'error: --fields: unknown field "cite"',
		});
	});

	it('creates a file that only its owner can read, in the format of its extension', async () => {
		const file = join(project.folder, 'out.ndjson');
		expect(await project.json(words(file))).toEqual({ list_id: 1, file, format: 'ndjson', exported: 2 });
		expect((await written('out.ndjson')).split('\n')).toHaveLength(3);
		expect((await stat(file)).mode & 0o777).toBe(0o600);
		expect((await readdir(project.folder)).filter((name) => name.includes('.part'))).toEqual([]);
	});

	it('replaces a file only with --force, follows a symbolic link, and never replaces a database', async () => {
		const file = await project.file('out.csv', 'mine');
		const { code, stderr } = await project.run(words(file));
		expect({ code, stderr }).toEqual({
			code: 2,
			stderr: `error: ${file} exists already\nhint: --force replaces it\n`,
		});
		expect(await written('out.csv')).toBe('mine');
		await symlink(file, join(project.folder, 'link.csv'));
		expect((await project.run(words(join(project.folder, 'link.csv'), '--force'))).code).toBe(0);
		const own = await project.run(words(project.db, '--force'));
		expect([own.code, own.stderr]).toEqual([2, expect.stringContaining('is a SQLite database')]);
		expect(await written('out.csv')).toMatch(/^email,/);
		expect(await readFile(join(project.folder, 'link.csv'), 'utf8')).toBe(await written('out.csv'));
	});

	it('exits with 74 on a full disk', async () => {
		expect(await project.run(words('/dev/full'))).toMatchObject({ code: 74, stdout: '' });
	});

	it('leaves no file if it is interrupted', async () => {
		const interrupts = new AbortController();
		const file = join(project.folder, 'cut.csv');
		interrupts.abort(new Error('stop'));
		const { code } = await project.run(words(file), { interrupts: interrupts.signal });
		expect(code).not.toBe(0);
		expect((await readdir(project.folder)).filter((name) => name.includes('cut.csv'))).toEqual([]);
	});

	it('escapes spreadsheet formulas on request', async () => {
		const path = await project.file(
			'x.csv',
			'email,name,city\nx@example.com,=cmd(),@sum\n-y@example.com,+1,a=b\n',
		);
		await project.json(['subscribers', 'import', path, '-l', '1']);
		const { stdout } = await project.run(
			words('--safe-csv', '--fields', 'email,name,city', '--email-contains', 'y@'),
		);
		expect(stdout).toBe("email,name,city\n'-y@example.com,'+1,a=b\n");
		const refused = await project.run(words('--safe-csv', '--format', 'json'));
		expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('needs csv') });
	});

	it('writes the same file if the server returns subscribers as records instead of tuples', async () => {
		const older: Connect = async (target, dependencies) => {
			const connection = await connect(target, dependencies);
			const { ext, ...rest } = await connection.api.capabilities();
			const { tuples: _, ...others } = ext;
			const capabilities = async () => ({ ...rest, ext: others });
			return { ...connection, api: { ...connection.api, capabilities } };
		};
		for (const form of [[], ['--format', 'json'], ['--fields', 'id,date_created,meta']]) {
			const { stdout } = await project.run(words(...form));
			expect(await project.run(words(...form), { connect: older })).toMatchObject({ code: 0, stdout });
		}
	});

	it('writes the same bytes from a mailctl server as from its database', async () => {
		const server = await startServer(project.db);
		const target = ['--base-url', server.baseUrl, '--token-file', server.tokenFile];
		const forms = [[], ['--format', 'ndjson']];
		const remote: string[] = [];
		for (const form of forms) remote.push((await cli([...words(...form), ...target])).stdout);
		await server.stop();
		const local: string[] = [];
		for (const form of forms) local.push((await project.run(words(...form))).stdout);
		expect(remote).toEqual(local);
	});
});

const scalar = fc.oneof(
	fc.string({ unit: 'grapheme', maxLength: 12 }),
	fc.constantFrom('', ' ', '=1+1', 'a,b', '"', '\r', '\n', '\t', '{"a":1}', 'NULL', 'true', '\uFEFF'),
	fc.double({ noNaN: true, noDefaultInfinity: true }),
	fc.integer(),
	fc.boolean(),
	fc.constant(null),
);
const variables = ['city', 'City', 'is_active', '_line', 'meta', 'id', 'disable_reason'];
const meta = fc
	.uniqueArray(fc.tuple(fc.constantFrom(...variables), scalar), { selector: ([key]) => key, maxLength: 5 })
	.map((entries): Meta => Object.fromEntries(entries));
const person = fc.record({
	name: fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('\0', '').trim()),
	is_active: fc.boolean(),
	reason: fc.constantFrom('', 'UNSUBSCRIBED', 'their wish'),
	meta,
});

describe('an exported file', () => {
	let source: Project;
	let target: Project;
	let round = 0;
	beforeAll(async () => {
		[source, target] = [await makeProject(), await makeProject()];
		for (const { json } of [source, target])
			for (const variable of variables)
				await json(['fields', 'create', '--variable', variable, '--name', `Field ${variable}`]);
	});

	async function fill(
		list_id: number,
		all: readonly { name: string; is_active: boolean; reason: string; meta: Meta }[],
	) {
		const store = await openStore(source.db, { clock: systemClock, mode: 'existing' });
		const now = systemClock.now();
		const cells: (string | null)[] = [];
		for (const [index, { name, is_active, reason, meta: value }] of all.entries()) {
			const input = { email: `p${index}@example.com`, name, is_active, meta: value };
			const outcome = await store.writes.createSubscriber({ list_id, input, now });
			if (outcome.kind !== 'written') throw new Error(JSON.stringify(outcome));
			cells.push(input.email, is_active || reason === '' ? null : reason);
		}
		const spec = { list_id, on_conflict: 'update' as const, reactivate: false };
		const session = await store.writes.openImport({ id: `s${list_id}`, key: `k${list_id}`, spec, now });
		if (session === null || session === 'conflict') throw new Error('no session');
		const batch = { first: 0, columns: ['email', 'disable_reason'], cells };
		await store.writes.putImportBatch({ session: session.id, batch, now });
		await store.close();
	}

	it.each([
		'csv',
		'ndjson',
	])('as %s has the same bytes if another database imports and exports it', async (format) => {
		await fc.assert(
			fc.asyncProperty(fc.array(person, { minLength: 1, maxLength: 6 }), async (all) => {
				round += 1;
				const list = ['lists', 'create', '--name', `round ${round}`, '--email-reason', 'r'];
				const made = (await source.json(list)) as { id: number };
				await target.json(list);
				await fill(made.id, all);
				const words = ['subscribers', 'export', '-l', `round ${round}`, '--format', format];
				const first = await source.run(words);
				const file = await target.file(`${round}.${format}`, first.stdout);
				const again = ['subscribers', 'import', file, '-l', `round ${round}`, '-o', 'json'];
				const imported = await target.run(again);
				expect(imported).toMatchObject({
					code: 0,
					stdout: expect.stringContaining(`"created": ${all.length}`),
				});
				expect((await target.run(words)).stdout).toBe(first.stdout);
			}),
			{ numRuns: 25 },
		);
	});
});
