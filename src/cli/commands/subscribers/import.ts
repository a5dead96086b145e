import type { MaxErrors } from '../../../jobs/imports.js';
import { command, type OptionValues } from '../../frame/command.js';
import { UsageError } from '../../frame/errors.js';
import type { ExitCode } from '../../frame/exit.js';
import { limitYoungGeneration } from '../../frame/heap.js';
import { inputName, isStream } from '../../frame/sources.js';
import { parseRate } from '../../frame/values.js';
import { answers } from '../../render/columns.js';
import {
	importArg,
	importName,
	layoutOfRejects,
	openImport,
	rejectsPathOf,
	tableOptions,
} from '../../verbs/importing.js';
import { assertKnownStates, mapColumns, sayColumns } from './import/columns.js';
import { inList, listOption } from './lookup.js';

export const importOptions = {
	...listOption,
	...tableOptions,
	map: { ...tableOptions.map, summary: 'map a column; FIRST+LAST=name joins two, COLUMN=- leaves one out' },
	stateWords: {
		kind: 'list',
		placeholder: 'W=STATE',
		summary: 'say which state each word of a state column means',
	},
	onConflict: {
		kind: 'choice',
		choices: ['update', 'skip', 'error'],
		default: 'update',
		summary: 'choose what to do if the list has the address',
	},
	createFields: { kind: 'flag', summary: 'create fields for unknown columns' },
	reactivate: { kind: 'flag', summary: 'activate inactive subscribers, and lift unsubscriptions' },
	batchSize: {
		kind: 'integer',
		min: 1,
		max: 100_000,
		default: 5_000,
		summary: 'send this many rows in a batch',
	},
	concurrency: {
		kind: 'integer',
		min: 1,
		max: 16,
		default: 8,
		summary: 'send this many requests at a time to a service other than mailctl',
	},
	rate: { kind: 'text', placeholder: 'N/s', summary: 'import at most this many rows: 10/s, 600/m or 100/h' },
	maxErrors: { kind: 'text', placeholder: 'N|N%', summary: 'stop when more rows than this are rejected' },
	resume: { kind: 'flag', summary: 'continue the stopped run of this file' },
	job: { kind: 'text', placeholder: 'NAME', summary: 'name an import from standard input, for --resume' },
} as const;

export type ImportOptions = OptionValues<typeof importOptions>;

export const subscriberImport = command({
	name: 'import',
	summary: 'import subscribers from a CSV, TSV or NDJSON file',
	description:
		'Columns: email (required), name, is_active, disable_reason, and fields by variable or name. An empty cell keeps ' +
		'the stored value, and inactive subscribers stay inactive without --reactivate. Rejected rows go into ' +
		'FILE.rejects.csv: correct that file and import it. mailctl help importing has the rest.',
	args: [importArg],
	options: importOptions,
	writes: true,
	...answers(['read', 'created', 'updated', 'unchanged', 'duplicate', 'rejected']),
	exits: [3, 9, 74],
	examples: [
		'mailctl subscribers import people.csv --list 12',
		'mailctl subscribers import people.csv --list 12 --dry-run',
		"mailctl subscribers import people.csv --list 12 --map 'Town=city' --create-fields",
		"mailctl subscribers import people.csv --list 12 --map 'First+Last=name'",
		"mailctl subscribers import people.csv --list 12 --map Status=state --state-words 'blocked=unsubscribed'",
		'mailctl subscribers import - --list 12 --rejects bad.csv < people.csv',
	],
	run: async (cx, { args, options: given, asked }): Promise<ExitCode | undefined> => {
		const file = inputName(args.file);
		const isOnce = await isStream(file);
		assertOptions({ file, isOnce }, given);
		let options: ImportOptions = given;
		const limits = {
			maxErrors: options.maxErrors === undefined ? null : parseMaxErrors(options.maxErrors),
			rate: options.rate === undefined ? null : parseRate(options.rate),
		};
		const path = await rejectsPathOf(cx, file, options.rejects);
		const { list } = await inList(cx, options);
		const table = await openImport(cx, file, options);
		try {
			if (cx.canAsk && !isOnce) {
				const { guideColumns } = await import('./import/guide.js');
				options = await guideColumns(cx, table, options);
			}
			const mapping = await mapColumns(cx, table, options);
			await assertKnownStates(cx, table, isOnce ? null : file, mapping);
			await sayColumns(cx, importName(file), table, mapping);
			if (options !== given || asked.size > 0) {
				const { sayCommand } = await import('./import/guide.js');
				await sayCommand(cx, file, list, options);
			}
			const spec = { list_id: list.id, on_conflict: options.onConflict, reactivate: options.reactivate };
			const job = { file, isOnce, list, table, mapping, spec, options, limits };
			await limitYoungGeneration();
			const { dryRun, putTable } = await import('./import/run.js');
			if (!cx.dryRun && path !== null) return await putTable(cx, { ...job, rejectsPath: path });
			if (path !== null) {
				const { assertRejects } = await import('../../../tables/write-rejects.js');
				const layout = layoutOfRejects(table, mapping, options.rejects);
				await assertRejects({ path, ...layout, resume: options.resume });
			}
			return await dryRun(cx, job);
		} finally {
			await table.close();
		}
	},
});

function assertOptions({ file, isOnce }: { file: string; isOnce: boolean }, options: ImportOptions): void {
	const { resume, createFields, ignoreUnknown, job } = options;
	if (createFields && ignoreUnknown)
		throw new UsageError('use either --create-fields or --ignore-unknown, not both');
	if (job !== undefined && !isOnce)
		throw new UsageError(
			'--job works only with standard input or a pipe: a file is recognized by its content',
		);
	if (resume && isOnce && job === undefined)
		throw new UsageError(`--resume needs a file, or --job NAME: ${importName(file)} can be read only once`);
}

function parseMaxErrors(text: string): MaxErrors {
	if (/^\d{1,9}$/.test(text)) return { rows: Number(text) };
	const percent = /^\d{1,3}(?:\.\d{1,6})?%$/.test(text) ? Number(text.slice(0, -1)) : null;
	if (percent !== null && percent <= 100) return { percent };
	throw new UsageError(`--max-errors: "${text}" is not a number of rows, nor a share such as 5%`);
}
