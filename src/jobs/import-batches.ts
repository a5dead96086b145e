import type { Ack, ImportCounts, Imports, Reject } from '../api/capabilities.js';
import { newTexts, type RowTexts, TextReader, TextWriter } from '../api/row-texts.js';
import type { RejectedRow } from '../tables/finding.js';
import type { Mapping } from '../tables/map-columns.js';
import { columnsOf, type LentBundle, originalsOf, sizeOf, unpackCells } from './import-bundles.js';

export class Batch {
	readonly first: number;
	readonly count: number;
	readonly size: number;
	readonly rejects: readonly RejectedRow[];
	readonly original: (row: number) => { line: number; original: string[] };
	readonly #bundle: LentBundle;
	readonly #columns: string[];

	constructor(bundle: LentBundle, mapping: Mapping) {
		this.first = bundle.first;
		this.count = bundle.rows.put.count;
		this.size = sizeOf(bundle);
		this.rejects = bundle.rejects;
		this.original = originalsOf(bundle.rows);
		this.#bundle = bundle;
		this.#columns = columnsOf(mapping);
	}

	/** Without as many rows as `skipped`, which an earlier run put. */
	put(imports: Imports, session: string, skipped: number): Promise<Ack<ImportCounts>> {
		const { form, rows } = this.#bundle;
		const first = this.first + skipped;
		const columns = this.#columns;
		if (form === 'cells') return imports.put(session, { first, columns, cells: unpackCells(rows, skipped) });
		if (imports.putChecked === undefined) throw new Error('checked rows are for an engine in this process');
		const prefix = 'meta.';
		const variables = columns.flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
		return imports.putChecked(session, { first, variables, rows: without(rows.put, skipped) });
	}

	settle(): void {
		this.#bundle.giveBack();
	}
}

function without(texts: RowTexts, skipped: number): RowTexts {
	if (skipped === 0) return texts;
	const rest = newTexts();
	const writer = new TextWriter(rest);
	const reader = new TextReader(texts);
	for (let row = skipped; row < texts.count; row += 1) writer.add(reader.at(row));
	return rest;
}

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
