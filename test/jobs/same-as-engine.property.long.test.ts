// The engine's own imports are the measure: row by row over the document's operations it must come to the same.
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Api } from '../../src/api/api.js';
import { type ImportSpec, type Imports, need } from '../../src/api/capabilities.js';
import { connect } from '../../src/cli/connect.js';
import type { Connection } from '../../src/cli/frame/connection.js';
import { createSingleImports } from '../../src/jobs/single-imports.js';
import { dependencies } from '../support/connect.js';

let connection: Connection;
let api: Api;

beforeAll(async () => {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-same-'));
	connection = await connect({ kind: 'local', url: join(folder, 'news.db'), create: true }, dependencies());
	api = connection.api;
	for (const variable of ['city', 'plan']) await api.fields.create({ variable, name: variable });
});
afterAll(() => connection.close());

type Row = readonly (string | null)[];
const columns = ['email', 'name', 'is_active', 'meta.city'];

const row: fc.Arbitrary<Row> = fc.tuple(
	fc.constantFrom(
		'a@x.org',
		'A@X.org',
		'b@x.org',
		'c@x.org',
		'd@X.ORG',
		' d@x.org ',
		'nobody',
		'e@münchen.de',
	),
	fc.constantFrom(null, 'Ann', 'Bob', ' Ann '),
	fc.constantFrom(null, null, 'true', 'false'),
	fc.constantFrom(null, 'Oslo', 'Rome', ' ', '5'),
);

const person = fc.record({
	email: fc.constantFrom('A@x.org', 'b@x.org', 'e@xn--mnchen-3ya.de'),
	name: fc.constantFrom('', 'Ann'),
	is_active: fc.boolean(),
	meta: fc.constantFrom({}, { city: 'Oslo' }, { city: 5, plan: true }),
});

async function makeList(people: readonly { email: string }[]): Promise<number> {
	const { id } = await api.lists.create({ name: 'L', email_reason: 'r' });
	for (const one of people) await api.subscribers(id).create(one);
	return id;
}

async function importAll(
	imports: Imports,
	key: string,
	spec: ImportSpec,
	rows: readonly Row[],
	size: number,
) {
	const { id } = await imports.open(key, spec);
	const acks: unknown[] = [];
	for (let first = 0; first < rows.length; first += size)
		acks.push(await imports.put(id, { first, columns, cells: rows.slice(first, first + size).flat() }));
	return { acks, totals: await imports.finish(id) };
}

async function peopleOf(listId: number) {
	const { results } = await api.subscribers(listId).page({ page_size: 100 });
	return results
		.map(({ email, name, is_active, meta }) => ({ email, name, is_active, meta }))
		.sort((a, b) => (a.email < b.email ? -1 : 1));
}

it('row by row comes to the same acknowledgements and people as a session of the engine', async () => {
	await fc.assert(
		fc.asyncProperty(
			fc.uniqueArray(person, { selector: ({ email }) => email, maxLength: 3 }),
			fc.array(row, { maxLength: 14 }),
			fc.constantFrom('update', 'skip', 'error'),
			fc.boolean(),
			fc.integer({ min: 1, max: 6 }),
			async (people, rows, on_conflict, reactivate, size) => {
				const ours = await makeList(people);
				const theirs = await makeList(people);
				const spec = { on_conflict, reactivate } as const;
				const engine = await need(api, 'imports');
				const expected = await importAll(engine, `k${ours}`, { ...spec, list_id: ours }, rows, size);
				const foreign = createSingleImports(api, { concurrency: 4, keep: null });
				const got = await importAll(foreign, 'k', { ...spec, list_id: theirs }, rows, size);
				expect(got).toEqual(expected);
				expect(await peopleOf(theirs)).toEqual(await peopleOf(ours));
			},
		),
		{ numRuns: 150 },
	);
});
