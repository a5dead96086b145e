/** An `Imports` in memory that keeps its promises: numbered batches, stored answers, gaps refused. */
import type { Ack, ImportBatch, ImportCounts, Imports } from '../../src/api/capabilities.js';
import { ApiError } from '../../src/api/errors.js';

export type Verdict = 'created' | 'updated' | 'unchanged' | 'duplicate' | 'rejected';

export interface FakeImports extends Imports {
	/** Rows acknowledged, in order, each by its columns. */
	readonly kept: Record<string, string | null>[];
	/** Every batch that was put, repeated ones too. */
	readonly puts: ImportBatch[];
	readonly position: number;
}

export interface FakeOptions {
	/** What becomes of a row; `created` unless given. */
	judge?: (row: Record<string, string | null>, number: number) => Verdict;
	/** Runs before a batch is stored; may throw as a deployment would. */
	before?: (batch: ImportBatch) => void | Promise<void>;
	/** Runs when a batch is stored and its answer not given yet: throw, and the answer is lost. */
	after?: (batch: ImportBatch) => void;
	/** Keep no rows (for long runs). */
	forget?: boolean;
}

const none: ImportCounts = { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };

export function fakeImports(options: FakeOptions = {}): FakeImports {
	const { judge = () => 'created', before, after, forget = false } = options;
	const kept: Record<string, string | null>[] = [];
	const puts: ImportBatch[] = [];
	const total = { ...none };
	const acks = new Map<number, Ack<ImportCounts>>();
	let position = 0;
	return {
		kept,
		puts,
		get position() {
			return position;
		},
		open: async () => ({ id: 'session', position, counts: { ...total } }),
		put: async (_, batch) => {
			if (!forget) puts.push(batch);
			const stored = acks.get(batch.first);
			if (stored !== undefined) return stored;
			if (batch.first !== position)
				throw new ApiError('conflict', `The next row of this import is ${position}.`);
			await before?.(batch);
			const counts = { ...none };
			const rejects: { row: number; code: string; error: string }[] = [];
			for (const [index, row] of rowsOf(batch).entries()) {
				const verdict = judge(row, batch.first + index);
				counts[verdict] += 1;
				total[verdict] += 1;
				if (verdict === 'rejected') rejects.push({ row: batch.first + index, code: 'invalid', error: 'No.' });
				if (verdict === 'duplicate')
					rejects.push({ row: batch.first + index, code: 'duplicate', error: 'Twice.' });
				if (!forget) kept.push(row);
			}
			position += batch.cells.length / batch.columns.length;
			const ack = { position, counts, rejects };
			acks.set(batch.first, ack);
			if (forget) acks.clear();
			after?.(batch);
			return ack;
		},
		finish: async () => ({ ...total }),
	};
}

function rowsOf({ columns, cells }: ImportBatch): Record<string, string | null>[] {
	return Array.from({ length: cells.length / columns.length }, (_, row) =>
		Object.fromEntries(columns.map((name, index) => [name, cells[row * columns.length + index] ?? null])),
	);
}
