/** What every `import` verb shares: a table from a file or standard input, how it is read, and where its rejects go. */
import type { ImportTotals } from '../jobs/imports.js';
import type { CommandContext } from './context.js';
import { UsageError } from './errors.js';
import { counted, shown } from './render/counted.js';
import type { RejectedRow } from './tabular/finding.js';
import type { Table } from './tabular/read-table.js';
import type { RejectsOptions } from './tabular/rejects.js';

/** Where the rows come from. */
export const importArg = { name: 'file', summary: 'the table; - reads standard input' } as const;

/** How the table is read. */
export const tableOptions = {
	map: { kind: 'list', placeholder: 'COLUMN=FIELD', summary: 'what a column is; COLUMN=- leaves it out' },
	ignoreUnknown: { kind: 'flag', summary: 'leave unknown columns out' },
	delimiter: { kind: 'text', default: 'auto', summary: 'auto, tab, or one character' },
	encoding: { kind: 'text', default: 'auto', summary: 'auto, utf-8, utf-16le, windows-1251 …' },
	rejects: { kind: 'text', placeholder: 'FILE', summary: 'where rejected rows go' },
} as const;

/** As it was given; standard input by its name. */
export function importName(file: string): string {
	return file === '-' ? 'standard input' : file;
}

/** The table, its header read; the caller closes it. Throws `TableError` for what is no table. */
export async function openImport(
	cx: CommandContext,
	file: string,
	{ delimiter, encoding }: { delimiter: string; encoding: string },
): Promise<Table> {
	const { openTable } = await import('./tabular/read-table.js');
	return openTable(cx.sources.table(file), { delimiter, encoding, signal: cx.signal });
}

/** Beside the file unless it is named; standard input has no beside. */
export function pathOfRejects(file: string, rejects: string | undefined): string {
	if (rejects !== undefined) return rejects;
	if (file === '-') throw new UsageError('an import from standard input needs --rejects FILE');
	return `${file}.rejects.csv`;
}

/** As the source is, so that the same program opens both; always UTF-8, which what is no UTF-8 needs a mark for. */
export function layoutOfRejects(
	{ header, delimiter, encoding, isMarked }: Table,
	{ leftOut }: { leftOut: readonly number[] },
): Pick<RejectsOptions, 'header' | 'leftOut' | 'delimiter' | 'isMarked'> {
	return { header, leftOut, delimiter, isMarked: isMarked || encoding !== 'utf-8' };
}

/** Nothing was read yet. */
export function emptyTally(): ImportTotals {
	return { read: 0, created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
}

/** `read 3 = created 2 + …`. */
export function tallySentence({ read, ...counts }: ImportTotals): string {
	const parts = Object.entries(counts).map(([name, count]) => `${name} ${shown(count)}`);
	return `read ${shown(read)} = ${parts.join(' + ')}`;
}

/** The first rejected rows of a plan, for whoever reads its counts in a table; `rejected` is how many there are in all. */
export async function sayPlannedRejects(
	cx: CommandContext,
	rejects: readonly Omit<RejectedRow, 'cells'>[],
	rejected: number,
): Promise<void> {
	if (cx.out.format !== 'table' && cx.out.format !== 'wide') return;
	for (const { line, code, error } of rejects.slice(0, plannedRejects))
		await cx.note(`line ${line}: ${error} (${code})`);
	if (rejected > plannedRejects)
		await cx.note(`and ${counted(rejected - plannedRejects, 'more rejected row')}`);
}

/** In a table no more rejected rows of a plan are told one by one. */
const plannedRejects = 5;

/** Options of an import that say what its cells mean, and have to be given with its rejects file again. */
export interface OptionsAgain {
	map: readonly string[];
	/** `suppressions import` alone: as given. */
	reason?: string | undefined;
	expires?: string | undefined;
}

/** Null: no row was left out. Duplicates alone leave nothing to do. */
export function rejectsSentence(
	{ rejected, duplicate }: ImportTotals,
	path: string,
	options: OptionsAgain,
): string | null {
	const duplicates = counted(duplicate, 'duplicate row');
	if (rejected === 0 && duplicate === 0) return null;
	if (rejected === 0)
		return `${duplicates} left out, the first row of each address counts: ${duplicate === 1 ? 'it is' : 'they are'} in ${path}`;
	const rows = counted(rejected, 'rejected row');
	const that = `that file${sameOptions(options)}`;
	if (duplicate > 0)
		return `${rows} and ${duplicates} are in ${path}; mend what was rejected and import ${that}, which leaves the duplicates out`;
	return rejected === 1
		? `${rows} is in ${path}; mend it and import ${that}`
		: `${rows} are in ${path}; mend them and import ${that}`;
}

/** What was left out, is left out again by itself; what a column was named is not in the file. */
function sameOptions({ map, reason, expires }: OptionsAgain): string {
	const again = [
		...(map.some((pair) => !/=\s*-\s*$/.test(pair)) ? ['--map'] : []),
		...(reason === undefined ? [] : ['--reason']),
		...(expires === undefined ? [] : ['--expires']),
	];
	return again.length === 0 ? '' : ` with the same ${again.join(' and ')}`;
}
