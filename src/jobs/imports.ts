/**
 * Runs an import as a session of numbered batches. A later run with the same key continues after the last acknowledged
 * row. An embedded engine may receive several batches before it answers, and then commits them together.
 */
import type { Ack, ImportCounts, ImportSpec, Imports, Reject, Session } from '../api/capabilities.js';
import { addImportCounts, noImportCounts } from '../api/counts.js';
import { ApiError } from '../api/errors.js';
import { newTexts, type RowTexts, TextReader, TextWriter } from '../api/row-texts.js';
import { duplicateCode, type RejectedRow, type TableRow } from '../tables/finding.js';
import type { Mapping } from '../tables/map-columns.js';
import {
	bundleRows,
	columnsOf,
	type LentBundle,
	originalsOf,
	type ReadBundles,
	sizeOf,
	unpackCells,
} from './import-bundles.js';

export interface ImportTotals extends ImportCounts {
	read: number;
}

export type MaxErrors = { rows: number } | { percent: number };

export interface ImportJob {
	imports: Imports;
	rows: AsyncIterable<TableRow>;
	readBundles?: ReadBundles;
	mapping: Mapping;
	spec: ImportSpec;
	key: string;
	batchRows?: number;
	maxErrors?: MaxErrors;
	onResumed?: (totals: ImportTotals) => void;
	onProgress?: (totals: ImportTotals) => void;
	/**
	 * Receives the rejected rows of a batch in line order. The callback must store the rows before it resolves, because
	 * mailctl then reuses their memory. A resumed run asks the service again only for the rejects of about the last
	 * 250,000 acknowledged rows.
	 */
	onReject?: (rows: Iterable<RejectedRow>) => Promise<void>;
	signal?: AbortSignal;
}

export interface ImportResult {
	outcome: 'done' | 'too_many_errors' | 'interrupted';
	isComplete: boolean;
	totals: ImportTotals;
	resumedAt: number;
}

export async function runImport(job: ImportJob): Promise<ImportResult> {
	const session = await job.imports.open(job.key, job.spec, job.signal && { signal: job.signal });
	const run = new ImportRun(job, session);
	const resumedAt = session.position;
	if (resumedAt > 0) job.onResumed?.({ ...run.totals });
	const outcome = await run.work();
	if (outcome !== 'done') return { outcome, isComplete: false, totals: run.totals, resumedAt };
	const totals = await run.finish();
	const isOver = hasTooManyErrors(job.maxErrors, totals, 'end');
	return { outcome: isOver ? 'too_many_errors' : outcome, isComplete: true, totals, resumedAt };
}

const maxRowsInFlight = 125_000;
const maxSizeInFlight = 12 * 1024 * 1024;

type Answer = Pick<Ack<ImportCounts>, 'counts' | 'rejects'>;

interface InFlight {
	batch: Batch;
	answer: Promise<Answer>;
	isAnswered: boolean;
}

class ImportRun {
	totals: ImportTotals;
	readonly #job: ImportJob;
	readonly #id: string;
	readonly #resumedAt: number;
	readonly #flight: InFlight[] = [];
	readonly #earlier: EarlierAnswers;
	#local: ImportCounts = noImportCounts;

	constructor(job: ImportJob, { id, position, counts = noImportCounts }: Session) {
		this.#job = job;
		this.totals = { read: sum(counts), ...counts };
		this.#id = id;
		this.#resumedAt = position;
		this.#earlier = new EarlierAnswers((first) => this.#askAgain(first), position);
	}

	async work(): Promise<ImportResult['outcome']> {
		const { signal } = this.#job;
		try {
			const outcome = await this.#readAll();
			await this.#land('all');
			return outcome;
		} catch (error) {
			const isStopped = signal?.aborted === true && error === signal.reason;
			if (isStopped) await this.#land('all');
			await Promise.allSettled(this.#flight.map(({ answer }) => answer));
			if (isStopped) return 'interrupted';
			throw error;
		}
	}

	async #readAll(): Promise<ImportResult['outcome']> {
		const { signal, maxErrors } = this.#job;
		for await (const batch of this.#batches()) {
			if (signal?.aborted) return 'interrupted';
			// Until this run has read all earlier rows again, `totals` lacks mailctl's own rejects. So skip the check.
			const isNew = batch.first + batch.count > this.#resumedAt;
			if (isNew && hasTooManyErrors(maxErrors, this.totals, 'midway')) return 'too_many_errors';
			this.#takeOff(batch);
			await this.#land(this.#mayWait(batch) ? 'answered' : 'all');
		}
		return 'done';
	}

	async *#batches(): AsyncGenerator<Batch, void, undefined> {
		const { rows, readBundles, mapping, batchRows: maxRows = 5_000 } = this.#job;
		if (readBundles === undefined) {
			for await (const bundle of bundleRows(rows, { mapping, maxRows }))
				yield new Batch({ ...bundle, giveBack: () => undefined }, mapping);
			return;
		}
		const form = this.#isChecked ? 'checked' : 'cells';
		for await (const bundle of readBundles({ mapping, maxRows, form })) yield new Batch(bundle, mapping);
	}

	/** True if mailctl need not wait for the answer to this batch. Only an embedded engine keeps batches in order. */
	#mayWait({ first }: Batch): boolean {
		return this.#isChecked && this.#job.maxErrors === undefined && first >= this.#resumedAt;
	}

	get #isChecked(): boolean {
		return this.#job.readBundles !== undefined && this.#job.imports.putChecked !== undefined;
	}

	#takeOff(batch: Batch): void {
		const flying: InFlight = { batch, answer: this.#answer(batch), isAnswered: false };
		const onEnd = () => {
			flying.isAnswered = true;
		};
		// Attach handlers now, because the promise may reject before `#land` awaits it.
		flying.answer.then(onEnd, onEnd);
		this.#flight.push(flying);
	}

	async #land(which: 'all' | 'answered'): Promise<void> {
		for (let oldest = this.#flight[0]; oldest !== undefined; oldest = this.#flight[0]) {
			if (which === 'answered' && !oldest.isAnswered && !this.#isFull()) return;
			await this.#settle(oldest.batch, await oldest.answer);
			this.#flight.shift();
		}
	}

	#isFull(): boolean {
		const rows = this.#flight.reduce((sum, { batch }) => sum + batch.count, 0);
		const size = this.#flight.reduce((sum, { batch }) => sum + batch.size, 0);
		return rows > maxRowsInFlight || size > maxSizeInFlight;
	}

	async finish(): Promise<ImportTotals> {
		const counts = await this.#job.imports.finish(this.#id);
		const all = addImportCounts(counts, this.#local);
		const totals = { read: sum(all), ...all };
		if (this.#resumedAt === 0 && sum(this.totals) !== sum(totals)) {
			throw new ApiError(
				'bad_answer',
				`the import counted ${sum(totals)} rows, but the service acknowledged ${sum(this.totals)}`,
			);
		}
		return totals;
	}

	/** An earlier run may have ended between sending rows and storing their rejects, so ask for the rejects again. */
	async #answer(batch: Batch): Promise<Answer> {
		const { first, count } = batch;
		const skipped = Math.min(count, Math.max(0, this.#resumedAt - first));
		const isUnsure = skipped > 0 && first + count > this.#resumedAt - 2 * maxRowsInFlight;
		const earlier = isUnsure ? await this.#earlier.rejectsOf(first, first + skipped) : [];
		if (skipped === count) return { counts: noImportCounts, rejects: earlier };
		const { counts, rejects } = await this.#put(batch, skipped);
		return { counts, rejects: [...earlier, ...rejects] };
	}

	async #settle(batch: Batch, { counts, rejects }: Answer): Promise<void> {
		if (batch.rejects.length + rejects.length > 0) await this.#job.onReject?.(refusedRows(batch, rejects));
		batch.settle();
		const local = countsOf(batch.rejects);
		this.#local = addImportCounts(this.#local, local);
		const all = addImportCounts(addImportCounts(this.totals, local), counts);
		this.totals = { read: sum(all), ...all };
		this.#job.onProgress?.({ ...this.totals });
	}

	/** For an empty batch, the service repeats its answer to the earlier batch that began at row `first`. */
	async #askAgain(first: number): Promise<Ack<ImportCounts> | null> {
		const { imports, mapping } = this.#job;
		return imports.put(this.#id, { first, columns: columnsOf(mapping), cells: [] }).catch(nullIfConflict);
	}

	async #put(batch: Batch, skipped: number): Promise<Ack<ImportCounts>> {
		// Pass no signal: an aborted request may still import its rows, and the report would lack them.
		const ack = await batch.put(this.#job.imports, this.#id, skipped);
		const [first, end] = [batch.first + skipped, batch.first + batch.count];
		if (sum(ack.counts) === end - first && ack.rejects.every(({ row }) => row >= first && row < end))
			return ack;
		throw new ApiError('bad_answer', `the answer to rows ${first} to ${end} does not match these rows`);
	}
}

function hasTooManyErrors(
	maxErrors: MaxErrors | undefined,
	{ rejected, read }: ImportTotals,
	where: 'midway' | 'end',
): boolean {
	if (maxErrors === undefined) return false;
	if ('rows' in maxErrors) return rejected > maxErrors.rows;
	return (where === 'end' || read >= 1_000) && rejected * 100 > maxErrors.percent * read;
}

function sum({ created, updated, unchanged, duplicate, rejected }: ImportCounts): number {
	return created + updated + unchanged + duplicate + rejected;
}

function countsOf(rejects: readonly RejectedRow[]): ImportCounts {
	const duplicate = rejects.filter(({ code }) => code === duplicateCode).length;
	return { ...noImportCounts, duplicate, rejected: rejects.length - duplicate };
}

function* refusedRows(batch: Batch, rejects: readonly Reject[]): Generator<RejectedRow, void, undefined> {
	let local = 0;
	for (const { row, code, error } of [...rejects].sort((a, b) => a.row - b.row)) {
		const { line, original: cells } = batch.original(row - batch.first);
		for (
			let next = batch.rejects[local];
			next !== undefined && next.line < line;
			next = batch.rejects[local]
		) {
			yield next;
			local += 1;
		}
		yield { line, code, error, cells };
	}
	yield* batch.rejects.slice(local);
}

function nullIfConflict(error: unknown): null {
	if (error instanceof ApiError && error.code === 'conflict') return null;
	throw error;
}

class Batch {
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

	put(imports: Imports, session: string, skipped: number): Promise<Ack<ImportCounts>> {
		const { form, rows } = this.#bundle;
		const first = this.first + skipped;
		const columns = this.#columns;
		if (form === 'cells') return imports.put(session, { first, columns, cells: unpackCells(rows, skipped) });
		if (imports.putChecked === undefined)
			throw new Error('only an engine in this process accepts rows that were already checked');
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

type AskAgain = (first: number) => Promise<Ack<ImportCounts> | null>;

/** The batch sizes of the earlier run may differ, but its batches leave no gaps. */
class EarlierAnswers {
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
