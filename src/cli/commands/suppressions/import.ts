import { emailKey } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import { need } from '../../../api/capabilities.js';
import {
	type SuppressionAck,
	type SuppressionRow,
	suppressionReasons,
	suppressionRowFields,
} from '../../../api/suppressions.js';
import type { ImportTotals } from '../../../jobs/imports.js';
import type { RejectedRow } from '../../../tables/finding.js';
import type { Table } from '../../../tables/read-table.js';
import type { SuppressionMapping } from '../../../tables/suppression-columns.js';
import type { RejectsFile } from '../../../tables/write-rejects.js';
import { command } from '../../frame/command.js';
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
	PlannedRejects,
	rejectsPathOf,
	rejectsSentence,
	withAddressFaults,
} from '../../verbs/rejects.js';
import { expiresOption, parseExpires } from './filters.js';

const defaultReason = 'MANUAL';

export const suppressionImport = command({
	name: 'import',
	summary: 'stop mail to the addresses of a CSV, TSV or NDJSON file',
	description:
		'Columns: email (required), reason (COMPLAINED, HARDBOUNCED, UNSUBSCRIBED, SOFTBOUNCED, MANUAL, or a word for one such as bounced or spam), list_id (of an ' +
		'UNSUBSCRIBED for one list), source, date_created, expires_at. An export imports unchanged. An import never weakens a suppression. The same file again ' +
		'changes nothing, so run an interrupted import again. Refused rows go into FILE.rejects.csv: correct that file and import it. ' +
		'--dry-run shows the outcome of each row and ends with 0.',
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
		const path = await rejectsPathOf(cx, file, options.rejects);
		const end = options.expires === undefined ? {} : { expires_at: parseExpires(cx, options.expires) };
		const missing = { reason: options.reason, ...end };
		const table = await openImport(cx, file, options);
		try {
			const job = { table, mapping: await mapColumns(cx, table, options), missing };
			const isNumbered = options.rejects === undefined;
			const layout = { ...layoutOfRejects(table, job.mapping), isNumbered };
			if (cx.dryRun && path !== null) await foreseeRejects(cx, { path, ...layout });
			if (cx.dryRun || path === null) {
				const take = (rows: readonly SuppressionRow[]) => suppressions.check(rows, { signal: cx.signal });
				return await plan(cx, { ...job, take }, importName(file));
			}
			await holdRejects(cx, path);
			const { openRejects } = await import('../../../tables/write-rejects.js');
			const rejects = await openRejects({ path, ...layout });
			try {
				// Without the signal: a batch in flight is waited for, so that the report covers all writes.
				const totals = await work(cx, { ...job, take: (rows) => suppressions.put(rows) }, rejects);
				await cx.out.document(totals, tallySentence(totals));
				const { reason, ...again } = options;
				const same = { ...again, ...(reason !== defaultReason && { reason }) };
				const left = rejectsSentence(totals, { path: rejects.path, asked: path }, same);
				if (left !== null) await cx.hint(left);
				return totals.rejected === 0 ? exits.done : exits.partly;
			} finally {
				await rejects.close();
			}
		} finally {
			await table.close();
		}
	},
});

async function mapColumns(
	cx: CommandContext,
	{ header }: Table,
	{ map, ignoreUnknown }: { map: readonly string[]; ignoreUnknown: boolean },
): Promise<SuppressionMapping> {
	const { mapSuppressionHeader } = await import('../../../tables/suppression-columns.js');
	const mapped = mapSuppressionHeader(header, { map, unknown: ignoreUnknown ? 'ignore' : 'refuse' });
	if (mapped.kind === 'refused') {
		throw new UsageError('the columns cannot be used as they are', {
			details: mapped.findings.slice(0, 10),
			hint: '--map COLUMN=email, --ignore-unknown; columns: email, reason, list_id, source, date_created, expires_at',
		});
	}
	const { ignored } = mapped.mapping;
	if (ignored.length > 0) await cx.note(`left out: ${shortNames(ignored).join(', ')}`);
	return mapped.mapping;
}

async function plan(cx: CommandContext, job: Rows, name: string): Promise<undefined> {
	const rejects = new PlannedRejects();
	const totals = emptyTally();
	await walkRows(cx, job, totals, async (rows) => {
		for (const row of rows) rejects.add(row);
	});
	// Half a plan would pass for a whole one.
	cx.signal.throwIfAborted();
	await cx.wouldDo(`stop mail to the addresses of ${name}: ${tallySentence(totals)}`, {
		...{ import: name, ...totals },
		rejects: rejects.first,
		reject_kinds: rejects.kinds(),
	});
	await rejects.say(cx);
	return undefined;
}

/** A second run begins with the first row: stored rows are unchanged, and each rejected row is rejected again. */
async function work(cx: CommandContext, job: Rows, rejects: RejectsFile): Promise<ImportTotals> {
	const totals = emptyTally();
	try {
		await walkRows(cx, job, totals, (rows) => rejects.write(rows));
		cx.signal.throwIfAborted();
		return totals;
	} catch (error) {
		if (totals.read > 0) {
			await cx.out.document(totals, `broken off after ${tallySentence(totals)}`);
			await cx.hint('what is counted stays; run the same command again for the rest');
		}
		throw error;
	}
}

const batchRows = 1_000;

interface Rows {
	table: Table;
	mapping: SuppressionMapping;
	/** The values of rows without their own. */
	missing: Pick<SuppressionRow, 'reason' | 'expires_at'>;
	take(rows: readonly SuppressionRow[]): Promise<SuppressionAck>;
}

/**
 * Stops between two batches after the signal; `totals` count finished rows, also when it throws. `refuse` gets rejected
 * and duplicate rows of a batch, in the order of lines.
 */
async function walkRows(
	cx: CommandContext,
	job: Rows,
	totals: ImportTotals,
	refuse: (rows: RejectedRow[]) => Promise<void>,
): Promise<void> {
	const emailAt = job.mapping.columns.find(({ part }) => part === 'email')?.index ?? 0;
	const progress = cx.progress(cx.dryRun ? 'comparing' : 'importing', null);
	try {
		for await (const batch of batches(cx, job)) {
			const { counts, rejects } =
				batch.rows.length === 0 ? nothing : await job.take(batch.rows.map(({ row }) => row));
			const refused = rejects.flatMap(({ row, code, error }) => {
				const found = batch.rows[row];
				return found === undefined ? [] : [{ line: found.line, code, error, cells: found.cells }];
			});
			const all = [...batch.rejects, ...refused].sort((a, b) => a.line - b.line);
			await refuse([...withAddressFaults(all, emailAt)]);
			totals.read += batch.rows.length + batch.rejects.length;
			totals.created += counts.created;
			totals.updated += counts.updated;
			totals.unchanged += counts.unchanged;
			totals.duplicate += batch.duplicates;
			totals.rejected += counts.rejected + batch.rejects.length - batch.duplicates;
			progress.update(totals.read, totals.rejected === 0 ? '' : `${totals.rejected} rejected`);
		}
	} finally {
		progress.stop();
	}
}

const nothing: SuppressionAck = {
	counts: { created: 0, updated: 0, unchanged: 0, rejected: 0 },
	rejects: [],
};

interface Batch {
	rows: { row: SuppressionRow; line: number; cells: readonly string[] }[];
	rejects: RejectedRow[];
	duplicates: number;
}

async function* batches(cx: CommandContext, { table, mapping, missing }: Rows): AsyncGenerator<Batch> {
	const { toSuppressionRow } = await import('../../../tables/suppression-columns.js');
	const seen = new AddressSet();
	let batch: Batch = { rows: [], rejects: [], duplicates: 0 };
	const refuse = (line: number, cells: readonly string[], code: string, error: string) =>
		batch.rejects.push({ line, cells, code, error });
	try {
		for await (const found of table.rows) {
			const { line, cells } = found;
			const row = toSuppressionRow(cells, mapping, missing);
			if (found.kind === 'bad') refuse(line, cells, found.code, found.error);
			// A refused row takes nothing from a later row of the same address.
			else if (suppressionRowFields.parse(row, 'create').kind === 'invalid' || seen.add(sayingOf(row)))
				batch.rows.push({ row, line, cells });
			else {
				batch.duplicates += 1;
				refuse(line, cells, 'duplicate', `email: ${row.email} stands in this file already.`);
			}
			if (batch.rows.length + batch.rejects.length < batchRows) continue;
			yield batch;
			if (cx.signal.aborted) return;
			batch = { rows: [], rejects: [], duplicates: 0 };
		}
	} catch (error) {
		// The signal ended the reading: stored rows stay, and are reported.
		if (!cx.signal.aborted || error !== cx.signal.reason) throw error;
		return;
	}
	if (batch.rows.length + batch.rejects.length > 0) yield batch;
}

/** A row of another list, or with another end, is not a duplicate: the later end counts. */
function sayingOf({ email, reason, list_id, expires_at }: SuppressionRow): string {
	return JSON.stringify([emailKey(email), reason, list_id, expires_at]);
}
