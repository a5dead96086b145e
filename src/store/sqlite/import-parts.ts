/** Rows of several batches, put within one transaction and answered batch by batch. */
import type { ImportCounts, Reject } from '../../api/capabilities.js';
import type { BatchRows, RowSlice } from './batch-rows.js';
import { orderByRank } from './import-order.js';
import { type ImportRun, importRow } from './import-run.js';
import type { ImportSlice } from './mailing-rows.js';
import type { Sql } from './sql.js';
import { takeSubscriberIds } from './subscribers.js';

export interface ImportPart {
	rows: RowSlice;
	/** See `RowPlace`. */
	unknown: readonly string[];
	/** Of what was put. */
	counts: ImportCounts;
	/** By places in the part, from 0. */
	rejects: Reject[];
}

/** Nothing of it is put yet. */
export function openPart(
	batchRows: BatchRows,
	run: ImportRun,
	{ batch, from, limit }: ImportSlice,
): ImportPart {
	return {
		rows: batchRows.slice(batch, from, limit),
		unknown: batchRows.variables(batch).filter((variable) => !run.known.has(variable)),
		counts: noCounts(),
		rejects: [],
	};
}

/**
 * Puts rows of one address in their order, and others in that of the index. It cannot be seen from outside: each row
 * has an id by its number, used or not, so ids follow the order of the rows; they are never used twice, but may have
 * gaps.
 */
export function putParts(sql: Sql, run: ImportRun, parts: readonly ImportPart[]): void {
	const { count, find } = numberRows(parts);
	if (count === 0) return;
	const firstId = takeSubscriberIds(sql, count);
	const rankAt = (number: number) => {
		const { part, index } = find(number);
		return part.rows.rank(index);
	};
	for (const number of orderByRank(count, rankAt)) {
		const { part, index } = find(number);
		putRow(sql, run, { part, index, id: firstId + number });
	}
	for (const { rejects } of parts) rejects.sort((a, b) => a.row - b.row);
}

interface Numbered {
	part: ImportPart;
	/** Place in the part. */
	index: number;
}

/** Numbers the rows of all parts from 0. As numbers, for objects of a hundred thousand rows would outlive the rows. */
function numberRows(parts: readonly ImportPart[]): { count: number; find(number: number): Numbered } {
	const count = parts.reduce((sum, { rows }) => sum + rows.count, 0);
	const owners = new Uint32Array(count);
	const starts: number[] = [];
	let start = 0;
	parts.forEach(({ rows }, owner) => {
		starts.push(start);
		owners.fill(owner, start, start + rows.count);
		start += rows.count;
	});
	const find = (number: number) => {
		const owner = owners[number] ?? 0;
		const part = parts[owner];
		if (part === undefined) throw new RangeError('a row of no part');
		return { part, index: number - (starts[owner] ?? 0) };
	};
	return { count, find };
}

function putRow(sql: Sql, run: ImportRun, { part, index, id }: Numbered & { id: number }): void {
	const row = part.rows.row(index);
	const outcome = row.kind === 'rejected' ? row : importRow(sql, run, row, { id, unknown: part.unknown });
	part.counts[outcome.kind] += 1;
	if (outcome.kind === 'rejected' || outcome.kind === 'duplicate')
		part.rejects.push({ row: index, code: outcome.code, error: outcome.error });
}

/** The counts of no rows, to be added to. */
export function noCounts(): ImportCounts {
	return { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
}
