/**
 * An import as a session of numbered batches: rows are read, bundled, put, and what was refused is handed back with
 * its line. Whatever was acknowledged stays; the same key goes on after it. Memory: one batch.
 */
import type { Call } from '../api/api.js';
import type { Ack, ImportCounts, ImportSpec, Imports } from '../api/capabilities.js';
import { ApiError } from '../api/errors.js';
import type { RejectedRow, TableRow } from '../cli/tabular/finding.js';
import type { Mapping } from '../cli/tabular/header.js';
import { type Bundle, bundleRows } from './import-bundles.js';

/** read = created + updated + unchanged + duplicate + rejected, always. */
export interface ImportTotals extends ImportCounts {
	read: number;
}

/** Stop when more rows than this are rejected: a number, or a share of those read (looked at from 1,000 rows on). */
export type MaxErrors = { rows: number } | { percent: number };

export interface ImportJob {
	imports: Imports;
	/** The rows behind the header, once. */
	rows: AsyncIterable<TableRow>;
	mapping: Mapping;
	spec: ImportSpec;
	/** Names the job: list, source hash, mapping and options. */
	key: string;
	/** Rows a batch, 5,000 unless given; a batch is also at most 4 MiB. */
	batchRows?: number;
	maxErrors?: MaxErrors;
	/** After each acknowledged batch. */
	onProgress?: (totals: ImportTotals) => void;
	/**
	 * Rejected and duplicate rows of an acknowledged batch, in the order of lines. When it resolves they are kept: a
	 * run that goes on relies on it.
	 */
	onReject?: (rows: readonly RejectedRow[]) => Promise<void>;
	/** Stops after the batch in flight. */
	signal?: AbortSignal;
}

export interface ImportResult {
	outcome: 'done' | 'too_many_errors' | 'interrupted';
	/** `done`: the whole session, earlier runs included. Else what this run settled. */
	totals: ImportTotals;
	/** Rows put by an earlier run and passed over by this one; 0 for a new session. */
	resumedAt: number;
}

/** Throws `ApiError` as it comes (list gone: `not_found`); what was acknowledged before stays. */
export async function runImport(job: ImportJob): Promise<ImportResult> {
	const session = await job.imports.open(job.key, job.spec, callOf(job.signal));
	const run = new ImportRun(job, session.id, session.position);
	const outcome = await run.work();
	const totals = outcome === 'done' ? await run.finish() : run.totals;
	return { outcome, totals, resumedAt: session.position };
}

class ImportRun {
	totals: ImportTotals = { read: 0, created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
	readonly #job: ImportJob;
	readonly #id: string;
	readonly #resumedAt: number;
	/** Rows refused here and never put, in this run and, read again, in earlier ones. */
	#local = 0;

	constructor(job: ImportJob, id: string, position: number) {
		this.#job = job;
		this.#id = id;
		this.#resumedAt = position;
	}

	async work(): Promise<ImportResult['outcome']> {
		const { rows, mapping, batchRows = 5_000, signal } = this.#job;
		try {
			for await (const bundle of bundleRows(rows, mapping, batchRows)) {
				if (signal?.aborted) return 'interrupted';
				await this.#settle(bundle);
				if (this.#hasTooManyErrors(false)) return 'too_many_errors';
			}
		} catch (error) {
			// Reading was broken off by the signal: what is acknowledged stays, the rest comes with the next run.
			if (signal?.aborted && error === signal.reason) return 'interrupted';
			throw error;
		}
		return this.#hasTooManyErrors(true) ? 'too_many_errors' : 'done';
	}

	/** The session's counts and the rows refused here; a new session's must be those acknowledged. */
	async finish(): Promise<ImportTotals> {
		const counts = await this.#job.imports.finish(this.#id);
		const totals = { ...counts, rejected: counts.rejected + this.#local, read: sum(counts) + this.#local };
		if (this.#resumedAt === 0 && sum(this.totals) !== sum(totals)) {
			throw new ApiError(
				'bad_answer',
				`the import counted ${sum(totals)} rows, ${sum(this.totals)} were acknowledged`,
			);
		}
		return totals;
	}

	async #settle(bundle: Bundle): Promise<void> {
		this.#local += bundle.rejects.length;
		const end = bundle.first + bundle.rows.length;
		if (this.#resumedAt > 0 && end <= this.#resumedAt) return this.#passOver(bundle);
		const isBrokenOff = bundle.first < this.#resumedAt;
		const { batch, ack } = isBrokenOff ? await this.#goOn(bundle) : await this.#putNew(bundle);
		await this.#report([...bundle.rejects, ...(ack === null ? [] : refusedRows(batch, ack))]);
		this.#count(bundle.rejects.length, batch.rows.length, ack);
		this.#job.onProgress?.({ ...this.totals });
	}

	async #putNew(batch: Bundle): Promise<{ batch: Bundle; ack: Ack<ImportCounts> | null }> {
		return { batch, ack: batch.rows.length === 0 ? null : await this.#put(batch) };
	}

	/**
	 * An earlier run put the first of these rows and was not told which of them were refused. Put again, the whole
	 * batch is answered; where batches are cut otherwise now, only the rest can be put.
	 */
	async #goOn(bundle: Bundle): Promise<{ batch: Bundle; ack: Ack<ImportCounts> | null }> {
		const ack = await this.#put(bundle).catch(nullIfCutOtherwise);
		return ack !== null
			? { batch: bundle, ack }
			: this.#putNew(withoutFirst(bundle, this.#resumedAt - bundle.first));
	}

	/**
	 * An earlier run has put these rows. It may have ended between the last acknowledgement and the rejects: that
	 * batch is put again, which gives the same answer. Where batches are cut otherwise now, there is no such answer.
	 */
	async #passOver(bundle: Bundle): Promise<void> {
		const isLast = bundle.rows.length > 0 && bundle.first + bundle.rows.length === this.#resumedAt;
		const ack = isLast ? await this.#put(bundle).catch(nullIfConflict) : null;
		await this.#report([...bundle.rejects, ...(ack === null ? [] : refusedRows(bundle, ack))]);
	}

	async #put(bundle: Bundle): Promise<Ack<ImportCounts>> {
		const columns = this.#job.mapping.columns.map(({ target }) => target);
		const cells = bundle.rows.flatMap((row) => row.cells);
		// Without the signal: a batch in flight is waited for, so that what is reported is what was done.
		const ack = await this.#job.imports.put(this.#id, { first: bundle.first, columns, cells });
		const { first, rows } = bundle;
		const isWhole = sum(ack.counts) === rows.length;
		if (isWhole && ack.rejects.every(({ row }) => row >= first && row < first + rows.length)) return ack;
		throw new ApiError(
			'bad_answer',
			`the batch of rows ${first} to ${first + rows.length} was answered with other rows or counts`,
		);
	}

	async #report(rejects: RejectedRow[]): Promise<void> {
		if (rejects.length > 0) await this.#job.onReject?.(rejects.sort((a, b) => a.line - b.line));
	}

	#count(refusedHere: number, put: number, ack: Ack<ImportCounts> | null): void {
		const { totals } = this;
		totals.read += refusedHere + put;
		totals.rejected += refusedHere + (ack?.counts.rejected ?? 0);
		totals.created += ack?.counts.created ?? 0;
		totals.updated += ack?.counts.updated ?? 0;
		totals.unchanged += ack?.counts.unchanged ?? 0;
		totals.duplicate += ack?.counts.duplicate ?? 0;
	}

	#hasTooManyErrors(isEnd: boolean): boolean {
		const { maxErrors } = this.#job;
		const { rejected, read } = this.totals;
		if (maxErrors === undefined) return false;
		if ('rows' in maxErrors) return rejected > maxErrors.rows;
		return (isEnd || read >= 1_000) && rejected * 100 > maxErrors.percent * read;
	}
}

function callOf(signal: AbortSignal | undefined): Call {
	return signal === undefined ? {} : { signal };
}

function sum({ created, updated, unchanged, duplicate, rejected }: ImportCounts): number {
	return created + updated + unchanged + duplicate + rejected;
}

function withoutFirst(bundle: Bundle, count: number): Bundle {
	return { ...bundle, first: bundle.first + count, rows: bundle.rows.slice(count) };
}

/** Refused rows with the line and cells they have in the file; duplicates come with the code `duplicate`. */
function refusedRows({ first, rows }: Bundle, ack: Ack<ImportCounts>): RejectedRow[] {
	return ack.rejects.flatMap(({ row, code, error }) => {
		const found = rows[row - first];
		return found === undefined ? [] : [{ line: found.line, code, error, cells: found.original }];
	});
}

/** A deployment that answers with what the same first row was answered before does not speak of these rows. */
function nullIfCutOtherwise(error: unknown): null {
	if (error instanceof ApiError && error.code === 'bad_answer') return null;
	return nullIfConflict(error);
}

function nullIfConflict(error: unknown): null {
	if (error instanceof ApiError && error.code === 'conflict') return null;
	throw error;
}
