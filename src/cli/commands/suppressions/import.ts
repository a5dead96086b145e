/** `suppressions import`: a table of addresses that are to get no mail, in batches that may be repeated. */
import { need } from '../../../api/capabilities.js';
import { suppressionReasons } from '../../../api/suppressions.js';
import type { ImportTotals } from '../../../jobs/imports.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import {
	emptyTally,
	importArg,
	importName,
	layoutOfRejects,
	type OptionsAgain,
	openImport,
	pathOfRejects,
	rejectsSentence,
	sayPlannedRejects,
	tableOptions,
	tallySentence,
} from '../../importing.js';
import { duplicateCode, type RejectedRow } from '../../tabular/finding.js';
import type { Table } from '../../tabular/read-table.js';
import type { RejectsFile } from '../../tabular/rejects.js';
import type { SuppressionMapping } from '../../tabular/suppression-columns.js';
import { expiresOption, parseExpires } from './filters.js';
import { type ImportRows, type Ways, walkRows } from './import-rows.js';

const defaultReason = 'MANUAL';

/** Of the rejected rows a dry run lists so many. */
const maxShown = 20;

export const suppressionImport = command({
	name: 'import',
	summary: 'stop mail to the addresses of a CSV, TSV or NDJSON file',
	description:
		'Columns: email (required), reason (COMPLAINED, HARDBOUNCED, UNSUBSCRIBED, SOFTBOUNCED, MANUAL), source, ' +
		'date_created, expires_at: an export comes back as it went. Adding never weakens what stands. The same file again ' +
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
	output: '{"read", "created", "updated", "unchanged", "duplicate", "rejected"}',
	exits: [9, 74],
	examples: [
		'mailctl suppressions import bounced.csv --reason HARDBOUNCED',
		'mailctl suppressions import suppressions.csv --dry-run',
	],
	run: async (cx, { args: { file }, options }): Promise<ExitCode | undefined> => {
		const suppressions = await need(await cx.api(), 'suppressions');
		// Before the file is opened: a plan has no rejects file, and need not say where it would be.
		const rejectsPath = cx.dryRun ? null : pathOfRejects(file, options.rejects);
		const end = options.expires === undefined ? {} : { expires_at: parseExpires(cx, options.expires) };
		const missing = { reason: options.reason, ...end };
		const table = await openImport(cx, file, options);
		try {
			const mapping = await mapColumns(cx, table, options);
			const job = { suppressions, table, mapping, missing };
			if (rejectsPath === null) return await plan(cx, file, job);
			const { openRejects } = await import('../../tabular/rejects.js');
			const rejects = await openRejects({ path: rejectsPath, ...layoutOfRejects(table, mapping) });
			return await work(cx, { ...job, options: optionsAgain(options) }, rejects).finally(() =>
				rejects.close(),
			);
		} finally {
			await table.close();
		}
	},
});

/** A reason that nobody gave holds without being given. */
function optionsAgain({ reason, ...options }: OptionsAgain): OptionsAgain {
	return { ...options, ...(reason !== defaultReason && { reason }) };
}

async function mapColumns(
	cx: CommandContext,
	{ header }: Table,
	{ map, ignoreUnknown }: { map: readonly string[]; ignoreUnknown: boolean },
): Promise<SuppressionMapping> {
	const { mapSuppressionHeader } = await import('../../tabular/suppression-columns.js');
	const mapped = mapSuppressionHeader(header, { map, unknown: ignoreUnknown ? 'ignore' : 'refuse' });
	if (mapped.kind === 'refused') {
		const isBareList = header.length === 1 && (header[0] ?? '').includes('@');
		throw new UsageError('the columns cannot be used as they are', {
			details: mapped.findings.slice(0, 10),
			hint: isBareList
				? 'a bare list of addresses: mailctl suppressions add - < FILE'
				: '--map COLUMN=email, --ignore-unknown; columns: email, reason, source, date_created, expires_at',
		});
	}
	const { ignored } = mapped.mapping;
	if (ignored.length > 0) await cx.note(`left out: ${ignored.slice(0, 10).join(', ')}`);
	return mapped.mapping;
}

async function plan(cx: CommandContext, file: string, job: ImportRows): Promise<undefined> {
	const shown: Omit<RejectedRow, 'cells'>[] = [];
	// Apart: a file may begin with more duplicates than are shown.
	const rejected: Omit<RejectedRow, 'cells'>[] = [];
	const totals = emptyTally();
	const ways: Ways = {
		take: (rows) => job.suppressions.check(rows, { signal: cx.signal }),
		refuse: async (rows) => {
			for (const { cells: _, ...rest } of rows) {
				if (shown.length < maxShown) shown.push(rest);
				if (rejected.length < maxShown && rest.code !== duplicateCode) rejected.push(rest);
			}
		},
	};
	await walkRows(cx, job, { ways, totals });
	// Half a plan would pass for a whole one.
	cx.signal.throwIfAborted();
	await cx.wouldDo(`stop mail to the addresses of ${importName(file)}: ${tallySentence(totals)}`, {
		...totals,
		rejects: shown,
	});
	await sayPlannedRejects(cx, rejected, totals.rejected);
	return undefined;
}

interface Work extends ImportRows {
	options: OptionsAgain;
}

async function work(cx: CommandContext, job: Work, rejects: RejectsFile): Promise<ExitCode> {
	const totals = emptyTally();
	const ways: Ways = {
		// Without the signal: a batch in flight is waited for, so that what is reported is what was done.
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
	await sayDone(cx, { totals, rejects, options: job.options });
	return totals.rejected === 0 ? exits.done : exits.partly;
}

async function sayDone(
	cx: CommandContext,
	{ totals, rejects, options }: { totals: ImportTotals; rejects: RejectsFile; options: OptionsAgain },
): Promise<void> {
	await cx.out.document(totals, tallySentence(totals));
	const left = rejectsSentence(totals, rejects.path, options);
	if (left !== null) await cx.hint(left);
}

/** A second run begins with the first row: what stands is unchanged, and each rejected row is rejected again. */
async function sayBrokenOff(cx: CommandContext, totals: ImportTotals, rejects: RejectsFile): Promise<void> {
	await cx.out.document(totals, `broken off after ${tallySentence(totals)}`);
	const first = totals.rejected > 0 ? `remove ${rejects.path}, then ` : '';
	await cx.hint(`what is counted stays; ${first}run the same command again for the rest`);
}
