/** Imports as sessions of numbered batches; the position commits with the rows. */
import type { Ack, ImportCounts, ImportSpec, Reject } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import { canonicalJson } from '../../engine/rules/ids.js';
import type { ImportAck } from '../store.js';
import type { BatchRows, RowSlice } from './batch-rows.js';
import { importRow, openImportRun } from './import-run.js';
import { findList, moveCounters } from './lists.js';
import type { ImportSlice, Slices } from './mailing-rows.js';
import { parseRecord } from './rows.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

type ImportOperations = Pick<Operations, 'openImport' | 'putImportBatch' | 'finishImport'> &
	Pick<Slices, 'putImportSlice'>;

interface SessionRow {
	seq: number;
	id: string;
	spec: string;
	list_id: number;
	position: number;
	counts: string;
	finished_at: Micros | null;
}

const columns = 'seq, id, spec, list_id, position, counts, finished_at';

export function createImports(sql: Sql, batchRows: BatchRows): ImportOperations {
	return {
		openImport: (command) => openImport(sql, command),
		putImportBatch: (command) =>
			putSlice(sql, batchRows, { ...command, from: 0, limit: Number.POSITIVE_INFINITY }),
		putImportSlice: (command) => putSlice(sql, batchRows, command),
		finishImport: ({ session, now }) => {
			const row = findSession(sql, session);
			if (row === null) return null;
			sql.run('DELETE FROM import_acks WHERE import_seq = ?', row.seq);
			sql.run('UPDATE imports SET finished_at = coalesce(finished_at, ?) WHERE seq = ?', now, row.seq);
			return readCounts(row.counts);
		},
	};
}

function putSlice(
	sql: Sql,
	batchRows: BatchRows,
	{ session, batch, from, limit, now }: ImportSlice,
): ImportAck {
	const first = batch.first + from;
	const row = findSession(sql, session);
	if (row === null) return { kind: 'not_found' };
	const stored = findAck(sql, row.seq, first);
	if (stored !== null) return { kind: 'acknowledged', ack: stored };
	if (row.finished_at !== null) return { kind: 'not_found' };
	if (first !== row.position) return { kind: 'gap', position: row.position };
	if (findList(sql, row.list_id) === null) return { kind: 'list_gone' };
	const slice = batchRows.slice(batch, from, limit);
	const variables = batchRows.variables(batch);
	return { kind: 'acknowledged', ack: putRows(sql, row, { ...slice, variables, now }) };
}

function openImport(
	sql: Sql,
	{ id, key, spec, now }: Parameters<Operations['openImport']>[0],
): ReturnType<Operations['openImport']> {
	if (findList(sql, spec.list_id) === null) return null;
	const known = sql.get<SessionRow>(
		// imports_unfinished
		`SELECT ${columns} FROM imports WHERE key = ? AND finished_at IS NULL`,
		key,
	);
	const text = canonicalJson(spec);
	if (known !== undefined) {
		if (known.spec !== text) return 'conflict';
		return { id: known.id, position: known.position, counts: readCounts(known.counts) };
	}
	sql.run(
		'INSERT INTO imports (id, key, spec, list_id, counts, created_at) VALUES (?, ?, ?, ?, ?, ?)',
		id,
		key,
		text,
		spec.list_id,
		JSON.stringify(noCounts()),
		now,
	);
	return { id, position: 0, counts: noCounts() };
}

function findSession(sql: Sql, id: string): SessionRow | null {
	return sql.get<SessionRow>(`SELECT ${columns} FROM imports WHERE id = ?`, id) ?? null;
}

function findAck(sql: Sql, seq: number, first: number): Ack<ImportCounts> | null {
	const row = sql.get<{ ack: string }>(
		'SELECT ack FROM import_acks WHERE import_seq = ? AND first = ?',
		seq,
		first,
	);
	// Written by putRows and by nothing else.
	return row === undefined ? null : (JSON.parse(row.ack) as Ack<ImportCounts>);
}

function putRows(
	sql: Sql,
	session: SessionRow,
	{ rows, count, variables, now }: RowSlice & { variables: readonly string[]; now: Micros },
): Ack<ImportCounts> {
	const spec = readSpec(session);
	const run = openImportRun(sql, { seq: session.seq, spec, count, variables, now });
	const counts = noCounts();
	const rejects: Reject[] = [];
	let { position } = session;
	for (const row of rows) {
		const outcome = row.kind === 'rejected' ? row : importRow(sql, run, row);
		counts[outcome.kind] += 1;
		if (outcome.kind === 'rejected' || outcome.kind === 'duplicate')
			rejects.push({ row: position, code: outcome.code, error: outcome.error });
		position += 1;
	}
	moveCounters(sql, session.list_id, run.moved);
	const ack = { position, counts, rejects };
	// An empty batch moves nothing: the next one has the same number and must not get its answer.
	if (count > 0) keepAck(sql, session, ack);
	return ack;
}

function keepAck(sql: Sql, session: SessionRow, ack: Ack<ImportCounts>): void {
	const sum = addCounts(readCounts(session.counts), ack.counts);
	sql.run(
		'UPDATE imports SET position = ?, counts = ? WHERE seq = ?',
		ack.position,
		JSON.stringify(sum),
		session.seq,
	);
	sql.run(
		'INSERT INTO import_acks (import_seq, first, ack) VALUES (?, ?, ?)',
		session.seq,
		session.position,
		JSON.stringify(ack),
	);
}

function readSpec({ spec, list_id }: SessionRow): ImportSpec {
	const stored = parseRecord(spec);
	const on_conflict = stored['on_conflict'];
	return {
		list_id,
		on_conflict: on_conflict === 'skip' || on_conflict === 'error' ? on_conflict : 'update',
		reactivate: stored['reactivate'] === true,
	};
}

function noCounts(): ImportCounts {
	return { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
}

function readCounts(text: string): ImportCounts {
	const stored = parseRecord(text);
	const count = (name: keyof ImportCounts) => Number(stored[name] ?? 0);
	return {
		created: count('created'),
		updated: count('updated'),
		unchanged: count('unchanged'),
		duplicate: count('duplicate'),
		rejected: count('rejected'),
	};
}

/** The sum of two parts of one import. */
export function addCounts(a: ImportCounts, b: ImportCounts): ImportCounts {
	return {
		created: a.created + b.created,
		updated: a.updated + b.updated,
		unchanged: a.unchanged + b.unchanged,
		duplicate: a.duplicate + b.duplicate,
		rejected: a.rejected + b.rejected,
	};
}
