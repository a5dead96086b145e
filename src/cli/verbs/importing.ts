/** Parts that imports of subscribers and of suppressions share: table, rejects file, progress and answer. */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { trimWhitespace } from '../../api/schema/python.js';
import { JobError } from '../../jobs/errors.js';
import { makeFolders } from '../../jobs/folders.js';
import type { ImportJob, ImportResult, ImportTotals } from '../../jobs/imports.js';
import type { SingleImports } from '../../jobs/single-imports.js';
import { duplicateCode, nextRejectsPath, type RejectedRow } from '../../tables/finding.js';
import type { HeaderFinding, Mapping } from '../../tables/map-columns.js';
import type { Table } from '../../tables/read-table.js';
import type { RejectsOptions } from '../../tables/write-rejects.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isTable } from '../frame/globals.js';
import { isStream } from '../frame/sources.js';
import { counted, numberText } from '../render/units.js';
import { rowError } from './address-faults.js';

export const importArg = {
	name: 'file',
	summary: 'the table; - reads standard input',
	of: 'file',
	ask: 'File:',
} as const;

export const tableOptions = {
	map: { kind: 'list', placeholder: 'COLUMN=FIELD', summary: 'map a column; COLUMN=- leaves it out' },
	ignoreUnknown: { kind: 'flag', summary: 'leave out unknown columns' },
	delimiter: { kind: 'text', default: 'auto', summary: 'auto, tab, or one character' },
	encoding: { kind: 'text', default: 'auto', summary: 'auto, utf-8, utf-16, windows-1250, gb18030 …' },
	rejects: { kind: 'path', summary: 'write rejected rows to this file' },
} as const;

export function importName(file: string): string {
	return file === '-' ? 'standard input' : file;
}

export async function openImport(
	cx: CommandContext,
	file: string,
	{ delimiter, encoding }: { delimiter: string; encoding: string },
): Promise<Table> {
	const { openTable } = await import('../../tables/read-table.js');
	const source = cx.sources.table(file, 'the table');
	const table = await openTable(source, { delimiter, encoding, signal: cx.signal });
	await sayGuess(cx, importName(file), table);
	return table;
}

export async function sayGuess(
	cx: CommandContext,
	name: string,
	{ encoding, isGuessed }: Pick<Table, 'encoding' | 'isGuessed'>,
): Promise<void> {
	if (isGuessed) await cx.warn(`${name}: its encoding is probably ${encoding}; if not, add --encoding`);
}

export const longestName = 80;
const mostNames = 10;

/** Shortens names of columns for one line: a file may have a thousand columns, and names as long as a page. */
export function shortNames(names: readonly string[]): readonly string[] {
	return fewOf(names.map((name) => (name.length > longestName ? `${name.slice(0, longestName)}…` : name)));
}

function fewOf(texts: readonly string[]): readonly string[] {
	const more = texts.length - mostNames;
	return more > 0 ? [...texts.slice(0, mostNames), `and ${more} more`] : texts;
}

export function columnsRefused(findings: readonly HeaderFinding[], hint: string): UsageError {
	const headless = findings.find(({ code }) => code === 'no_header');
	if (headless !== undefined) return new UsageError(headless.message);
	// List unknown columns last, because `--ignore-unknown` lets the import run despite them.
	const ordered = findings.toSorted((a, b) => Number(a.code === 'unknown') - Number(b.code === 'unknown'));
	const texts = ordered.map(({ message, suggestions }) => {
		const near = [...new Set(suggestions)];
		return near.length === 0 ? message : `${message} (did you mean ${near.join(' or ')}?)`;
	});
	return new UsageError('the columns cannot be used as they are', {
		details: fewOf([...new Set(texts)]),
		hint,
	});
}

/** Locks `id` for this process until the command ends. If the home folder is not writable, continues without a lock. */
export async function holdAlone(cx: CommandContext, id: readonly unknown[], what: string): Promise<void> {
	const { lockFile } = await import('../../jobs/job-files.js');
	const name = createHash('sha256').update(JSON.stringify(id)).digest('hex').slice(0, 32);
	try {
		makeFolders(cx.paths.imports);
		const lock = await lockFile(join(cx.paths.imports, name), what);
		cx.atEnd(() => lock.release());
	} catch (error) {
		if (error instanceof JobError) throw error;
	}
}

export async function rejectsPathOf(
	cx: CommandContext,
	file: string,
	rejects: string | undefined,
): Promise<string | null> {
	if (rejects !== undefined) return rejects;
	if (!(await isStream(file))) return nextRejectsPath(file);
	if (cx.dryRun) return null;
	throw new UsageError(`an import from ${importName(file)} needs --rejects FILE`);
}

/** Throws `JobError` `in_use` if another process holds the rejects file, because two writers would duplicate lines. */
export async function holdRejects(cx: CommandContext, path: string): Promise<void> {
	const there = await stat(path).catch(() => null);
	if (there === null || there.isFile())
		await holdAlone(cx, ['rejects', resolve(path)], `the rejects file ${path}`);
}

export function layoutOfRejects(
	{ header, delimiter, encoding, isMarked }: Table,
	{ leftOut }: Mapping,
	rejects: string | undefined,
): Omit<RejectsOptions, 'path' | 'resume'> {
	const isNumbered = rejects === undefined;
	return { header, leftOut, delimiter, isMarked: isMarked || encoding !== 'utf-8', isNumbered };
}

type Job = Omit<ImportJob, 'signal' | 'onProgress' | 'onResumed' | 'onReject'>;

interface Running {
	write: (rows: Iterable<RejectedRow>) => Promise<void>;
	/** The number of rows, for the progress line. Null: unknown. */
	rows: number | null;
	/** Tells the user how to continue after an error or an interruption. */
	goOn: string;
	onPause?: SingleImports['onPause'];
}

export async function runShown(
	cx: CommandContext,
	job: Job,
	{ write, rows, goOn, onPause }: Running,
): Promise<ImportResult> {
	const { runImport } = await import('../../jobs/imports.js');
	let progress = cx.progress('importing', rows);
	let last: ImportTotals | null = null;
	let isResumed = false;
	onPause?.(({ ms, isAsked }) => {
		const why = isAsked ? 'as the service asks' : 'the service is overloaded';
		progress.update(last?.read ?? 0, `waiting ${Math.ceil(ms / 1000)} s, ${why}`);
	});
	try {
		const running = runImport({
			...job,
			signal: cx.signal,
			onReject: (refused) => write(withAddressFaults(refused, job.mapping)),
			onResumed: ({ read }) => {
				isResumed = true;
				progress = cx.progress('importing', rows, read);
			},
			onProgress: (totals) => {
				last = totals;
				progress.update(totals.read, totals.rejected === 0 ? '' : `${totals.rejected} rejected`);
			},
		});
		return await running.finally(() => progress.stop());
	} catch (error) {
		const totals: ImportTotals | null = last;
		if (totals !== null) await sayTotals(cx, totals);
		if (totals !== null || isResumed) await cx.hint(goOn);
		throw error;
	}
}

/** Throws the signal's reason if the import was interrupted. */
export async function answerImport(
	cx: CommandContext,
	{ totals, outcome }: ImportResult,
	{ path, goOn }: { path: string; goOn: string },
): Promise<ExitCode> {
	await sayTotals(cx, totals);
	const left = rejectsSentence(totals, path);
	if (left !== null) await cx.hint(left);
	if (outcome === 'interrupted') {
		await cx.hint(goOn);
		throw cx.signal.reason;
	}
	return totals.rejected === 0 ? exits.done : exits.partly;
}

async function sayTotals(cx: CommandContext, totals: ImportTotals): Promise<void> {
	const { other_reasons: _, ...counts } = totals;
	await cx.out.document(counts, tallySentence(totals));
}

export function tallySentence({ read, ...counts }: ImportTotals): string {
	const parts = Object.entries(counts).map(([name, count]) => `${name} ${numberText(count)}`);
	return `read ${numberText(read)} = ${parts.join(' + ')}`;
}

export async function planImport(
	cx: CommandContext,
	job: Job,
): Promise<ImportResult & { plan: PlannedRejects }> {
	const { runImport } = await import('../../jobs/imports.js');
	const plan = new PlannedRejects();
	const progress = cx.progress('comparing', null);
	const result = await runImport({
		...job,
		signal: cx.signal,
		onProgress: ({ read }) => progress.update(read),
		onReject: async (refused) => {
			for (const row of withAddressFaults(refused, job.mapping)) plan.add(row);
		},
	}).finally(() => progress.stop());
	// Do not return an interrupted plan, which would look like a complete one.
	cx.signal.throwIfAborted();
	return { ...result, plan };
}

function* withAddressFaults(rows: Iterable<RejectedRow>, { columns }: Mapping): Generator<RejectedRow> {
	const at = columns.find(({ target }) => target === 'email')?.index ?? 0;
	for (const row of rows) yield { ...row, error: rowError(row, trimWhitespace(row.cells[at] ?? '')) };
}

const maxPlanned = 20;
const maxKinds = 5;
/**
 * Errors that quote a value differ in each row. To limit memory, only this many different errors have their own count.
 */
const maxErrors = 1_000;

interface RejectKind {
	code: string;
	error: string;
	rows: number;
}

class PlannedRejects {
	readonly first: Omit<RejectedRow, 'cells'>[] = [];
	readonly #kinds = new Map<string, RejectKind>();
	#all = 0;

	add({ line, code, error }: RejectedRow): void {
		if (code === duplicateCode) return;
		this.#all += 1;
		if (this.first.length < maxPlanned) this.first.push({ line, code, error });
		const known = this.#kinds.get(error);
		if (known !== undefined) known.rows += 1;
		else if (this.#kinds.size < maxErrors) this.#kinds.set(error, { code, error, rows: 1 });
	}

	kinds(): RejectKind[] {
		return [...this.#kinds.values()].sort((a, b) => b.rows - a.rows);
	}

	async say(cx: CommandContext): Promise<void> {
		if (!isTable(cx.out.format)) return;
		for (const { line, code, error } of this.first) await cx.note(`line ${line}: ${error} (${code})`);
		if (this.#all <= maxPlanned) return;
		await cx.note(`and ${counted(this.#all - maxPlanned, 'more rejected row')}; totals by error:`);
		const kinds = this.kinds().slice(0, maxKinds);
		for (const { code, error, rows } of kinds) await cx.note(`${numberText(rows)} × ${error} (${code})`);
		const others = kinds.reduce((left, { rows }) => left - rows, this.#all);
		if (others > 0) await cx.note(`${numberText(others)} with other errors`);
	}
}

function rejectsSentence({ rejected, duplicate }: ImportTotals, path: string): string | null {
	if (rejected + duplicate === 0) return null;
	const rows = [
		...(rejected > 0 ? [counted(rejected, 'rejected row')] : []),
		...(duplicate > 0 ? [counted(duplicate, 'duplicate row')] : []),
	].join(' and ');
	const where = `${rows} ${rejected + duplicate === 1 ? 'is' : 'are'} in ${path}`;
	if (rejected === 0) return `${where}: each row repeats the address of an earlier row`;
	const them = duplicate > 0 ? 'the rejected rows' : rejected === 1 ? 'it' : 'them';
	return `${where}; correct ${them} and import that file`;
}
