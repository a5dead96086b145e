import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { createImports } from '../../src/engine/imports.js';
import {
	type Bundle,
	bundleRows,
	type LentBundle,
	originalsOf,
	unpackCells,
} from '../../src/jobs/import-bundles.js';
import { type ImportJob, runImport } from '../../src/jobs/imports.js';
import { openStore } from '../../src/store/open.js';
import { type RejectedRow, TableError } from '../../src/tables/finding.js';
import { mapHeader } from '../../src/tables/map-columns.js';
import { openTable } from '../../src/tables/read-table.js';
import { readInThread } from '../../src/threads/table-reader.js';
import { newList, newUuid } from '../contract/store/fixture.js';

const never = new AbortController().signal;
const fields = [{ variable: 'city', name: 'City' }];

async function file(text: string): Promise<string> {
	const path = join(await mkdtemp(join(tmpdir(), 'mailctl-table-')), 'people.csv');
	await writeFile(path, text);
	return path;
}

function people(count: number): string {
	const rows = Array.from({ length: count }, (_, n) => {
		const email = `P${n % 10 === 7 ? n - 1 : n}@Example.com`;
		if (n % 10 === 3) return `${email}\n`;
		const flag = n % 10 === 5 ? 'maybe' : '';
		return `${n % 10 === 4 ? 'nobody' : email},"Name, ${n}",${n % 2 === 0 ? 'Осло' : ''},${flag}\n`;
	});
	return `email,name,city,is_active\n${rows.join('')}`;
}

async function mappingOf(path: string) {
	const table = await openTable(path);
	await table.close();
	const result = mapHeader(table.header, { fields, unknown: 'ignore' });
	if (result.kind === 'refused') throw new Error(JSON.stringify(result.findings));
	return result.mapping;
}

async function orderOf(path: string, form: 'cells' | 'checked', maxRows = 100) {
	const request = { mapping: await mappingOf(path), maxRows, form };
	return { path, encoding: 'auto', delimiter: 'auto', request };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
	const found: T[] = [];
	for await (const item of items) found.push(item);
	return found;
}

function contentOf(bundle: Bundle) {
	const { first, form, rejects, rows } = bundle;
	const originals = Array.from({ length: rows.put.count }, (_, row) => originalsOf(rows)(row));
	return { first, form, rejects, cells: unpackCells(rows), originals };
}

describe('reading a table in a thread', () => {
	it('gives the same batches as reading it in the main thread', async () => {
		const path = await file(people(3_000));
		const order = await orderOf(path, 'cells');
		const { rows } = await openTable(path);
		const here = (await all(bundleRows(rows, order.request))).map(contentOf);
		const there = (await all(readInThread(order, never))).map(contentOf);
		expect(there).toEqual(here);
		expect(there[0]?.originals[1]).toEqual({ line: 3, original: ['P1@Example.com', 'Name, 1', '', ''] });
	});

	it('reuses the memory of a batch only after the caller gives the batch back', async () => {
		const order = await orderOf(await file(people(40_000)), 'cells');
		const whole = (await all(readInThread(order, never))).map(contentOf);
		const held: LentBundle[] = [];
		const seen: unknown[] = [];
		for await (const bundle of readInThread(order, never)) {
			held.push(bundle);
			if (held.length < 10) continue;
			const oldest = held.shift() ?? expect.unreachable();
			seen.push(contentOf(oldest));
			oldest.giveBack();
			// A batch that is given back after the thread has ended keeps its memory, so only the first half is
			// checked.
			if (seen.length < whole.length / 2) expect(oldest.rows.put.bytes).toHaveLength(0);
		}
		expect(whole.length).toBeGreaterThan(30);
		expect([...seen, ...held.map(contentOf)]).toEqual(whole);
	});

	it('sends rejected rows in small batches if the rows have thousands of cells', async () => {
		const header = Array.from({ length: 1_900 }, (_, n) => `c${n}`).join(',');
		const path = await file(`email,${header}\n${`${','.repeat(1_901)}\n`.repeat(1_000)}`);
		const bundles = await all(readInThread(await orderOf(path, 'checked', 5_000), never));
		expect(bundles.length).toBeGreaterThan(5);
		expect(bundles.flatMap(({ rejects }) => rejects)).toHaveLength(1_000);
	});

	it('ends with the table’s error', async () => {
		const path = await file('email\na@x.org\n');
		const order = { ...(await orderOf(path, 'cells')), path: `${path}.gone` };
		const error = await all(readInThread(order, never)).catch((thrown: unknown) => thrown);
		expect(error).toBeInstanceOf(TableError);
		expect(error).toMatchObject({ code: 'no_such_file', name: 'TableError' });
	});

	it('stops at once with the reason of the signal', async () => {
		const order = await orderOf(await file(people(40_000)), 'checked');
		const stop = new AbortController();
		let taken = 0;
		const walk = async () => {
			for await (const _ of readInThread(order, stop.signal)) {
				taken += 1;
				stop.abort(new Error('Ctrl-C'));
			}
		};
		await expect(walk()).rejects.toThrow('Ctrl-C');
		expect(taken).toBe(1);
	});
});

describe('an import from a table read in a thread', () => {
	async function importOf(
		path: string,
		{ inThread, stopAt }: { inThread: 'yes' | 'no'; stopAt: number | null },
	) {
		const store = await openStore(':memory:', { clock: systemClock, mode: 'create' });
		onTestFinished(() => store.close());
		await store.writes.createField({ input: { variable: 'city', name: 'City' }, now: systemClock.now() });
		const list_id = await newList(store);
		const imports = createImports({ store, clock: systemClock, newId: newUuid });
		const rejects: RejectedRow[] = [];
		const run = async (stop: AbortController, stopAtRow: number) => {
			const table = await openTable(path);
			const mapping = await mappingOf(path);
			const job: ImportJob = {
				imports: {
					...imports,
					putChecked: (id, batch) => {
						if (batch.first >= stopAtRow) stop.abort(new Error('Ctrl-C'));
						return imports.putChecked?.(id, batch) ?? expect.unreachable();
					},
				},
				rows: table.rows,
				...(inThread === 'yes' && {
					readBundles: (request) =>
						readInThread({ path, encoding: 'auto', delimiter: 'auto', request }, stop.signal),
				}),
				mapping,
				spec: { list_id, on_conflict: 'update', reactivate: false },
				key: 'k',
				batchRows: 100,
				onReject: async (rows) => {
					const last = rejects.at(-1)?.line ?? 0;
					rejects.push(...[...rows].filter(({ line }) => line > last));
				},
				signal: stop.signal,
			};
			return runImport(job).finally(() => table.close());
		};
		if (stopAt !== null) {
			expect((await run(new AbortController(), stopAt)).outcome).toBe('interrupted');
		}
		const { totals } = await run(new AbortController(), Number.POSITIVE_INFINITY);
		const slice = await store.reads.sliceSubscribers({ list_id, after: 0, limit: 10_000, filter: {} });
		const kept = slice?.map(({ email, name, meta }) => ({ email, name, meta }));
		return { totals, rejects, kept };
	}

	it('has the same rows, totals and rejects as without the thread', async () => {
		const path = await file(people(2_000));
		const here = await importOf(path, { inThread: 'no', stopAt: null });
		expect(here.totals).toMatchObject({ read: 2_000, created: 1_200, duplicate: 200, rejected: 600 });
		expect(await importOf(path, { inThread: 'yes', stopAt: null })).toEqual(here);
	});

	it('continues where it was interrupted, and loses or repeats nothing', async () => {
		const path = await file(people(8_000));
		const whole = await importOf(path, { inThread: 'yes', stopAt: null });
		for (const stopAt of [0, 1_000, 5_000])
			expect(await importOf(path, { inThread: 'yes', stopAt })).toEqual(whole);
	});
});
