import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { JobError } from '../../jobs/errors.js';
import { makeFolders } from '../../jobs/folders.js';
import type { ImportTotals } from '../../jobs/imports.js';
import type { Table } from '../../tables/read-table.js';
import type { CommandContext } from '../frame/context.js';
import { numberText } from '../render/units.js';

export const importArg = {
	name: 'file',
	summary: 'the table; - reads standard input',
	of: 'file',
	ask: 'File:',
} as const;

export const tableOptions = {
	map: { kind: 'list', placeholder: 'COLUMN=FIELD', summary: 'what a column is; COLUMN=- leaves it out' },
	ignoreUnknown: { kind: 'flag', summary: 'leave unknown columns out' },
	delimiter: { kind: 'text', default: 'auto', summary: 'auto, tab, or one character' },
	encoding: { kind: 'text', default: 'auto', summary: 'auto, utf-8, utf-16, windows-1250, gb18030 …' },
	rejects: { kind: 'path', summary: 'where rejected rows go' },
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
	const table = await openTable(cx.sources.table(file, 'the table'), {
		delimiter,
		encoding,
		signal: cx.signal,
	});
	await sayGuess(cx, importName(file), table);
	return table;
}

export const longestName = 80;
const mostNames = 10;

/** Names of columns for a line: a file may have a thousand of them, and one as long as a page. */
export function shortNames(names: readonly string[]): readonly string[] {
	const cut = names.map((name) => (name.length > longestName ? `${name.slice(0, longestName)}…` : name));
	const more = cut.length - mostNames;
	return more > 0 ? [...cut.slice(0, mostNames), `and ${more} more`] : cut;
}

export async function sayGuess(
	cx: CommandContext,
	name: string,
	{ encoding, isGuessed }: Pick<Table, 'encoding' | 'isGuessed'>,
): Promise<void> {
	if (isGuessed) await cx.warn(`${name}: read as ${encoding}, probably (--encoding names another)`);
}

/** This process alone has it until the command ends. A home that cannot be written costs this check, nothing else. */
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

export function emptyTally(): ImportTotals {
	return { read: 0, created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
}

export function tallySentence({ read, ...counts }: ImportTotals): string {
	const parts = Object.entries(counts).map(([name, count]) => `${name} ${numberText(count)}`);
	return `read ${numberText(read)} = ${parts.join(' + ')}`;
}
