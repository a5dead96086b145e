import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { trimWhitespace } from '../../api/schema/python.js';
import type { ImportTotals } from '../../jobs/imports.js';
import { duplicateCode, type RejectedRow, TableError } from '../../tables/finding.js';
import type { Table } from '../../tables/read-table.js';
import { nextRejectsPath } from '../../tables/rejects-names.js';
import type { RejectsOptions } from '../../tables/write-rejects.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { isStream } from '../frame/sources.js';
import { counted, numberText } from '../render/units.js';
import { rowError } from './address-faults.js';
import { holdAlone, importName } from './importing.js';

/**
 * The path of the rejects: `--rejects`, or by default that of the source with `.rejects.csv`, and the next of their
 * series for a rejects file. A stream has no default; in a dry run it needs none (null). Throws `UsageError`.
 */
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

/** One run at a time writes a rejects file: two of them double its lines. Throws `JobError` `in_use`. */
export async function holdRejects(cx: CommandContext, path: string): Promise<void> {
	const there = await stat(path).catch(() => null);
	if (there === null || there.isFile())
		await holdAlone(cx, ['rejects', resolve(path)], `the rejects file ${path}`);
}

export function layoutOfRejects(
	{ header, delimiter, encoding, isMarked }: Table,
	{ leftOut }: { leftOut: readonly number[] },
): Pick<RejectsOptions, 'header' | 'leftOut' | 'delimiter' | 'isMarked'> {
	return { header, leftOut, delimiter, isMarked: isMarked || encoding !== 'utf-8' };
}

export function* withAddressFaults(rows: Iterable<RejectedRow>, at: number): Generator<RejectedRow> {
	for (const row of rows) yield { ...row, error: rowError(row, trimWhitespace(row.cells[at] ?? '')) };
}

export async function foreseeRejects(cx: CommandContext, options: RejectsOptions): Promise<void> {
	const { assertRejects } = await import('../../tables/write-rejects.js');
	await assertRejects(options).catch(async (error: unknown) => {
		if (!(error instanceof TableError) || error.code !== 'file_exists') throw error;
		const { message, hint } = error;
		await cx.warn(`${message}, for which the import is refused`, ...(hint === null ? [] : [hint]));
	});
}

const maxPlanned = 20;
const maxKinds = 5;
/** Errors may quote what they refuse: more of them than this are counted together. */
const maxErrors = 1_000;

interface RejectKind {
	code: string;
	error: string;
	rows: number;
}

/** The rejected rows of a plan: the first of them, and how many there are of each kind. Duplicates are none. */
export class PlannedRejects {
	readonly first: Omit<RejectedRow, 'cells'>[] = [];
	readonly #kinds = new Map<string, RejectKind>();
	#all = 0;

	add({ line, code, error }: Omit<RejectedRow, 'cells'>): void {
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
		if (cx.out.format !== 'table' && cx.out.format !== 'wide') return;
		for (const { line, code, error } of this.first) await cx.note(`line ${line}: ${error} (${code})`);
		if (this.#all <= maxPlanned) return;
		await cx.note(`and ${counted(this.#all - maxPlanned, 'more rejected row')}; in all:`);
		const kinds = this.kinds().slice(0, maxKinds);
		for (const { code, error, rows } of kinds) await cx.note(`${numberText(rows)} × ${error} (${code})`);
		const others = kinds.reduce((left, { rows }) => left - rows, this.#all);
		if (others > 0) await cx.note(`${numberText(others)} with other errors`);
	}
}

export interface OptionsAgain {
	map: readonly string[];
	stateWords?: readonly string[];
	reason?: string | undefined;
	expires?: string | undefined;
}

/**
 * Null: no row was left out. Duplicates alone leave nothing to do. `asked`: the path by default, or as given; a file that
 * was there keeps it.
 */
export function rejectsSentence(
	{ rejected, duplicate }: ImportTotals,
	{ path, asked }: { path: string; asked: string },
	options: OptionsAgain,
): string | null {
	const duplicates = counted(duplicate, 'duplicate row');
	if (rejected === 0 && duplicate === 0) return null;
	const place = path === asked ? path : `${path} (${asked} was there already)`;
	if (rejected === 0)
		return `${duplicates} left out, the first row of each address counts: ${duplicate === 1 ? 'it is' : 'they are'} in ${place}`;
	const rows = counted(rejected, 'rejected row');
	const that = `that file${sameOptions(options)}`;
	if (duplicate > 0)
		return `${rows} and ${duplicates} are in ${place}; correct what was rejected and import ${that}, which leaves the duplicates out`;
	return rejected === 1
		? `${rows} is in ${place}; correct it and import ${that}`
		: `${rows} are in ${place}; correct them and import ${that}`;
}

function sameOptions({ map, stateWords = [], reason, expires }: OptionsAgain): string {
	const again = [
		...(map.some((pair) => !/=\s*-\s*$/.test(pair)) ? ['--map'] : []),
		...(stateWords.length > 0 ? ['--state-words'] : []),
		...(reason === undefined ? [] : ['--reason']),
		...(expires === undefined ? [] : ['--expires']),
	];
	return again.length === 0 ? '' : ` with the same ${again.join(' and ')}`;
}
