/** The rows of `suppressions import`: read, batched and put; refused rows come back with their lines. */
import { emailKey } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import {
	type SuppressionAck,
	type SuppressionRow,
	type Suppressions,
	suppressionRowFields,
} from '../../../api/suppressions.js';
import type { ImportTotals } from '../../../jobs/imports.js';
import type { RejectedRow } from '../../../tables/finding.js';
import type { Table } from '../../../tables/read-table.js';
import type { SuppressionMapping } from '../../../tables/suppression-columns.js';
import type { CommandContext } from '../../frame/context.js';
import { withAddressFaults } from '../../verbs/rejects.js';

/** A batch is one transaction, and others want to write too. */
const batchRows = 1_000;

/** A table, its mapping, and the destination of its rows. */
export interface ImportRows {
	suppressions: Suppressions;
	table: Table;
	mapping: SuppressionMapping;
	/** The values of rows without their own. */
	missing: Pick<SuppressionRow, 'reason' | 'expires_at'>;
}

/** The handling of rows: put, or only compared. */
export interface Ways {
	take(rows: readonly SuppressionRow[]): Promise<SuppressionAck>;
	/** Rejected and duplicate rows of a batch, in the order of lines. */
	refuse(rows: RejectedRow[]): Promise<void>;
}

interface Batch {
	rows: { row: SuppressionRow; line: number; cells: readonly string[] }[];
	rejects: RejectedRow[];
	duplicates: number;
}

/** Stops between two batches after the signal; `totals` count finished rows, also when it throws. */
export async function walkRows(
	cx: CommandContext,
	job: ImportRows,
	{ ways, totals }: { ways: Ways; totals: ImportTotals },
): Promise<void> {
	const emailAt = job.mapping.columns.find(({ part }) => part === 'email')?.index ?? 0;
	const progress = cx.progress(cx.dryRun ? 'comparing' : 'importing', null);
	try {
		for await (const batch of batches(cx, job)) {
			const { counts, rejects } =
				batch.rows.length === 0 ? nothing : await ways.take(batch.rows.map(({ row }) => row));
			const refused = rejects.flatMap(({ row, code, error }) => {
				const found = batch.rows[row];
				return found === undefined ? [] : [{ line: found.line, code, error, cells: found.cells }];
			});
			const all = [...batch.rejects, ...refused].sort((a, b) => a.line - b.line);
			await ways.refuse([...withAddressFaults(all, emailAt)]);
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

async function* batches(cx: CommandContext, { table, mapping, missing }: ImportRows): AsyncGenerator<Batch> {
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
			else if (!isUsable(row) || seen.add(sayingOf(row))) batch.rows.push({ row, line, cells });
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

/** A refused row takes nothing from a later row of the same address. */
function isUsable(row: SuppressionRow): boolean {
	return suppressionRowFields.parse(row, 'create').kind === 'valid';
}

/** A row of another list, or with another end, is no duplicate: the later end counts. */
function sayingOf({ email, reason, list_id, expires_at }: SuppressionRow): string {
	return JSON.stringify([emailKey(email), reason, list_id, expires_at]);
}
