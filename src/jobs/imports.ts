/**
 * An import as a session of numbered batches: rows are read, bundled, put, and what was refused is handed back with
 * its line. Whatever was acknowledged stays; the same key goes on after it. An engine in this process is put the next
 * batches before it has answered, so that they share a commit. Memory: what is in flight.
 */
import type { Call } from '../api/api.js';
import type { Ack, ImportCounts, ImportSpec, Imports, Reject, Session } from '../api/capabilities.js';
import { ApiError } from '../api/errors.js';
import { duplicateCode, type RejectedRow, type TableRow } from '../cli/tabular/finding.js';
import type { Mapping } from '../cli/tabular/header.js';
import { bundleRows } from './import-bundles.js';
import { columnsOf, type Load, loadPacked, loadRows } from './import-loads.js';
import { EarlierAnswers } from './import-recall.js';
import type { ReadBundles } from './packed-bundles.js';

/** read = created + updated + unchanged + duplicate + rejected, always. */
export interface ImportTotals extends ImportCounts {
	read: number;
}

/**
 * Stop when more rows than this are rejected, earlier runs included: a number, or a share of those read (looked at from
 * 1,000 rows on, and at the end).
 */
export type MaxErrors = { rows: number } | { percent: number };

export interface ImportJob {
	imports: Imports;
	/** The rows behind the header, once. */
	rows: AsyncIterable<TableRow>;
	/** The same rows, read and bundled elsewhere: taken instead of `rows`, of which then none is asked for. */
	readBundles?: ReadBundles;
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
	 * Rejected and duplicate rows of an acknowledged batch, in the order of lines, to be walked through once and at once.
	 * When it resolves they are kept: a run that goes on relies on it.
	 */
	onReject?: (rows: Iterable<RejectedRow>) => Promise<void>;
	/** Stops after the batches in flight. */
	signal?: AbortSignal;
}

export interface ImportResult {
	outcome: 'done' | 'too_many_errors' | 'interrupted';
	/** Every row was read and the session is closed; with too many errors it may be so or not. */
	isComplete: boolean;
	/** Of the whole session, earlier runs included as far as the deployment tells of them. */
	totals: ImportTotals;
	/** Rows put by an earlier run and passed over by this one; 0 for a new session. */
	resumedAt: number;
}

/** Throws `ApiError` as it comes (list gone: `not_found`); what was acknowledged before stays. */
export async function runImport(job: ImportJob): Promise<ImportResult> {
	const session = await job.imports.open(job.key, job.spec, callOf(job.signal));
	const run = new ImportRun(job, session);
	const resumedAt = session.position;
	const end = await run.work();
	if (end !== 'end') return { outcome: end, isComplete: false, totals: run.totals, resumedAt };
	const totals = await run.finish();
	const outcome = hasTooManyErrors(job.maxErrors, totals, 'end') ? 'too_many_errors' : 'done';
	return { outcome, isComplete: true, totals, resumedAt };
}

/** A transaction takes what is in flight, and one of 100,000 rows costs half of ten of 10,000. */
const maxRowsInFlight = 125_000;
/** Bytes, for rows that are long. */
const maxSizeInFlight = 12 * 1024 * 1024;

interface Answered {
	load: Load;
	/** Refused rows of the load that were put, in this run or an earlier one. */
	rejects: readonly Reject[];
	/** What this run put; null: an earlier one put it all. */
	put: ImportCounts | null;
}

/** Put and not settled. */
interface InFlight {
	load: Load;
	answer: Promise<Answered>;
	isAnswered: boolean;
}

/** How reading ended: where the table does, or before. */
type ReadingEnd = 'end' | 'too_many_errors' | 'interrupted';

class ImportRun {
	totals: ImportTotals;
	readonly #job: ImportJob;
	readonly #id: string;
	readonly #resumedAt: number;
	/** Oldest first. */
	readonly #flight: InFlight[] = [];
	readonly #earlier: EarlierAnswers;
	/** Rows that are never put: refused here, in this run and, read again, in earlier ones. */
	#local: ImportCounts = nothingPut.counts;

	constructor(job: ImportJob, { id, position, counts = nothingPut.counts }: Session) {
		this.#job = job;
		this.totals = { read: sum(counts), ...counts };
		this.#id = id;
		this.#resumedAt = position;
		this.#earlier = new EarlierAnswers((first) => this.#askAgain(first), position);
	}

	async work(): Promise<ReadingEnd> {
		const { signal } = this.#job;
		try {
			const end = await this.#readAll();
			await this.#land('all');
			return end;
		} catch (error) {
			// Reading was broken off by the signal: what is acknowledged stays, the rest comes with the next run.
			const isStopped = signal?.aborted === true && error === signal.reason;
			if (isStopped) await this.#land('all');
			await Promise.allSettled(this.#flight.map(({ answer }) => answer));
			if (isStopped) return 'interrupted';
			throw error;
		}
	}

	async #readAll(): Promise<ReadingEnd> {
		for await (const load of this.#loads()) {
			if (this.#job.signal?.aborted) return 'interrupted';
			if (this.#isNew(load) && hasTooManyErrors(this.#job.maxErrors, this.totals, 'midway'))
				return 'too_many_errors';
			this.#takeOff(load);
			await this.#land(this.#mayWait(load) ? 'answered' : 'all');
		}
		return 'end';
	}

	/**
	 * Whether any of its rows is yet to be put. The limit is asked for before such a batch: behind the last one nothing is
	 * left to be stopped, and what earlier runs put is read to its end, so that the totals are theirs.
	 */
	#isNew({ first, count }: Load): boolean {
		return first + count > this.#resumedAt;
	}

	async *#loads(): AsyncGenerator<Load, void, undefined> {
		const { rows, readBundles, mapping, batchRows: maxRows = 5_000 } = this.#job;
		if (readBundles === undefined) {
			for await (const bundle of bundleRows(rows, mapping, maxRows)) yield loadRows(bundle, mapping);
			return;
		}
		const form = this.#isChecked ? 'checked' : 'cells';
		for await (const packed of readBundles({ mapping, maxRows, form })) yield loadPacked(packed, mapping);
	}

	/**
	 * Whether the next batch may be put before this one is answered: only checked rows are taken in order. A limit of
	 * errors is kept to the batch, and what an earlier run put is settled before anything new.
	 */
	#mayWait({ first }: Load): boolean {
		return this.#isChecked && this.#job.maxErrors === undefined && first >= this.#resumedAt;
	}

	get #isChecked(): boolean {
		return this.#job.readBundles !== undefined && this.#job.imports.putChecked !== undefined;
	}

	#takeOff(load: Load): void {
		const flying: InFlight = { load, answer: this.#begin(load), isAnswered: false };
		const onEnd = () => {
			flying.isAnswered = true;
		};
		// It may fail long before its turn to be looked at.
		flying.answer.then(onEnd, onEnd);
		this.#flight.push(flying);
	}

	/** Settles the oldest batches: all, or those that are answered and as many as are too many. */
	async #land(which: 'all' | 'answered'): Promise<void> {
		for (let oldest = this.#flight[0]; oldest !== undefined; oldest = this.#flight[0]) {
			if (which === 'answered' && !oldest.isAnswered && !this.#isFull()) return;
			await this.#settle(await oldest.answer);
			this.#flight.shift();
		}
	}

	#isFull(): boolean {
		const rows = this.#flight.reduce((sum, { load }) => sum + load.count, 0);
		const size = this.#flight.reduce((sum, { load }) => sum + load.size, 0);
		return rows > maxRowsInFlight || size > maxSizeInFlight;
	}

	/** The session's counts and the rows refused here; a new session's must be those acknowledged. */
	async finish(): Promise<ImportTotals> {
		const counts = await this.#job.imports.finish(this.#id);
		const all = addCounts(counts, this.#local);
		const totals = { read: sum(all), ...all };
		if (this.#resumedAt === 0 && sum(this.totals) !== sum(totals)) {
			throw new ApiError(
				'bad_answer',
				`the import counted ${sum(totals)} rows, ${sum(this.totals)} were acknowledged`,
			);
		}
		return totals;
	}

	#begin(load: Load): Promise<Answered> {
		if (this.#resumedAt > 0 && load.first + load.count <= this.#resumedAt) return this.#passOver(load);
		return load.first < this.#resumedAt ? this.#goOn(load) : this.#putNew(load);
	}

	async #settle({ load, rejects, put }: Answered): Promise<void> {
		if (load.rejects.length + rejects.length > 0) await this.#job.onReject?.(refusedRows(load, rejects));
		load.settle();
		const local = countsOf(load.rejects);
		this.#local = addCounts(this.#local, local);
		const all = addCounts(addCounts(this.totals, local), put ?? nothingPut.counts);
		this.totals = { read: sum(all), ...all };
		if (put === null) return;
		this.#job.onProgress?.({ ...this.totals });
	}

	async #putNew(load: Load): Promise<Answered> {
		const { counts, rejects } = load.count === 0 ? nothingPut : await this.#put(load);
		return { load, rejects, put: counts };
	}

	/** An earlier run put the first of these rows and was not told, or did not write down, which were refused. */
	async #goOn(load: Load): Promise<Answered> {
		const earlier = await this.#earlier.rejectsOf(load.first, this.#resumedAt);
		const { rejects, put } = await this.#putNew(load.withoutFirst(this.#resumedAt - load.first));
		return { load, rejects: [...earlier, ...rejects], put };
	}

	/**
	 * An earlier run has put these rows. It may have ended between the last acknowledgements and their rejects, of all
	 * that was in flight: those are asked for once more.
	 */
	async #passOver(load: Load): Promise<Answered> {
		const end = load.first + load.count;
		const isUnsure = end > this.#resumedAt - 2 * maxRowsInFlight;
		const rejects = isUnsure && load.count > 0 ? await this.#earlier.rejectsOf(load.first, end) : [];
		return { load, rejects, put: null };
	}

	/** A batch without rows is answered as the one that began there was. */
	async #askAgain(first: number): Promise<Ack<ImportCounts> | null> {
		const { imports, mapping } = this.#job;
		return imports.put(this.#id, { first, columns: columnsOf(mapping), cells: [] }).catch(nullIfConflict);
	}

	async #put(load: Load): Promise<Ack<ImportCounts>> {
		// Without the signal: a batch in flight is waited for, so that what is reported is what was done.
		const ack = await load.put(this.#job.imports, this.#id);
		const { first, count } = load;
		if (sum(ack.counts) === count && ack.rejects.every(({ row }) => row >= first && row < first + count)) {
			return ack;
		}
		throw new ApiError(
			'bad_answer',
			`the batch of rows ${first} to ${first + count} was answered with other rows or counts`,
		);
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

function callOf(signal: AbortSignal | undefined): Call {
	return signal === undefined ? {} : { signal };
}

function sum({ created, updated, unchanged, duplicate, rejected }: ImportCounts): number {
	return created + updated + unchanged + duplicate + rejected;
}

function addCounts(a: ImportCounts, b: ImportCounts): ImportCounts {
	return {
		created: a.created + b.created,
		updated: a.updated + b.updated,
		unchanged: a.unchanged + b.unchanged,
		duplicate: a.duplicate + b.duplicate,
		rejected: a.rejected + b.rejected,
	};
}

/** What rows that are not put count as. */
function countsOf(rejects: readonly RejectedRow[]): ImportCounts {
	const duplicate = rejects.filter(({ code }) => code === duplicateCode).length;
	return { ...nothingPut.counts, duplicate, rejected: rejects.length - duplicate };
}

const nothingPut: Pick<Ack<ImportCounts>, 'counts' | 'rejects'> = {
	counts: { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 },
	rejects: [],
};

/**
 * What was refused of a load, there and here, by lines, with the cells of the file; duplicates come with the code
 * `duplicate`. One by one: there may be as many as rows.
 */
function* refusedRows(load: Load, rejects: readonly Reject[]): Generator<RejectedRow, void, undefined> {
	let local = 0;
	for (const { row, code, error } of [...rejects].sort((a, b) => a.row - b.row)) {
		const { line, original: cells } = load.original(row - load.first);
		for (let next = load.rejects[local]; next !== undefined && next.line < line; next = load.rejects[local]) {
			yield next;
			local += 1;
		}
		yield { line, code, error, cells };
	}
	yield* load.rejects.slice(local);
}

function nullIfConflict(error: unknown): null {
	if (error instanceof ApiError && error.code === 'conflict') return null;
	throw error;
}
