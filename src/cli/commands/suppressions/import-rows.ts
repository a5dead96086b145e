/** The rows of `suppressions import`: read, bundled and handed on; what is refused comes back with its line. */
import { emailKey } from '../../../api/address.js';
import {
	type SuppressionAck,
	type SuppressionRow,
	type Suppressions,
	suppressionRowFields,
} from '../../../api/suppressions.js';
import { AddressSet } from '../../../jobs/foreign/address-set.js';
import type { ImportTotals } from '../../../jobs/imports.js';
import type { CommandContext } from '../../context.js';
import type { RejectedRow } from '../../tabular/finding.js';
import type { Table } from '../../tabular/read-table.js';
import type { SuppressionMapping } from '../../tabular/suppression-columns.js';

/** A batch is one transaction, and others want to write too. */
const batchRows = 1_000;

/** A table, what its columns are, and where its rows go. */
export interface ImportRows {
	suppressions: Suppressions;
	table: Table;
	mapping: SuppressionMapping;
	/** What counts where a row says nothing. */
	missing: Pick<SuppressionRow, 'reason' | 'expires_at'>;
}

/** What is done with rows: put, or only compared. */
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

/** Stops between two batches when the signal says so; `totals` count what is done with, also when it throws. */
export async function walkRows(
	cx: CommandContext,
	job: ImportRows,
	{ ways, totals }: { ways: Ways; totals: ImportTotals },
): Promise<void> {
	const progress = cx.progress(cx.dryRun ? 'comparing' : 'importing', null);
	try {
		for await (const batch of batches(cx, job)) {
			const { counts, rejects } =
				batch.rows.length === 0 ? nothing : await ways.take(batch.rows.map(({ row }) => row));
			const refused = rejects.flatMap(({ row, code, error }) => {
				const found = batch.rows[row];
				return found === undefined ? [] : [{ line: found.line, code, error, cells: found.cells }];
			});
			await ways.refuse([...batch.rejects, ...refused].sort((a, b) => a.line - b.line));
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
	const { toSuppressionRow } = await import('../../tabular/suppression-columns.js');
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
		// Reading was broken off by the signal: what was put stays, and is told.
		if (!cx.signal.aborted || error !== cx.signal.reason) throw error;
		return;
	}
	if (batch.rows.length + batch.rejects.length > 0) yield batch;
}

/** What is refused takes nothing from a later row of the same address. */
function isUsable(row: SuppressionRow): boolean {
	return suppressionRowFields.parse(row, 'create').kind === 'valid';
}

/** A row with another end is no duplicate: the later end is to stand. */
function sayingOf({ email, reason, expires_at }: SuppressionRow): string {
	return JSON.stringify([emailKey(email), reason, expires_at]);
}
