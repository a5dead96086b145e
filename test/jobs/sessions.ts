/** An in-memory `Imports` with the same guarantees: numbered batches, stored answers, no gaps, checked rows. */
import type { Ack, ImportBatch, ImportCounts, Imports } from '../../src/api/capabilities.js';
import { ApiError } from '../../src/api/errors.js';
import { importRowReader, type RejectedRow } from '../../src/engine/rules/import-rows.js';

export type Verdict = 'created' | 'updated' | 'unchanged' | 'duplicate' | 'rejected';

export interface FakeImports extends Imports {
	readonly kept: Record<string, string | null>[];
	readonly puts: ImportBatch[];
	readonly position: number;
}

export interface FakeOptions {
	judge?: (row: Record<string, string | null>, number: number) => Verdict;
	before?: (batch: ImportBatch) => void | Promise<void>;
	after?: (batch: ImportBatch) => void;
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
			const judgeOne = judging(batch.columns, judge);
			for (const [index, row] of rowsOf(batch).entries()) {
				const number = batch.first + index;
				const { verdict, reject, isRead } = judgeOne(row, number);
				counts[verdict] += 1;
				total[verdict] += 1;
				if (reject !== null) rejects.push({ row: number, ...reject });
				if (!forget && isRead) kept.push(row);
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

interface Judged {
	verdict: Verdict;
	reject: { code: string; error: string } | null;
	isRead: boolean;
}

function judging(columns: readonly string[], judge: NonNullable<FakeOptions['judge']>) {
	const read = importRowReader(columns);
	return (row: Record<string, string | null>, number: number): Judged => {
		const found = read(Object.values(row));
		if (found.kind === 'rejected') return { verdict: 'rejected', reject: textOf(found), isRead: false };
		const verdict = judge(row, number);
		return { verdict, reject: words[verdict] ?? null, isRead: true };
	};
}

function textOf({ code, error }: RejectedRow) {
	return { code, error };
}

const words: Partial<Record<Verdict, { code: string; error: string }>> = {
	rejected: { code: 'invalid', error: 'No.' },
	duplicate: { code: 'duplicate', error: 'Twice.' },
};
