import { command } from '../../frame/command.js';
import type { ExitCode } from '../../frame/exit.js';
import { limitYoungGeneration } from '../../frame/heap.js';
import { inputName, isStream } from '../../frame/sources.js';
import { parseRate } from '../../frame/values.js';
import { answer } from '../../render/columns.js';
import { importArg, importName, openImport } from '../../verbs/importing.js';
import { foreseeRejects, layoutOfRejects, rejectsPathOf } from '../../verbs/rejects.js';
import { assertKnownStates, mapColumns, sayColumns } from './import/columns.js';
import { assertOptions, type ImportOptions, importOptions, parseMaxErrors } from './import/options.js';
import { putTable } from './import/put.js';
import { inList } from './lookup.js';

export const subscriberImport = command({
	name: 'import',
	summary: 'import subscribers from a CSV, TSV or NDJSON file',
	description:
		'The first line (or the keys of the objects) names the columns: email (required), name, is_active, ' +
		'disable_reason, and fields by variable or by name. An empty cell keeps what is there. A disable_reason makes ' +
		'the row inactive; UNSUBSCRIBED, HARDBOUNCED and COMPLAINED stop mail to the address as if they had happened here, with --on-conflict skip and error too. ' +
		"A column that says who may get mail (Status, Opted out, UNSUB_TIME …) has to be mapped: --map 'Status=state' reads it. " +
		'No inactive subscriber is made active without --reactivate. Rows that cannot be imported go into FILE.rejects.csv with their line and the reason, ' +
		'which imports again once it is corrected; rows that repeat an address are listed there too, and left out again. ' +
		'--dry-run says for each row what the import would do, and ends with 0 whatever that is.',
	args: [importArg],
	options: importOptions,
	writes: true,
	columns: answer('read', 'created', 'updated', 'unchanged', 'duplicate', 'rejected'),
	output: '{"read", "created", "updated", "unchanged", "duplicate", "rejected"}',
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
			await assertKnownStates(cx, { table, file: isOnce ? null : file, states: mapping.states });
			await sayColumns(cx, { name: importName(file), table, mapping });
			if (options !== given || asked.size > 0) {
				const { sayCommand } = await import('./import/guide.js');
				await sayCommand(cx, file, list, options);
			}
			const spec = { list_id: list.id, on_conflict: options.onConflict, reactivate: options.reactivate };
			const job = { file, isOnce, list, table, mapping, spec, options, limits };
			await limitYoungGeneration();
			if (!cx.dryRun && path !== null) return await putTable(cx, { ...job, rejectsPath: path });
			if (path !== null) {
				const isNumbered = options.rejects === undefined;
				const layout = layoutOfRejects(table, mapping);
				await foreseeRejects(cx, { path, isNumbered, ...layout, resume: options.resume });
			}
			const { dryRun } = await import('./import/dry-run.js');
			return await dryRun(cx, job);
		} finally {
			await table.close();
		}
	},
});
