import { AddressSet } from '../../../api/address-set.js';
import type { Ack, ImportCounts, ImportSpec, Reject, Session } from '../../../api/capabilities.js';
import { addImportCounts } from '../../../api/counts.js';
import type { Micros } from '../../../api/datetime.js';
import { canonicalJson } from '../../../api/json.js';
import type { Uuid } from '../../../api/records.js';
import { importedReason } from '../../../api/suppressions.js';
import type { ImportRow } from '../../../engine/rules/import-rows.js';
import type { Command, Operations } from '../../operations.js';
import type { ImportAck, RowIntent } from '../../store.js';
import { moveCounters } from '../figures/tally.js';
import { hasList } from '../lists.js';
import { column, each, insertInto, insertNumbered, parseRecord, parseStored, type Sql } from '../sql.js';
import {
	BatchRows,
	chunksByRank,
	type ImportRun,
	importRows,
	openImportRun,
	type RowOutcome,
	type RowPlace,
	type RowSlice,
} from './run.js';

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

export interface BatchPreparing {
	/** Parses the rows before the transaction begins, and returns their number. */
	prepareBatch(command: Command<'putImportBatch'>): number;
}

/** Progress of a dry run. `standing` keeps the addresses of earlier rows, because the database rolls the rows back. */
interface Progress extends Pick<Session, 'position'> {
	counts: ImportCounts;
	standing: AddressSet;
}

type Trials = Map<Uuid, Progress>;

export function createImports(sql: Sql, isTrial: boolean) {
	const batchRows = new BatchRows();
	const trials: Trials | null = isTrial ? new Map() : null;
	const parts = { batchRows, trials };
	return {
		openImport: async ({ id, key, spec, now }) => {
			if (!(await hasList(sql, spec.list_id))) return null;
			const known = await sql.get<SessionRow>(
				`SELECT ${columns} FROM imports WHERE key = ? AND finished_at IS NULL`,
				[key],
			);
			const text = canonicalJson(spec);
			if (known !== undefined) {
				if (known.spec !== text) return 'conflict';
				return { id: known.id, position: known.position, counts: readCounts(known.counts) };
			}
			const begun = trials?.get(id) ?? { position: 0, counts: noCounts(), standing: new AddressSet() };
			trials?.set(id, begun);
			const { position, counts } = begun;
			const row = { id, key, spec: text, list_id: spec.list_id, position, counts: JSON.stringify(counts) };
			insertInto(sql, 'imports', { ...row, created_at: now });
			return { id, position, counts };
		},
		putImportBatch: async ({ session, batch, now, expects_new }) => {
			const answer = await findAnswer(sql, { session, first: batch.first, ahead: 0 });
			if (answer !== null) return answer;
			const slices = [{ batch, from: 0, limit: Number.POSITIVE_INFINITY }];
			const [ack] = await putSlices(sql, parts, { session, slices, now, expects_new });
			if (ack === undefined) throw new Error('a batch without an answer');
			return { kind: 'acknowledged', ack };
		},
		prepareBatch: ({ batch }) => batchRows.prepare(batch),
		findImportAnswer: (command) => findAnswer(sql, command),
		putImportSlices: (command) => putSlices(sql, parts, command),
		finishImport: async ({ session, now }) => {
			const row = await findSession(sql, session);
			if (row === null) return null;
			sql.write('DELETE FROM import_acks WHERE import_seq = ?', [row.seq]);
			sql.write('UPDATE imports SET finished_at = coalesce(finished_at, ?) WHERE seq = ?', [now, row.seq]);
			return readCounts(row.counts);
		},
	} satisfies Partial<Operations & BatchPreparing>;
}

async function findAnswer(
	sql: Sql,
	{ session, first, ahead }: Command<'findImportAnswer'>,
): Promise<ImportAck | null> {
	const row = await findSession(sql, session);
	if (row === null) return { kind: 'not_found' };
	const [stored] = await column<string>(
		sql,
		'SELECT ack FROM import_acks WHERE import_seq = ? AND first = ?',
		[row.seq, first],
	);
	if (stored !== undefined) return { kind: 'acknowledged', ack: parseStored(stored) as Ack<ImportCounts> };
	if (row.finished_at !== null) return { kind: 'not_found' };
	const position = row.position + ahead;
	if (first !== position) return { kind: 'gap', position };
	return (await hasList(sql, row.list_id)) ? null : { kind: 'list_gone' };
}

async function findSession(sql: Sql, id: string): Promise<SessionRow | null> {
	return (await sql.get<SessionRow>(`SELECT ${columns} FROM imports WHERE id = ?`, [id])) ?? null;
}

async function putSlices(
	sql: Sql,
	{ batchRows, trials }: { batchRows: BatchRows; trials: Trials | null },
	{ session: id, slices, now, expects_new = false }: Command<'putImportSlices'>,
): Promise<Ack<ImportCounts>[]> {
	const session = await findSession(sql, id);
	if (session === null) throw new Error('an import that was never begun');
	const progress = trials?.get(id);
	const standing = progress?.standing ?? null;
	const spec = readSpec(session);
	// With `on_conflict: error`, existing subscribers count as rejected. `wereNew` ignores rejected rows.
	const before = readCounts(session.counts);
	const wereNew = before.created > 0 && before.updated + before.unchanged + before.duplicate === 0;
	const expectsNew = expects_new && spec.on_conflict !== 'error' && wereNew;
	const run = await openImportRun(sql, { seq: session.seq, spec, now, standing, expectsNew });
	const parts = slices.map(({ batch, from, limit }): ImportPart => {
		const unknown = batchRows.variables(batch).filter((variable) => !run.known.has(variable));
		return { rows: batchRows.slice(batch, from, limit), unknown, counts: noCounts(), rejects: [] };
	});
	await putParts(sql, run, parts);
	moveCounters(sql, session.list_id, run.moved, run.now);
	let { position } = session;
	const acks: Ack<ImportCounts>[] = [];
	for (const { rows, counts, rejects } of parts) {
		const first = position;
		for (const reject of rejects) reject.row += first;
		position += rows.count;
		const ack = { position, counts, rejects };
		if (rows.count > 0)
			insertInto(sql, 'import_acks', { import_seq: session.seq, first, ack: JSON.stringify(ack) });
		acks.push(ack);
	}
	const counts = acks.reduce((sum, ack) => addImportCounts(sum, ack.counts), before);
	const moved = 'UPDATE imports SET position = ?, counts = ? WHERE seq = ?';
	sql.write(moved, [position, JSON.stringify(counts), session.seq]);
	if (progress !== undefined) Object.assign(progress, { position, counts });
	return acks;
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
	const other_reasons = count('other_reasons');
	return {
		created: count('created'),
		updated: count('updated'),
		unchanged: count('unchanged'),
		duplicate: count('duplicate'),
		rejected: count('rejected'),
		...(other_reasons > 0 && { other_reasons }),
	};
}

interface ImportPart {
	rows: RowSlice;
	unknown: readonly string[];
	counts: ImportCounts;
	rejects: Reject[];
}

/** Writes rows roughly by `email_key`, but rows of one address in file order. Ids follow the file order, with gaps. */
async function putParts(sql: Sql, run: ImportRun, parts: readonly ImportPart[]): Promise<void> {
	const { count, find } = numberRows(parts);
	if (count === 0) return;
	const firstId = (await sql.number(sql.dialect.newSubscriberIds, [count])) - count + 1;
	const rankAt = (number: number) => {
		const { part, index } = find(number);
		return part.rows.rank(index);
	};
	const place = (number: number): PlacedRow => {
		const { part, index } = find(number);
		// Name each property, because spreading a row costs as much as inserting it.
		return { part, index, id: firstId + number };
	};
	const chunks = chunksByRank(count, rankAt, mostAtOnce);
	await each(sql, chunks, async (numbers) => {
		for (let from = 0; from < numbers.length; from += mostAtOnce)
			await putRows(sql, run, Array.from(numbers.subarray(from, from + mostAtOnce), place));
	});
	for (const { rejects } of parts) rejects.sort((a, b) => a.row - b.row);
}

interface Numbered {
	part: ImportPart;
	index: number;
}

/** Typed arrays need less memory than one object per row. */
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

type PlacedRow = Numbered & { id: number };

const mostAtOnce = 1_000;

async function putRows(sql: Sql, run: ImportRun, places: readonly PlacedRow[]): Promise<void> {
	const valid: { part: ImportPart; index: number; row: ImportRow; place: RowPlace }[] = [];
	for (const { part, index, id } of places) {
		const row = part.rows.row(index);
		if (row.kind === 'rejected') count(part, index, row);
		else valid.push({ part, index, row, place: { id, unknown: part.unknown } });
	}
	const outcomes = await importRows(sql, run, valid);
	for (const [at, outcome] of outcomes.entries()) {
		const put = valid[at];
		if (put === undefined) throw new RangeError('an outcome of no row');
		count(put.part, put.index, outcome);
		if (keepsText(run, put.row, outcome.kind))
			put.part.counts.other_reasons = (put.part.counts.other_reasons ?? 0) + 1;
	}
}

function count(part: ImportPart, index: number, outcome: RowOutcome): void {
	part.counts[outcome.kind] += 1;
	if (outcome.kind === 'rejected' || outcome.kind === 'duplicate')
		part.rejects.push({ row: index, code: outcome.code, error: outcome.error });
}

function keepsText({ spec }: ImportRun, { disable_reason }: ImportRow, kind: RowOutcome['kind']): boolean {
	if (disable_reason === null || importedReason(disable_reason) !== null) return false;
	return kind === 'created' || kind === 'updated' || (kind === 'unchanged' && spec.on_conflict === 'update');
}

function noCounts(): ImportCounts {
	return { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
}

type Row = Pick<SessionRow, 'seq' | 'position' | 'counts'>;

interface Counted {
	counts: ImportCounts;
	reasons_left_out: number;
}

export function createRowImports(sql: Sql) {
	return {
		openRowImport: async ({ key, now }) => {
			const columns = 'SELECT seq, position, counts FROM imports WHERE key = ? AND finished_at IS NULL';
			const row = await sql.get<Row>(columns, [key]);
			if (row === undefined) {
				const counted: Counted = { counts: noCounts(), reasons_left_out: 0 };
				const fresh = { id: key, key, spec: '{}', list_id: 0, counts: JSON.stringify(counted) };
				const seq = await insertNumbered(sql, 'imports', { ...fresh, created_at: now }, 'seq');
				return { import: seq, position: 0, ...counted, last: null, intents: [] };
			}
			const last = await sql.get<{ first: number; ack: string }>(
				'SELECT first, ack FROM import_acks WHERE import_seq = ? ORDER BY first DESC',
				[row.seq],
			);
			const ack = last === undefined ? null : (parseStored(last.ack) as Ack<ImportCounts>);
			return {
				import: row.seq,
				position: row.position,
				...(parseStored(row.counts) as Counted),
				last: last === undefined || ack === null ? null : { first: last.first, ack },
				intents: await sql.all<{ row: number; intent: RowIntent }>(
					'SELECT row, intent FROM import_intents WHERE import_seq = ? ORDER BY row',
					[row.seq],
				),
			};
		},
		declareRow: async ({ import: seq, row, intent }) => {
			const conflict = 'ON CONFLICT (import_seq, row) DO UPDATE SET intent = excluded.intent';
			insertInto(sql, 'import_intents', { import_seq: seq, row, intent }, conflict);
		},
		acknowledgeRows: async ({ import: seq, first, ack, reasons_left_out, taken }) => {
			const row = await sql.get<Row>('SELECT seq, position, counts FROM imports WHERE seq = ?', [seq]);
			if (row === undefined) throw new Error(`import ${seq} is gone`);
			const before = parseStored(row.counts) as Counted;
			const counted: Counted = {
				counts: addImportCounts(before.counts, ack.counts),
				reasons_left_out: before.reasons_left_out + reasons_left_out,
			};
			const text = JSON.stringify(counted);
			sql.write('UPDATE imports SET position = ?, counts = ? WHERE seq = ?', [ack.position, text, seq]);
			dropDetails(sql, seq);
			insertInto(sql, 'import_acks', { import_seq: seq, first, ack: JSON.stringify(ack) });
			for (const hash of taken)
				insertInto(sql, 'import_addresses', { import_seq: seq, hash }, 'ON CONFLICT DO NOTHING');
		},
		dropRowImport: async ({ import: seq }) => {
			dropDetails(sql, seq);
			sql.write('DELETE FROM import_addresses WHERE import_seq = ?', [seq]);
			sql.write('DELETE FROM imports WHERE seq = ?', [seq]);
		},
		sliceImportAddresses: ({ import: seq, after, limit }) =>
			column<string>(
				sql,
				'SELECT hash FROM import_addresses WHERE import_seq = ? AND hash > ? ORDER BY hash LIMIT ?',
				[seq, after, limit],
			),
	} satisfies Partial<Operations>;
}

function dropDetails(sql: Sql, seq: number): void {
	sql.write('DELETE FROM import_intents WHERE import_seq = ?', [seq]);
	sql.write('DELETE FROM import_acks WHERE import_seq = ?', [seq]);
}
