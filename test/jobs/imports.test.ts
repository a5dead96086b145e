import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Imports } from '../../src/api/capabilities.js';
import { systemClock } from '../../src/api/datetime.js';
import { createImports } from '../../src/engine/imports.js';
import { type ImportJob, type ImportTotals, runImport } from '../../src/jobs/imports.js';
import { openStore } from '../../src/store/open.js';
import type { RejectedRow } from '../../src/tables/finding.js';
import { mapHeader } from '../../src/tables/map-columns.js';
import { openTable } from '../../src/tables/read-table.js';
import { openRejects } from '../../src/tables/write-rejects.js';
import { newList, newUuid } from '../contract/store/fixture.js';
import { fakeImports, type Verdict } from './sessions.js';

const fields = [{ variable: 'city', name: 'City' }];
const spec = { list_id: 1, on_conflict: 'update', reactivate: false } as const;

async function jobOf(
	text: string | AsyncIterable<Uint8Array>,
	imports: Imports,
	more: Partial<ImportJob> = {},
) {
	const stream = typeof text === 'string' ? one(Buffer.from(text)) : text;
	const table = await openTable({ name: 'people.csv', stream }, { delimiter: ',', encoding: 'utf8' });
	const result = mapHeader(table.header, { fields, unknown: 'ignore' });
	if (result.kind === 'refused') throw new Error(JSON.stringify(result.findings));
	const rejects: RejectedRow[] = [];
	const job: ImportJob = {
		imports,
		rows: table.rows,
		mapping: result.mapping,
		spec,
		key: 'k',
		onReject: async (rows) => void rejects.push(...rows),
		...more,
	};
	return { job, rejects };
}

async function* one(bytes: Buffer): AsyncGenerator<Uint8Array> {
	yield bytes;
}

function people(count: number): string {
	const rows = Array.from({ length: count }, (_, index) => `p${index}@example.com,Person ${index}\n`);
	return `email,name\n${rows.join('')}`;
}

const adds = ({ read, created, updated, unchanged, duplicate, rejected }: ImportTotals) =>
	read === created + updated + unchanged + duplicate + rejected;

describe('an import', () => {
	it('returns rejected rows with line and cells, in order', async () => {
		const verdicts: Record<string, Verdict> = { 'b@x.org': 'rejected', 'd@x.org': 'duplicate' };
		const imports = fakeImports({ judge: ({ email }) => verdicts[email ?? ''] ?? 'updated' });
		const text = 'email,is_active\na@x.org,1\nb@x.org,1\n,1\n\nc@x.org,maybe\nd@x.org,0\ne@x.org\n';
		const { job, rejects } = await jobOf(text, imports);
		const { totals } = await runImport(job);
		expect(totals).toEqual({ read: 6, created: 0, updated: 1, unchanged: 0, duplicate: 1, rejected: 4 });
		expect(rejects.map(({ line, code, cells }) => `${line} ${code} ${cells.join('|')}`)).toEqual([
			'3 invalid b@x.org|1',
			'4 blank |1',
			'6 invalid c@x.org|maybe',
			'7 duplicate d@x.org|0',
			'8 too_few_cells e@x.org',
		]);
		expect(imports.puts.map(({ first, cells }) => [first, cells.length])).toEqual([[0, 10]]);
	});

	it('limits a batch to 4 MiB of JSON', async () => {
		const imports = fakeImports();
		const cells = ['"'.repeat(300_000), '\u0001'.repeat(300_000), '😀'.repeat(200_000), 'x'.repeat(900_000)];
		const rows = Array.from({ length: 16 }, (_, index) => {
			return `p${index}@x.org,"${(cells[index % 4] ?? '').replaceAll('"', '""')}"\n`;
		});
		const { job, rejects } = await jobOf(`email,name\n${rows.join('')}`, imports);
		expect((await runImport(job)).totals).toMatchObject({ read: 16, created: 16 });
		expect(rejects).toEqual([]);
		expect(imports.puts.length).toBeGreaterThan(2);
		for (const batch of imports.puts)
			expect(Buffer.byteLength(JSON.stringify(batch))).toBeLessThan(4 * 1024 * 1024);
	});

	it('counts and returns all rows even if none can be stored', async () => {
		const bad = (count: number) => 'a@x.org,A,too many\n'.repeat(count);
		for (const text of [bad(3), `a@x.org,A\n${bad(3)}`, `a@x.org,A\n${bad(30)}b@x.org,B\n${bad(30)}`]) {
			const rows = text.split('\n').length - 1;
			const put = text.split('\n').filter((line) => line.split(',').length === 2).length;
			const { job, rejects } = await jobOf(`email,name\n${text}`, fakeImports(), { batchRows: 10 });
			const { totals } = await runImport(job);
			expect(totals).toMatchObject({ read: rows, created: put, rejected: rows - put });
			expect(rejects).toHaveLength(rows - put);
		}
	});
});

describe('an import that ends early', () => {
	it('stops at the end of a batch if the number or percentage of errors is too high', async () => {
		const rejecting = () => fakeImports({ judge: (_, row) => (row % 2 === 0 ? 'rejected' : 'created') });
		const run = async (maxErrors: ImportJob['maxErrors'], count: number) => {
			const { job } = await jobOf(people(count), rejecting(), {
				batchRows: 10,
				...(maxErrors && { maxErrors }),
			});
			const { outcome, isComplete, totals } = await runImport(job);
			expect(adds(totals)).toBe(true);
			return `${outcome} ${totals.read}${isComplete ? ' of all' : ''}`;
		};
		expect(await run({ rows: 12 }, 100)).toBe('too_many_errors 30');
		expect(await run({ rows: 50 }, 100)).toBe('done 100 of all');
		expect(await run({ percent: 50 }, 100)).toBe('done 100 of all');
		expect(await run({ percent: 49 }, 100)).toBe('too_many_errors 100 of all');
		expect(await run({ rows: 49 }, 100)).toBe('too_many_errors 100 of all');
		expect(await run({ percent: 49 }, 3000)).toBe('too_many_errors 1000');
		expect(await run({ rows: 0 }, 100)).toBe('too_many_errors 10');
	});

	it('stops after the current batch if it is interrupted', async () => {
		const aborter = new AbortController();
		const imports = fakeImports({
			before: ({ first }) => {
				if (first === 10) aborter.abort(new Error('Ctrl-C'));
			},
		});
		const { job } = await jobOf(people(100), imports, { batchRows: 10, signal: aborter.signal });
		const { outcome, totals } = await runImport(job);
		expect({ outcome, read: totals.read, position: imports.position }).toEqual({
			outcome: 'interrupted',
			read: 20,
			position: 20,
		});
	});
});

describe('an import that is resumed', () => {
	const verdict = (row: number): Verdict =>
		row % 7 === 0 ? 'rejected' : row % 11 === 0 ? 'duplicate' : 'created';
	const text = people(100).replaceAll(/^p\d*[05]@.*$/gm, 'only one cell');

	async function inTwoRuns(stopAt: number | null, loss: 'before' | 'after', secondBatch = 10) {
		const path = join(await mkdtemp(join(tmpdir(), 'mailctl-import-')), 'r.csv');
		let armed = true;
		const cut = ({ first }: { first: number }) => {
			if (armed && first === stopAt) throw new Error('cut');
		};
		const imports = fakeImports({
			judge: (_, row) => verdict(row),
			...(stopAt === null ? {} : { [loss]: cut }),
		});
		const before: number[] = [];
		const run = async (resume: boolean, batchRows: number) => {
			const rejects = await openRejects({ path, header: ['email', 'name'], resume });
			const { job } = await jobOf(text, imports, {
				...{ batchRows, onReject: (rows: Iterable<RejectedRow>) => rejects.write(rows) },
				onResumed: ({ read }: { read: number }) => void before.push(read),
			});
			return runImport(job).finally(() => rejects.close());
		};
		if (stopAt === null)
			return { result: await run(false, 10), file: await readFile(path, 'utf8'), imports, before };
		await expect(run(false, 10)).rejects.toThrow('cut');
		armed = false;
		return { result: await run(true, secondBatch), file: await readFile(path, 'utf8'), imports, before };
	}

	it('from any row has the same totals and rejects as an uninterrupted run', async () => {
		const meant = await inTwoRuns(null, 'before');
		expect(adds(meant.result.totals)).toBe(true);
		expect(meant.result.totals).toMatchObject({ read: 100, rejected: 32 });
		for (const loss of ['before', 'after'] as const) {
			for (const stopAt of [0, 10, 40, 70]) {
				const { result, file, imports, before } = await inTwoRuns(stopAt, loss);
				expect(result.totals).toEqual(meant.result.totals);
				expect(result.resumedAt).toBe(stopAt + (loss === 'after' ? 10 : 0));
				expect(before).toEqual(result.resumedAt === 0 ? [] : [result.resumedAt]);
				expect(file).toBe(meant.file);
				expect(imports.kept).toEqual(meant.imports.kept);
			}
		}
	});

	it('has the same result if the second run has batches of another size', async () => {
		const meant = await inTwoRuns(null, 'before');
		for (const loss of ['before', 'after'] as const) {
			for (const stopAt of [10, 40]) {
				for (const size of [1, 7, 64, 1000]) {
					const { result, file, imports } = await inTwoRuns(stopAt, loss, size);
					expect(result.totals).toEqual(meant.result.totals);
					expect(file).toBe(meant.file);
					expect(imports.kept).toEqual(meant.imports.kept);
				}
			}
		}
	});

	it('writes the rejected rows that an earlier run did not write', async () => {
		const verdicts = { judge: (_: unknown, row: number) => verdict(row) };
		const whole = await jobOf(text, fakeImports(verdicts), { batchRows: 10 });
		await runImport(whole.job);
		for (const batchRows of [3, 10, 25]) {
			const imports = fakeImports(verdicts);
			const silent = await jobOf(text, imports, { batchRows: 10, onReject: async () => {} });
			await runImport(silent.job);
			const next = await jobOf(text, imports, { batchRows });
			await runImport(next.job);
			expect(next.rejects).toEqual(whole.rejects);
		}
	});
});

describe('a limit on errors', () => {
	const text = people(100).replaceAll(/^p\d*5@.*$/gm, 'only one cell');

	async function runs(...limits: (number | null)[]) {
		const imports = fakeImports({ judge: (_, row) => (row % 9 === 0 ? 'rejected' : 'created') });
		const ends: string[] = [];
		for (const limit of limits) {
			const { job } = await jobOf(text, imports, {
				batchRows: 10,
				...(limit !== null && { maxErrors: { rows: limit } }),
			});
			const { outcome, isComplete, totals } = await runImport(job);
			expect(adds(totals)).toBe(true);
			ends.push(`${outcome} ${totals.rejected} of ${totals.read}${isComplete ? ', complete' : ''}`);
		}
		return ends;
	}

	it('includes the rejected rows of earlier runs, so a run with the same limit stops at once', async () => {
		expect(await runs(5, 5, 12, null)).toEqual([
			'too_many_errors 7 of 33',
			'too_many_errors 7 of 33',
			'too_many_errors 14 of 67',
			'done 20 of 100, complete',
		]);
	});
});

describe('a batch that was partly committed when the store stopped', () => {
	it('is completed by the next run, which returns all rejects and stores nothing twice', async () => {
		const store = await openStore(':memory:', { clock: systemClock, mode: 'create' });
		onTestFinished(() => store.close());
		const list_id = await newList(store);
		const imports = createImports({ store, clock: systemClock, newId: newUuid });
		const session = await imports.open('k', { ...spec, list_id });
		const firstSlice = ['a@x.org', 'a@x.org', 'b@x.org', 'b@x.org'];
		await imports.put(session.id, { first: 0, columns: ['email'], cells: firstSlice });
		const text = `email\n${[...firstSlice, 'c@x.org', 'c@x.org', 'd@x.org'].join('\n')}\n`;
		const { job, rejects } = await jobOf(text, imports, { spec: { ...spec, list_id } });
		const { outcome, totals, resumedAt } = await runImport(job);
		expect({ outcome, resumedAt }).toEqual({ outcome: 'done', resumedAt: 4 });
		expect(totals).toMatchObject({ read: 7, created: 4, duplicate: 3 });
		expect(rejects.map(({ line, code }) => `${line} ${code}`)).toEqual([
			'3 duplicate',
			'5 duplicate',
			'7 duplicate',
		]);
		expect((await store.reads.getList({ id: list_id }))?.active_subscribers_count).toBe(4);
	});
});

describe('the counts of an import', () => {
	it('add up for any mix of rows, and each rejected row is returned once', async () => {
		const line = fc.constantFrom(
			'a@x.org,A',
			'a@x.org',
			',A',
			'a@x.org,A,B',
			'a@x.org,"A',
			'',
			'a@x.org,5"',
			'a@x.org,\0',
		);
		const verdicts = fc.infiniteStream(
			fc.constantFrom<Verdict>('created', 'updated', 'unchanged', 'duplicate', 'rejected'),
		);
		await fc.assert(
			fc.asyncProperty(
				fc.array(line, { maxLength: 80 }),
				verdicts,
				fc.integer({ min: 1, max: 20 }),
				async (lines, stream, batchRows) => {
					const imports = fakeImports({ judge: () => stream.next().value ?? 'created' });
					const { job, rejects } = await jobOf(`email,name\n${lines.join('\n')}`, imports, { batchRows });
					const { totals } = await runImport(job);
					expect(adds(totals)).toBe(true);
					expect(rejects).toHaveLength(totals.rejected + totals.duplicate);
					expect(totals.read - imports.kept.length).toBe(
						rejects.filter(({ error }) => error !== 'No.' && error !== 'Twice.').length,
					);
					expect(rejects.map(({ line: at }) => at)).toEqual(
						rejects.map(({ line: at }) => at).sort((a, b) => a - b),
					);
				},
			),
			{ numRuns: 100 },
		);
	});
});

function liveBytes(): number {
	setFlagsFromString('--expose-gc');
	runInNewContext('gc')();
	const { heapUsed, arrayBuffers } = process.memoryUsage();
	return heapUsed + arrayBuffers;
}

describe('memory', () => {
	it('stays level over 120,000 rows', async () => {
		async function* rows(): AsyncGenerator<Uint8Array> {
			yield Buffer.from('email,name,city\n');
			for (let block = 0; block < 120; block += 1) {
				const lines = Array.from(
					{ length: 1000 },
					(_, row) => `p${block}-${row}@example.com,"Person, ${row}",Oslo\n`,
				);
				yield Buffer.from(lines.join(''));
			}
		}
		const samples: number[] = [];
		const imports = fakeImports({
			forget: true,
			judge: (_, row) => (row % 10 === 0 ? 'rejected' : 'created'),
		});
		const { job } = await jobOf(rows(), imports, {
			onReject: async () => {},
			onProgress: ({ read }) => {
				if (read % 30_000 === 0) samples.push(liveBytes());
			},
		});
		expect((await runImport(job)).totals).toMatchObject({ read: 120_000, rejected: 12_000 });
		const [early = 0, , , late = 0] = samples;
		expect(samples).toHaveLength(4);
		// Keeping the 90,000 rows between the two measurements would need about 20 MB.
		expect(late - early).toBeLessThan(10e6);
	});
});
