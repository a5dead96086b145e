/** Imports as sessions of numbered batches; the position commits with the rows. */
import type { Ack, ImportCounts, ImportSpec } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import { canonicalJson } from '../../engine/rules/ids.js';
import type { ImportAck } from '../store.js';
import type { BatchRows } from './batch-rows.js';
import { type ImportPart, noCounts, openPart, putParts } from './import-parts.js';
import { openImportRun } from './import-run.js';
import { findList, moveCounters } from './lists.js';
import type { Slices } from './mailing-rows.js';
import { parseRecord } from './rows.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

type ImportOperations = Pick<Operations, 'openImport' | 'putImportBatch' | 'finishImport'> &
	Pick<Slices, 'findImportAnswer' | 'putImportSlices'>;

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

/** The operations on import sessions and their batches. Each runs within a transaction of the caller. */
export function createImports(sql: Sql, batchRows: BatchRows): ImportOperations {
	return {
		openImport: (command) => openImport(sql, command),
		putImportBatch: ({ session, batch, now }) => {
			const answer = findAnswer(sql, { session, first: batch.first, ahead: 0 });
			if (answer !== null) return answer;
			const slices = [{ batch, from: 0, limit: Number.POSITIVE_INFINITY }];
			const [ack] = putSlices(sql, batchRows, { session, slices, now });
			if (ack === undefined) throw new Error('a batch without an answer');
			return { kind: 'acknowledged', ack };
		},
		findImportAnswer: (command) => findAnswer(sql, command),
		putImportSlices: (command) => putSlices(sql, batchRows, command),
		finishImport: ({ session, now }) => {
			const row = findSession(sql, session);
			if (row === null) return null;
			sql.run('DELETE FROM import_acks WHERE import_seq = ?', row.seq);
			sql.run('UPDATE imports SET finished_at = coalesce(finished_at, ?) WHERE seq = ?', now, row.seq);
			return readCounts(row.counts);
		},
	};
}

function findAnswer(
	sql: Sql,
	{ session, first, ahead }: Parameters<Slices['findImportAnswer']>[0],
): ImportAck | null {
	const row = findSession(sql, session);
	if (row === null) return { kind: 'not_found' };
	const stored = findAck(sql, row.seq, first);
	if (stored !== null) return { kind: 'acknowledged', ack: stored };
	if (row.finished_at !== null) return { kind: 'not_found' };
	const position = row.position + ahead;
	if (first !== position) return { kind: 'gap', position };
	return findList(sql, row.list_id) === null ? { kind: 'list_gone' } : null;
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

function putSlices(
	sql: Sql,
	batchRows: BatchRows,
	{ session: id, slices, now }: Parameters<Slices['putImportSlices']>[0],
): Ack<ImportCounts>[] {
	const session = findSession(sql, id);
	if (session === null) throw new Error('an import that was never begun');
	const run = openImportRun(sql, { seq: session.seq, spec: readSpec(session), now });
	const parts = slices.map((slice) => openPart(batchRows, run, slice));
	putParts(sql, run, parts);
	moveCounters(sql, session.list_id, run.moved);
	return keepAcks(sql, session, parts);
}

function keepAcks(sql: Sql, session: SessionRow, parts: readonly ImportPart[]): Ack<ImportCounts>[] {
	let { position } = session;
	const acks = parts.map(({ rows, counts, rejects }) => {
		const first = position;
		for (const reject of rejects) reject.row += first;
		position += rows.count;
		const ack = { position, counts, rejects };
		// An empty batch moves nothing: the next one has the same number and must not get its answer.
		if (rows.count > 0) keepAck(sql, session.seq, first, ack);
		return ack;
	});
	const counts = acks.reduce((sum, ack) => addCounts(sum, ack.counts), readCounts(session.counts));
	sql.run(
		'UPDATE imports SET position = ?, counts = ? WHERE seq = ?',
		position,
		JSON.stringify(counts),
		session.seq,
	);
	return acks;
}

function keepAck(sql: Sql, seq: number, first: number, ack: Ack<ImportCounts>): void {
	sql.run(
		'INSERT INTO import_acks (import_seq, first, ack) VALUES (?, ?, ?)',
		seq,
		first,
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
