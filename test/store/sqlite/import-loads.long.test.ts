import { expect, it } from 'vitest';
import { startLine } from './import-lines.js';

const rows = 20_000;
const alwaysAsMany = { rows: () => rows, took: () => undefined };

function people(from: number, count = rows): string[] {
	return Array.from({ length: count }, (_, at) => `p${from + at}@example.org`);
}

function subscribers(db: ReturnType<typeof startLine>['db']): unknown[] {
	return db.prepare('SELECT id, email_key FROM subscribers ORDER BY id').raw().all();
}

it('an import gives new people ids in the order of their rows', async () => {
	const { line, command, db, groups } = startLine(alwaysAsMany);
	for (const first of [0, rows, 2 * rows]) {
		const outcome = await line.put(command(first, ...people(first)));
		expect(outcome).toMatchObject({
			ack: { position: first + rows, counts: { created: rows }, rejects: [] },
		});
	}
	// The first batch is stored in two groups, because its share of rejected rows is unknown.
	expect(groups()).toBe(4);
	expect(subscribers(db)).toEqual(people(0, 3 * rows).map((address, at) => [at + 1, address]));
	expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
	expect(db.pragma('foreign_keys', { simple: true })).toBe(1);
});

function addPerson(db: ReturnType<typeof startLine>['db'], address: string): void {
	db.prepare(
		`INSERT INTO subscribers (id, list_id, email, email_key, name, is_active, meta, source, created_at)
		VALUES (1000000, 1, '', ?, '', 1, '{}', 'API', 0)`,
	).run(address);
}

const news = people(rows, rows - 1);
const meetings = [
	{ name: 'an existing person', cells: [...news, 'p7@example.org'], unchanged: 1, undone: 1 },
	{ name: 'an address of an earlier batch', cells: [...news, 'p100000@example.org'], undone: 1 },
	{ name: 'a duplicate in its own batch', cells: [...news, `p${rows}@example.org`], undone: 0 },
];

for (const { name, cells, unchanged = 0, undone } of meetings) {
	it(`an import counts all rows of a large batch correctly if the batch contains ${name}`, async () => {
		const { line, command, db, groups } = startLine(alwaysAsMany);
		if (unchanged > 0) addPerson(db, 'p7@example.org');
		await line.put(command(0, ...people(100_000)));
		const outcome = await line.put(command(rows, ...cells));
		const created = rows - 1;
		const duplicate = 1 - unchanged;
		expect(outcome).toMatchObject({ ack: { position: 2 * rows, counts: { created, unchanged, duplicate } } });
		expect(subscribers(db)).toHaveLength(2 * rows - duplicate);
		expect(groups()).toBe(3 + undone);
		expect(db.pragma('foreign_keys', { simple: true })).toBe(1);
	});
}
