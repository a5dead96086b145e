import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import type { WhenThere } from '../../tables/output-file.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { counted } from '../render/units.js';

const formats = ['csv', 'ndjson', 'json'] as const;
type ExportFormat = (typeof formats)[number];

export const exportArg = {
	name: 'file',
	summary: 'a file; without one, or with -, standard output',
	optional: true,
} as const;

export const exportOptions = {
	format: {
		kind: 'choice',
		choices: formats,
		summary: 'set the format (default: from the file name, or csv)',
	},
	safeCsv: { kind: 'flag', summary: 'keep spreadsheets from running cells as formulas' },
	force: { kind: 'flag', summary: 'replace an existing file' },
} as const;

export interface Destination {
	path: string | null;
	format: ExportFormat;
	whenThere: WhenThere;
	guard: (cell: string) => string;
}

interface Exported<T> {
	pieces: AsyncIterable<readonly T[]>;
	header: string;
	line: (record: T) => string;
	total: number | null;
	noun: string;
	answer?: object;
}

export async function destinationOf(
	cx: CommandContext,
	file: string | undefined,
	{ format, safeCsv, force }: { format: ExportFormat | undefined; safeCsv: boolean; force: boolean },
): Promise<Destination> {
	const path = file === undefined || file === '-' ? null : file;
	const chosen = format ?? (path === null ? cx.out.format : endings.get(extname(path).toLowerCase()));
	const found = formats.find((one) => one === chosen) ?? 'csv';
	if (format === undefined && path === null && cx.askedFormat !== null && cx.askedFormat !== found)
		throw new UsageError(`-o ${cx.askedFormat}: the formats of an export are ${formats.join(', ')}`);
	if (safeCsv && found !== 'csv') throw new UsageError(`--safe-csv needs csv, not ${found}`);
	const { guardFormula } = await import('../../tables/write-csv.js');
	const guard = safeCsv ? guardFormula : (cell: string) => cell;
	return { path, format: found, whenThere: force ? 'replace' : 'refuse', guard };
}

export async function exportRecords<T>(
	cx: CommandContext,
	to: Destination,
	what: Exported<T>,
): Promise<ExitCode> {
	const { path, format, whenThere } = to;
	if (cx.dryRun && path !== null) {
		const { createOutputFile } = await import('../../tables/output-file.js');
		await (await createOutputFile(path, whenThere)).discard();
		await cx.wouldDo(`export ${what.noun}s to ${path}`, { export: path, with: { ...what.answer, format } });
		return exits.done;
	}
	const counts = { exported: 0 };
	const texts = textsOf(cx, format, what, counts);
	if (path === null) for await (const text of texts) await cx.out.raw(text);
	else {
		const { writeOutputFile } = await import('../../tables/output-file.js');
		await writeOutputFile(path, whenThere, texts);
	}
	const { exported } = counts;
	const said = `exported ${counted(exported, what.noun)}`;
	if (path === null) await cx.note(said);
	else await cx.out.document({ ...what.answer, file: path, format, exported }, `${said} to ${path}`);
	return exported === 0 && cx.globals.exitEmpty === true ? exits.empty : exits.done;
}

const endings: ReadonlyMap<string, ExportFormat> = new Map([
	['.csv', 'csv'],
	['.ndjson', 'ndjson'],
	['.jsonl', 'ndjson'],
	['.json', 'json'],
]);

async function* textsOf<T>(
	cx: CommandContext,
	format: ExportFormat,
	{ pieces, header, line, total }: Exported<T>,
	counts: { exported: number },
): AsyncGenerator<string> {
	const progress = cx.progress('exporting', total);
	try {
		if (format === 'csv' && cx.globals.noHeader !== true) yield header;
		for await (const piece of pieces) {
			if (piece.length > 0) yield joined(piece.map(line), format, counts.exported === 0);
			counts.exported += piece.length;
			progress.update(counts.exported);
		}
		if (format === 'json') yield counts.exported === 0 ? '[]\n' : '\n]\n';
	} finally {
		progress.stop();
	}
}

function joined(lines: readonly string[], format: ExportFormat, isFirst: boolean): string {
	if (format === 'csv') return lines.join('');
	if (format === 'ndjson') return `${lines.join('\n')}\n`;
	return `${isFirst ? '[\n' : ',\n'}${lines.join(',\n')}`;
}

/**
 * True if the file exists and `--force`, `--yes` or the user allows its replacement. Throws `Declined` if the user
 * refuses.
 */
export async function mayReplace(cx: CommandContext, file: string, force: boolean): Promise<boolean> {
	const there = await stat(file).catch(() => null);
	if (there === null || !there.isFile()) return false;
	if (force) return true;
	if (!cx.canAsk && cx.globals.yes !== true) return false;
	await cx.confirm({ kind: 'mild', what: `replace ${file}` });
	return true;
}
