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
		summary: 'set the format (default: by the file name, else csv)',
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
		throw new UsageError(`-o ${cx.askedFormat}: an export is ${formats.join(', ')}`);
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
	const texts = textsOf(cx, format, what);
	const exported = path === null ? await toOutput(cx, texts) : await toFile(path, texts, whenThere);
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

interface Text {
	text: string;
	count: number;
}

async function* textsOf<T>(
	cx: CommandContext,
	format: ExportFormat,
	{ pieces, header, line, total }: Exported<T>,
): AsyncGenerator<Text> {
	const progress = cx.progress('exporting', total);
	let exported = 0;
	try {
		if (format === 'csv' && cx.globals.noHeader !== true) yield { text: header, count: 0 };
		for await (const piece of pieces) {
			const text = joined(piece.map(line), format, exported === 0 ? 'first' : 'later');
			yield { text, count: piece.length };
			exported += piece.length;
			progress.update(exported);
		}
		if (format === 'json') yield { text: exported === 0 ? '[]\n' : '\n]\n', count: 0 };
	} finally {
		progress.stop();
	}
}

function joined(lines: readonly string[], format: ExportFormat, place: 'first' | 'later'): string {
	if (lines.length === 0 || format === 'csv') return lines.join('');
	if (format === 'ndjson') return `${lines.join('\n')}\n`;
	return `${place === 'first' ? '[\n' : ',\n'}${lines.join(',\n')}`;
}

async function toOutput(cx: CommandContext, texts: AsyncIterable<Text>): Promise<number> {
	let exported = 0;
	for await (const { text, count } of texts) {
		if (text !== '') await cx.out.raw(text);
		exported += count;
	}
	return exported;
}

async function toFile(path: string, texts: AsyncIterable<Text>, whenThere: WhenThere): Promise<number> {
	const { createOutputFile } = await import('../../tables/output-file.js');
	const file = await createOutputFile(path, whenThere);
	let written = Promise.resolve();
	try {
		let exported = 0;
		for await (const { text, count } of texts) {
			await written;
			written = file.write(text);
			written.catch(() => undefined);
			exported += count;
		}
		await written;
		await file.finish();
		return exported;
	} finally {
		await written.catch(() => undefined);
		await file.discard();
	}
}

/** True if the file exists and may be replaced: with `--force` or `--yes`, or if a person agrees. Throws `Declined`. */
export async function mayReplace(cx: CommandContext, file: string, force: boolean): Promise<boolean> {
	const there = await stat(file).catch(() => null);
	if (there === null || !there.isFile()) return false;
	if (force) return true;
	if (!cx.canAsk && cx.globals.yes !== true) return false;
	await cx.confirm({ kind: 'mild', what: `replace ${file}` });
	return true;
}
