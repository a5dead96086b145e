/** `suppressions export`: all of them as a file that imports again, or on standard output. */
import { extname } from 'node:path';
import { need } from '../../../api/capabilities.js';
import type { Suppression, SuppressionFilter, Suppressions } from '../../../api/suppressions.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { parseFields, unknownField } from '../../render/fields.js';
import type { SuppressionPart } from '../../tabular/suppression-columns.js';
import { filterOf, filterOptions } from './filters.js';

const fileFormats = ['csv', 'ndjson', 'json'] as const;
type FileFormat = (typeof fileFormats)[number];

const pieceSize = 1000;

export const suppressionExport = command({
	name: 'export',
	summary: 'write the suppressions to a file, or to standard output',
	description:
		'The file imports again to the same suppressions. It is written under another name and put into place when it is ' +
		'whole; an existing one is replaced with --force only. With --safe-csv, cells that a spreadsheet would take for ' +
		'formulas begin with an apostrophe: that file is for spreadsheets, not for importing. What has expired is not in it.',
	args: [{ name: 'file', summary: 'where to; - or nothing is standard output', optional: true }],
	options: {
		...filterOptions,
		format: {
			kind: 'choice',
			choices: fileFormats,
			summary: 'by default what the name of the file says, or csv',
		},
		safeCsv: { kind: 'flag', summary: 'no cell is a formula; for spreadsheets, not for importing' },
		force: { kind: 'flag', summary: 'replace the file if it is there' },
	},
	output: 'with a file: {"file", "format", "exported"}; else the suppressions themselves',
	exits: [74],
	examples: [
		'mailctl suppressions export stopped.csv',
		'mailctl suppressions export --reason UNSUBSCRIBED --format ndjson',
	],
	run: async (cx, { args, options }): Promise<ExitCode> => {
		const path = args.file === undefined || args.file === '-' ? null : args.file;
		const layout = await layoutOf(cx, path, options);
		// Before the first byte: elsewhere there is nothing to export.
		const suppressions = await need(await cx.api(), 'suppressions');
		const pieces = walkSlices(suppressions, filterOf(options), cx.signal);
		const texts = textsOf(cx, pieces, layout);
		const exported =
			path === null
				? await toOutput(cx, texts)
				: await toFile(path, texts, options.force ? 'replace' : 'refuse');
		const said = `exported ${exported.toLocaleString('en-US')} suppressions`;
		if (path === null) await cx.note(said);
		else await cx.out.document({ file: path, format: layout.format, exported }, `${said} to ${path}`);
		return exported === 0 && cx.globals.exitEmpty === true ? exits.empty : exits.done;
	},
});

interface Layout {
	format: FileFormat;
	parts: readonly SuppressionPart[];
	guard: ((cell: string) => string) | undefined;
}

async function layoutOf(
	cx: CommandContext,
	path: string | null,
	{ format, safeCsv }: { format: FileFormat | undefined; safeCsv: boolean },
): Promise<Layout> {
	const chosen = format ?? (path === null ? cx.out.format : extensions.get(extname(path).toLowerCase()));
	const found = fileFormats.find((one) => one === chosen) ?? 'csv';
	if (safeCsv && found !== 'csv') throw new UsageError(`--safe-csv goes with csv, not with ${found}`);
	const { suppressionParts } = await import('../../tabular/suppression-columns.js');
	const { guardFormula } = await import('../../tabular/write-people.js');
	const parts = parseFields(cx.globals.fields)?.map((name) => {
		const part = suppressionParts.find((one) => one === name);
		if (part === undefined) throw unknownField(name, suppressionParts);
		return part;
	});
	return { format: found, parts: parts ?? suppressionParts, guard: safeCsv ? guardFormula : undefined };
}

const extensions: ReadonlyMap<string, FileFormat> = new Map([
	['.csv', 'csv'],
	['.ndjson', 'ndjson'],
	['.jsonl', 'ndjson'],
	['.json', 'json'],
]);

/** A piece of the file, and how many suppressions are in it. */
interface Text {
	text: string;
	count: number;
}

async function* textsOf(
	cx: CommandContext,
	pieces: AsyncIterable<readonly Suppression[]>,
	{ format, parts, guard }: Layout,
): AsyncGenerator<Text> {
	const { suppressionHeader, suppressionLine } = await import('../../tabular/suppression-columns.js');
	const progress = cx.progress('exporting', null);
	let exported = 0;
	try {
		if (format === 'csv') yield { text: suppressionHeader(parts), count: 0 };
		for await (const piece of pieces) {
			const lines = piece.map((one) =>
				format === 'csv' ? suppressionLine(one, parts, guard) : JSON.stringify(pick(one, parts)),
			);
			yield { text: joined(lines, format, exported === 0 ? 'first' : 'later'), count: piece.length };
			exported += piece.length;
			progress.update(exported);
		}
		if (format === 'json') yield { text: exported === 0 ? '[]\n' : '\n]\n', count: 0 };
	} finally {
		progress.stop();
	}
}

/** By key: a long walk is no snapshot, and holds nothing. */
async function* walkSlices(
	suppressions: Suppressions,
	filter: SuppressionFilter,
	signal: AbortSignal,
): AsyncGenerator<readonly Suppression[]> {
	for (let cursor: string | null = ''; cursor !== null; ) {
		signal.throwIfAborted();
		const request: Parameters<Suppressions['slice']>[0] = {
			...filter,
			limit: pieceSize,
			...(cursor !== '' && { cursor }),
		};
		const { results, next } = await suppressions.slice(request, { signal });
		yield results;
		cursor = next;
	}
}

function pick(one: Suppression, parts: readonly SuppressionPart[]): object {
	return Object.fromEntries(parts.map((part) => [part, one[part]]));
}

function joined(lines: readonly string[], format: FileFormat, place: 'first' | 'later'): string {
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

async function toFile(
	path: string,
	texts: AsyncIterable<Text>,
	whenThere: 'refuse' | 'replace',
): Promise<number> {
	const { createOutputFile } = await import('../../tabular/output-file.js');
	const file = await createOutputFile(path, whenThere);
	try {
		let exported = 0;
		for await (const { text, count } of texts) {
			await file.write(text);
			exported += count;
		}
		await file.finish();
		return exported;
	} finally {
		await file.discard();
	}
}
