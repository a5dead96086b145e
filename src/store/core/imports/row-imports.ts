import type { Ack, ImportCounts } from '../../../api/capabilities.js';
import { addImportCounts } from '../../../api/counts.js';
import { parseStored } from '../../errors.js';
import type { RowImport, RowImportReads, RowImportWrites, RowIntent } from '../../imports.js';
import { column, insertInto, insertNumbered, type Sql } from '../sql.js';
import { noCounts } from './imports.js';

interface Row {
	seq: number;
	position: number;
	counts: string;
}

interface Counted {
	counts: ImportCounts;
	reasons_left_out: number;
}

export function createRowImports(sql: Sql): RowImportReads & RowImportWrites {
	return {
		openRowImport: async ({ key, now }) => {
			const columns = 'SELECT seq, position, counts FROM imports WHERE key = ? AND finished_at IS NULL';
			const row = await sql.get<Row>(columns, [key]);
			return row === undefined ? await begin(sql, key, now) : await read(sql, row);
		},
		declareRow: async ({ import: seq, row, intent }) => {
			const conflict = 'ON CONFLICT (import_seq, row) DO UPDATE SET intent = excluded.intent';
			insertInto(sql, 'import_intents', { import_seq: seq, row, intent }, conflict);
		},
		acknowledgeRows: async ({ import: seq, first, ack, reasons_left_out, taken }) => {
			const row = await sql.get<Row>('SELECT seq, position, counts FROM imports WHERE seq = ?', [seq]);
			if (row === undefined) throw new Error(`import ${seq} is gone`);
			const before = countedOf(row);
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
	};
}

async function begin(sql: Sql, key: string, now: number): Promise<RowImport> {
	const counted: Counted = { counts: noCounts(), reasons_left_out: 0 };
	const row = { id: key, key, spec: '{}', list_id: 0, counts: JSON.stringify(counted), created_at: now };
	const seq = await insertNumbered(sql, 'imports', row, 'seq');
	return { import: seq, position: 0, ...counted, last: null, intents: [] };
}

async function read(sql: Sql, row: Row): Promise<RowImport> {
	const last = await sql.get<{ first: number; ack: string }>(
		'SELECT first, ack FROM import_acks WHERE import_seq = ? ORDER BY first DESC',
		[row.seq],
	);
	const intents = await sql.all<{ row: number; intent: RowIntent }>(
		'SELECT row, intent FROM import_intents WHERE import_seq = ? ORDER BY row',
		[row.seq],
	);
	return {
		import: row.seq,
		position: row.position,
		...countedOf(row),
		last: last === undefined ? null : { first: last.first, ack: parseStored(last.ack) as Ack<ImportCounts> },
		intents,
	};
}

function countedOf({ counts }: Row): Counted {
	return parseStored(counts) as Counted;
}

function dropDetails(sql: Sql, seq: number): void {
	sql.write('DELETE FROM import_intents WHERE import_seq = ?', [seq]);
	sql.write('DELETE FROM import_acks WHERE import_seq = ?', [seq]);
}
