import { need } from '../../../api/capabilities.js';
import { iterateSlices } from '../../../api/pages.js';
import type { Suppression, SuppressionFilter, Suppressions } from '../../../api/suppressions.js';
import type { SuppressionPart } from '../../../tables/suppression-columns.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import type { ExitCode } from '../../frame/exit.js';
import { parseFields, unknownField } from '../../render/columns.js';
import { destinationOf, exportArg, exportOptions, exportRecords } from '../../verbs/exporting.js';
import { filterOf, filterOptions } from './filters.js';

const pieceSize = 1000;

export const suppressionExport = command({
	name: 'export',
	summary: 'write the suppressions to a file, or to standard output',
	description:
		'The file imports again to the same suppressions. It is written under another name and put into place when it is ' +
		'whole; an existing one is replaced with --force only. With --safe-csv, cells that a spreadsheet would take for ' +
		'formulas begin with an apostrophe: that file is for spreadsheets, not for importing. Expired ones are not in it.',
	args: [exportArg],
	options: { ...filterOptions, ...exportOptions },
	columns: 'own',
	output: 'with a file: {"file", "format", "exported"}; else the suppressions themselves',
	exits: [74],
	examples: [
		'mailctl suppressions export stopped.csv',
		'mailctl suppressions export --reason UNSUBSCRIBED --format ndjson',
	],
	run: async (cx, { args, options }): Promise<ExitCode> => {
		const to = await destinationOf(cx, args.file, options);
		const parts = await partsOf(cx);
		const suppressions = await need(await cx.api(), 'suppressions');
		const { suppressionLine } = await import('../../../tables/suppression-columns.js');
		return exportRecords(cx, to, {
			pieces: walkSlices(suppressions, await filterOf(cx, options), cx.signal),
			header: `${parts.join(',')}\n`,
			line: (one) =>
				to.format === 'csv' ? suppressionLine(one, parts, to.guard) : JSON.stringify(pick(one, parts)),
			total: null,
			noun: 'suppression',
		});
	},
});

async function partsOf(cx: CommandContext): Promise<readonly SuppressionPart[]> {
	const { suppressionParts } = await import('../../../tables/suppression-columns.js');
	const named = parseFields(cx.globals.fields);
	if (named === null) return suppressionParts;
	return named.map((name) => {
		const part = suppressionParts.find((one) => one === name);
		if (part === undefined) throw unknownField(name, suppressionParts);
		return part;
	});
}

/** A long walk is not a snapshot, and holds nothing. */
async function* walkSlices(
	suppressions: Suppressions,
	filter: SuppressionFilter,
	signal: AbortSignal,
): AsyncGenerator<readonly Suppression[]> {
	const slices = iterateSlices('', (cursor) => {
		signal.throwIfAborted();
		const request = { ...filter, limit: pieceSize, ...(cursor !== '' && { cursor }) };
		return suppressions.slice(request, { signal });
	});
	for await (const { results } of slices) yield results;
}

function pick(one: Suppression, parts: readonly SuppressionPart[]): object {
	return Object.fromEntries(parts.map((part) => [part, one[part]]));
}
