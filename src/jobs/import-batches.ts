import type { Ack, ImportCounts, Imports, Reject } from '../api/capabilities.js';
import type { RejectedRow } from '../tables/finding.js';
import { batchColumns, type Mapping } from '../tables/map-columns.js';
import {
	type Bundle,
	type BundledRow,
	cellsOf,
	type LentBundle,
	originalsOf,
	type PackedBundle,
	sizeOf,
	unpackCells,
} from './import-bundles.js';

export interface Batch {
	first: number;
	count: number;
	size: number;
	rejects: RejectedRow[];
	put(imports: Imports, session: string): Promise<Ack<ImportCounts>>;
	original(row: number): Omit<BundledRow, 'cells'>;
	withoutFirst(count: number): Batch;
	settle(): void;
}

const usualRowLength = 100;

export function bundledBatch(bundle: Bundle, mapping: Mapping): Batch {
	const { first, rows, rejects } = bundle;
	const columns = columnsOf(mapping);
	return {
		first,
		count: rows.length,
		size: rows.length * usualRowLength,
		rejects,
		put: (imports, session) =>
			imports.put(session, { first, columns, cells: rows.flatMap((row) => row.cells) }),
		original: (row) => found(rows[row]),
		withoutFirst: (count) =>
			bundledBatch({ ...bundle, first: first + count, rows: rows.slice(count) }, mapping),
		settle: () => undefined,
	};
}

export function packedBatch(packed: LentBundle, mapping: Mapping): Batch {
	const { first, rejects, rows } = packed;
	const columns = columnsOf(mapping);
	return {
		first,
		count: rows.put.count,
		size: sizeOf(packed),
		rejects,
		put: (imports, session) => {
			if (packed.form === 'cells') return imports.put(session, { first, columns, cells: unpackCells(rows) });
			if (imports.putChecked === undefined) throw new Error('checked rows are for an engine in this process');
			return imports.putChecked(session, { first, variables: variablesOf(mapping), rows: rows.put });
		},
		original: originalsOf(rows),
		withoutFirst: (count) => bundledBatch(unpackRows(packed, mapping), mapping).withoutFirst(count),
		settle: () => packed.giveBack(),
	};
}

function unpackRows({ first, rows: packed, rejects }: PackedBundle, mapping: Mapping): Bundle {
	const originalOf = originalsOf(packed);
	const rows = Array.from({ length: packed.put.count }, (_, row) => {
		const { line, original } = originalOf(row);
		return { line, original, cells: cellsOf(original, mapping) };
	});
	return { first, rows, rejects };
}

function found<T>(row: T | undefined): T {
	if (row === undefined) throw new RangeError('a row outside of its batch');
	return row;
}

export function columnsOf({ columns }: Mapping): string[] {
	return batchColumns(columns).map(({ target }) => target);
}

function variablesOf(mapping: Mapping): string[] {
	const prefix = 'meta.';
	return columnsOf(mapping).flatMap((column) =>
		column.startsWith(prefix) ? [column.slice(prefix.length)] : [],
	);
}

/** Null where no batch began there. */
export type AskAgain = (first: number) => Promise<Ack<ImportCounts> | null>;

/**
 * Asks for answers as batches were cut then, since this run may cut them otherwise: where one ends, the next began.
 */
export class EarlierAnswers {
	readonly #ask: AskAgain;
	readonly #end: number;
	#next = 0;
	#kept: Reject[] = [];

	constructor(ask: AskAgain, end: number) {
		this.#ask = ask;
		this.#end = end;
	}

	async rejectsOf(first: number, end: number): Promise<Reject[]> {
		const last = Math.min(end, this.#end);
		// The search begins at the first row where batches are cut otherwise.
		if (this.#next < first) await this.#take(first);
		while (this.#next < last && (await this.#take(this.#next)));
		const found = this.#kept.filter(({ row }) => row >= first && row < last);
		this.#kept = this.#kept.filter(({ row }) => row >= last);
		return found;
	}

	async #take(first: number): Promise<boolean> {
		const ack = await this.#ask(first);
		if (ack === null || ack.position <= first) return false;
		this.#next = ack.position;
		for (const reject of ack.rejects) this.#kept.push(reject);
		return true;
	}
}
