/** `suppressions import`: a table of addresses that are to get no mail, in batches that may be repeated. */

import { need } from '../../../api/capabilities.js';
import { suppressionReasons } from '../../../api/suppressions.js';
import type { ImportTotals } from '../../../jobs/imports.js';
import type { RejectedRow } from '../../../tables/finding.js';
import type { Table } from '../../../tables/read-table.js';
import type { SuppressionMapping } from '../../../tables/suppression-columns.js';
import type { RejectsFile } from '../../../tables/write-rejects.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { inputName } from '../../frame/sources.js';
import { answer } from '../../render/columns.js';
import {
	emptyTally,
	importArg,
	importName,
	openImport,
	shortNames,
	tableOptions,
	tallySentence,
} from '../../verbs/importing.js';
import {
	foreseeRejects,
	holdRejects,
	layoutOfRejects,
	type OptionsAgain,
	PlannedRejects,
	rejectsPathOf,
	rejectsSentence,
} from '../../verbs/rejects.js';
import { expiresOption, parseExpires } from './filters.js';
import { type ImportRows, type Ways, walkRows } from './import-rows.js';

const defaultReason = 'MANUAL';

/** The most rejected rows that a dry run lists. */
const maxShown = 20;

export const suppressionImport = command({
	name: 'import',
	summary: 'stop mail to the addresses of a CSV, TSV or NDJSON file',
	description:
		'Columns: email (required), reason (COMPLAINED, HARDBOUNCED, UNSUBSCRIBED, SOFTBOUNCED, MANUAL, or a word for one such as bounced or spam), list_id (of an ' +
		'UNSUBSCRIBED that is of one list), source, date_created, expires_at: an export comes back as it went. Adding never weakens what stands. The same file again ' +
		'changes nothing: what was broken off is run again from its beginning, no --resume is needed. What cannot be taken ' +
		'goes into FILE.rejects.csv, which imports again once it is mended. --dry-run says what would become of each row, ' +
		'and ends with 0 whatever that is.',
	args: [importArg],
	options: {
		reason: {
			kind: 'choice',
			choices: suppressionReasons,
			default: defaultReason,
			summary: 'for rows that name none',
		},
		expires: { ...expiresOption, summary: `for rows that name no end: ${expiresOption.summary}` },
		...tableOptions,
	},
	writes: true,
	columns: answer('read', 'created', 'updated', 'unchanged', 'duplicate', 'rejected'),
	output: '{"read", "created", "updated", "unchanged", "duplicate", "rejected"}',
	exits: [9, 74],
	examples: [
		'mailctl suppressions import bounced.csv --reason HARDBOUNCED',
		'mailctl suppressions import suppressions.csv --dry-run',
	],
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		const file = inputName(args.file);
		const suppressions = await need(await cx.api(), 'suppressions');
		const rejectsPath = await rejectsPathOf(cx, file, options.rejects);
		const end = options.expires === undefined ? {} : { expires_at: parseExpires(cx, options.expires) };
		const missing = { reason: options.reason, ...end };
		const table = await openImport(cx, file, options);
		try {
			const mapping = await mapColumns(cx, table, options);
			const job = { suppressions, table, mapping, missing };
			const { openRejects } = await import('../../../tables/write-rejects.js');
			const layout = { ...layoutOfRejects(table, mapping), isNumbered: options.rejects === undefined };
			if (cx.dryRun && rejectsPath !== null) await foreseeRejects(cx, { path: rejectsPath, ...layout });
			if (cx.dryRun || rejectsPath === null) return await plan(cx, file, job);
			await holdRejects(cx, rejectsPath);
			const rejects = await openRejects({ path: rejectsPath, ...layout });
			const asked = { rejectsPath, options: optionsAgain(options) };
			return await work(cx, { ...job, ...asked }, rejects).finally(() => rejects.close());
		} finally {
			await table.close();
		}
	},
});

/** The default reason is left out of the repeated command. */
function optionsAgain({ reason, ...options }: OptionsAgain): OptionsAgain {
	return { ...options, ...(reason !== defaultReason && { reason }) };
}

async function mapColumns(
	cx: CommandContext,
	{ header }: Table,
	{ map, ignoreUnknown }: { map: readonly string[]; ignoreUnknown: boolean },
): Promise<SuppressionMapping> {
	const { mapSuppressionHeader } = await import('../../../tables/suppression-columns.js');
	const mapped = mapSuppressionHeader(header, { map, unknown: ignoreUnknown ? 'ignore' : 'refuse' });
	if (mapped.kind === 'refused') {
		const isBareList = header.length === 1 && (header[0] ?? '').includes('@');
		throw new UsageError('the columns cannot be used as they are', {
			details: mapped.findings.slice(0, 10),
			hint: isBareList
				? ['a bare list of addresses: ', mailctl('suppressions', 'add', '-'), ' < FILE']
				: '--map COLUMN=email, --ignore-unknown; columns: email, reason, list_id, source, date_created, expires_at',
		});
	}
	const { ignored } = mapped.mapping;
	if (ignored.length > 0) await cx.note(`left out: ${shortNames(ignored).join(', ')}`);
	return mapped.mapping;
}

async function plan(cx: CommandContext, file: string, job: ImportRows): Promise<undefined> {
	const shown: Omit<RejectedRow, 'cells'>[] = [];
	const rejects = new PlannedRejects();
	const totals = emptyTally();
	const ways: Ways = {
		take: (rows) => job.suppressions.check(rows, { signal: cx.signal }),
		refuse: async (rows) => {
			for (const { cells: _, ...rest } of rows) {
				if (shown.length < maxShown) shown.push(rest);
				rejects.add(rest);
			}
		},
	};
	await walkRows(cx, job, { ways, totals });
	// Half a plan would pass for a whole one.
	cx.signal.throwIfAborted();
	await cx.wouldDo(`stop mail to the addresses of ${importName(file)}: ${tallySentence(totals)}`, {
		import: importName(file),
		...totals,
		rejects: shown,
		reject_kinds: rejects.kinds(),
	});
	await rejects.say(cx);
	return undefined;
}

interface Work extends ImportRows {
	rejectsPath: string;
	options: OptionsAgain;
}

async function work(cx: CommandContext, job: Work, rejects: RejectsFile): Promise<ExitCode> {
	const totals = emptyTally();
	const ways: Ways = {
		// Without the signal: a batch in flight is waited for, so that the report covers all writes.
		take: (rows) => job.suppressions.put(rows),
		refuse: (rows) => rejects.write(rows),
	};
	try {
		await walkRows(cx, job, { ways, totals });
		cx.signal.throwIfAborted();
	} catch (error) {
		if (totals.read > 0) await sayBrokenOff(cx, totals, rejects);
		throw error;
	}
	await sayDone(cx, { totals, rejects, asked: job.rejectsPath, options: job.options });
	return totals.rejected === 0 ? exits.done : exits.partly;
}

interface Done {
	totals: ImportTotals;
	rejects: RejectsFile;
	/** The path by default, or as given. */
	asked: string;
	options: OptionsAgain;
}

async function sayDone(cx: CommandContext, { totals, rejects, asked, options }: Done): Promise<void> {
	await cx.out.document(totals, tallySentence(totals));
	const left = rejectsSentence(totals, { path: rejects.path, asked }, options);
	if (left !== null) await cx.hint(left);
}

/** A second run begins with the first row: stored rows are unchanged, and each rejected row is rejected again. */
async function sayBrokenOff(cx: CommandContext, totals: ImportTotals, rejects: RejectsFile): Promise<void> {
	await cx.out.document(totals, `broken off after ${tallySentence(totals)}`);
	const first = totals.rejected > 0 ? `remove ${rejects.path}, then ` : '';
	await cx.hint(`what is counted stays; ${first}run the same command again for the rest`);
}
