/** A SQLite file as one of the two databases of a move. */
import { existsSync, realpathSync, rmSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import Database from 'better-sqlite3';
import type { Micros } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { DatabaseMissing } from '../errors.js';
import {
	type Found,
	type Mark,
	type Movable,
	notMoved,
	type Row,
	type Table,
	type Value,
} from '../moving.js';
import { openConnection } from './connection.js';
import { countSecrets, findOthers, reclaimLeases } from './core.js';
import { translateFailure } from './failures.js';
import { fileAt, openUntouched } from './inspect.js';
import { assertOurs, eraseMark, migrate, readMark, schemaVersion, writeMark } from './migrations.js';
import { lockAlone, secondName } from './restore.js';
import { createSql } from './sql.js';

/** Sees the processes of others alone: it has no heartbeat. */
const me = { id: '', role: 'cli', host: hostname(), pid: process.pid };

const cacheKiB = 131_072;

/** `path`: absolute. */
export function movableSqlite(path: string): Movable {
	let db: Database.Database | null = null;
	const statements = new Map<string, Database.Statement<Value[], unknown>>();
	const use = (fresh: Database.Database | null): void => {
		db?.close();
		db = fresh;
		statements.clear();
	};
	const opened = (): Database.Database => {
		db ??= openUntouched(fileAt(path));
		return db;
	};
	const raw = (text: string): Database.Statement<Value[], unknown> => {
		const known = statements.get(text);
		if (known !== undefined) return known;
		const fresh = opened().prepare<Value[], unknown>(text);
		if (fresh.reader) fresh.raw();
		statements.set(text, fresh);
		return fresh;
	};
	const rows = (text: string, ...values: Value[]) => raw(text).all(...values) as Row[];
	const number = (text: string) => Number(rows(text)[0]?.[0] ?? 0);
	/** Of the table in a transaction of its own, with the lock that keeps every other process out. */
	const lock = (): Database.Database => {
		use(null);
		const alone = lockAlone(path, { mayBeMarked: true });
		if (alone === null) throw new StoreError('damaged', `${path}: the database file is damaged`);
		return alone;
	};
	const told = async <T>(work: () => T): Promise<T> => {
		try {
			return work();
		} catch (error) {
			throw translateFailure(error, path);
		}
	};
	const resume = (): void => {
		use(new Database(path, { fileMustExist: true, timeout: 5_000 }));
		const copy = opened();
		copy.pragma('trusted_schema = OFF');
		copy.pragma('journal_mode = WAL');
		copy.pragma('synchronous = FULL');
		// Rows that move to another page leave nothing behind that an erasure would not find.
		copy.pragma('secure_delete = FAST');
		copy.pragma('foreign_keys = ON');
		copy.pragma('temp_store = MEMORY');
		copy.pragma(`cache_size = -${cacheKiB}`);
	};
	return {
		name: path,
		schema: schemaVersion,
		keepsNul: true,
		look: (now) => told(() => look(path, now)),
		begin: (mark, now) =>
			told(() => {
				if (look(path, now) === null) make(path, mark, now);
				const alone = lock();
				try {
					const filled = filledTables(alone);
					if (filled.length > 0)
						throw new StoreError('not_a_database', `${path} is not empty (${filled.join(', ')})`);
					writeMark(alone, mark);
					alone.exec('COMMIT');
				} finally {
					alone.close();
				}
				resume();
			}),
		goOn: () => told(resume),
		shut: (mark, now) =>
			told(() => {
				// Already alone where the mark is set anew.
				const alone = db?.inTransaction && !db.readonly ? db : lock();
				if (alone !== db) use(alone);
				assertOurs(alone, path, { mayBeMarked: true });
				writeMark(alone, mark);
				// No other process has the file open: their messages may go on at once.
				reclaimLeases(createSql(alone), { me, heardBefore: now, now });
				alone.exec('COMMIT');
				// Others may read the mark; a second move finds the lock.
				if (!mark.isOver) alone.exec('BEGIN IMMEDIATE');
			}),
		open: (mark) =>
			told(() => {
				const own = db ?? lock();
				if (own !== db) use(own);
				if (readMark(own)?.id !== mark.id) throw new StoreError('not_a_database', `${path} has another mark`);
				if (!own.inTransaction) own.exec('BEGIN IMMEDIATE');
				eraseMark(own);
				own.exec('COMMIT');
				if (own.pragma('journal_mode', { simple: true }) === 'wal') own.pragma('wal_checkpoint(TRUNCATE)');
				use(null);
			}),
		clear: (mark) =>
			told(() => {
				if (!existsSync(path)) return;
				const alone = lock();
				try {
					const found = readMark(alone);
					if (found?.role !== 'copy' || found.id !== mark.id) return;
					removeFile(path);
				} finally {
					alone.close();
				}
			}),
		tables: () => told(() => tablesOf(opened())),
		count: ({ name }) => told(() => number(`SELECT count(*) FROM "${name}"`)),
		widest: ({ name, columns }) =>
			told(() => {
				const size = columns
					.filter(({ type }) => type !== 'integer')
					.map((column) => `coalesce(octet_length("${column.name}"), 0)`);
				return 8 * columns.length + number(`SELECT max(${['0', ...size].join(' + ')}) FROM "${name}"`);
			}),
		read: (table, after, limit) =>
			told(() => {
				const key = namesOf(table, table.key);
				const where = after === null ? '' : `WHERE (${key}) > (${table.key.map(() => '?').join(', ')})`;
				return rows(
					`SELECT ${namesOf(table)} FROM "${table.name}" ${where} ORDER BY ${key} LIMIT ?`,
					...(after ?? []),
					limit,
				);
			}),
		last: (table) =>
			told(() => {
				const key = namesOf(table, table.key);
				const order = table.key.map((at) => `"${table.columns[at]?.name}" DESC`).join(', ');
				return rows(`SELECT ${key} FROM "${table.name}" ORDER BY ${order} LIMIT 1`)[0] ?? null;
			}),
		write: (table, all) =>
			told(() => {
				const insert = raw(
					`INSERT INTO "${table.name}" (${namesOf(table)}) VALUES (${table.columns.map(() => '?').join(', ')})
					ON CONFLICT DO NOTHING`,
				);
				opened()
					.transaction(() => {
						for (const row of all) insert.run(...row);
					})
					.immediate();
			}),
		ids: () =>
			told(
				() =>
					new Map(
						rows('SELECT name, seq FROM sqlite_sequence UNION ALL SELECT name, last FROM id_sequences').map(
							([name, last]) => [String(name), Number(last)],
						),
					),
			),
		raiseIds: (ids) =>
			told(() => {
				const own = new Map(tablesOf(opened(), 'AUTOINCREMENT').map((table) => [table.name, table]));
				const known = new Set(rows('SELECT name FROM sqlite_sequence').map(([name]) => name));
				raw("UPDATE id_sequences SET last = max(last, ?) WHERE name = 'subscribers'").run(
					ids.get('subscribers') ?? 0,
				);
				for (const [name, last] of ids) {
					if (!own.has(name) || last === 0) continue;
					if (known.has(name))
						raw('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?').run(last, name);
					else raw('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, last);
				}
			}),
		settle: () =>
			told(() => {
				const [orphan] = rows('SELECT "table", parent FROM pragma_foreign_key_check LIMIT 1');
				if (orphan !== undefined) throw new Error(`a row of ${orphan[0]} has no parent in ${orphan[1]}`);
			}),
		close: async () => use(null),
	};
}

/** The tables appear together with the mark: a kill never leaves an empty database that works beside the source. */
function make(path: string, mark: Mark, now: Micros): void {
	const isNew = !existsSync(path);
	const file = isNew ? `${path}.begun` : path;
	if (isNew) removeFile(file);
	const fresh = openConnection({ path: file, role: 'writer', mode: 'create', busyTimeoutMs: 2_000 });
	try {
		fresh
			.transaction(() => {
				migrate(fresh, { path, me, now });
				writeMark(fresh, mark);
			})
			.immediate();
		fresh.pragma('journal_mode = DELETE');
	} finally {
		fresh.close();
	}
	if (isNew) secondName(file, path);
	if (isNew) removeFile(file);
}

function removeFile(path: string): void {
	for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true });
}

function look(path: string, now: Micros): Found | null {
	let file: string;
	try {
		file = fileAt(path);
	} catch (error) {
		if (error instanceof DatabaseMissing) return null;
		throw error;
	}
	const { dev, ino, size } = statSync(file);
	if (size === 0) return null;
	const db = openUntouched(file);
	try {
		assertOurs(db, path, { mayBeMarked: true });
		const found = Number(db.pragma('user_version', { simple: true }));
		if (found === 0) return null;
		const mark = readMark(db);
		const schema = mark === null ? found : schemaOf(db);
		const identity = `${dev}:${ino}`;
		// An older schema may lack the tables.
		if (schema !== schemaVersion) return { identity, schema, mark, usedBy: [], filled: [], keys: [] };
		const sql = createSql(db);
		return {
			...{ identity, schema, mark },
			usedBy: findOthers(sql, me, now).map(({ host, pid, role }) => ({ host, pid, role })),
			filled: filledTables(db),
			keys: [...countSecrets(sql).keys()].filter((key) => key !== null),
		};
	} finally {
		db.close();
	}
}

/** The schema of a marked database. */
function schemaOf(db: Database.Database): number {
	const newest = 'SELECT max(version) FROM migrations WHERE version < (SELECT max(version) FROM migrations)';
	return Number(db.prepare(newest).pluck().get());
}

/** Those that a move copies, and that have rows. */
function filledTables(db: Database.Database): string[] {
	const isFilled = ({ name }: Table) => db.prepare(`SELECT 1 FROM "${name}" LIMIT 1`).get() !== undefined;
	return tablesOf(db)
		.filter((table) => !notMoved.has(table.name) && isFilled(table))
		.map(({ name }) => name);
}

/** `containing`: in their definition. */
function tablesOf(db: Database.Database, containing = ''): Table[] {
	const names = db
		.prepare<[string], string>(
			`SELECT name FROM sqlite_schema
			WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND instr(sql, ?) > 0
			ORDER BY name`,
		)
		.pluck()
		.all(containing === '' ? 'CREATE' : containing);
	const columnsOf = db.prepare<[string], { name: string; type: string; pk: number }>(
		'SELECT name, type, pk FROM pragma_table_info(?) ORDER BY name',
	);
	const parentsOf = db
		.prepare<[string], string>('SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)')
		.pluck();
	return names.map((name) => {
		const columns = columnsOf.all(name);
		const key = columns
			.map(({ pk }, at) => ({ pk, at }))
			.filter(({ pk }) => pk > 0)
			.sort((one, other) => one.pk - other.pk);
		return {
			name,
			columns: columns.map((column) => ({ name: column.name, type: typeOf(column.type) })),
			key: key.map(({ at }) => at),
			parents: parentsOf.all(name),
		};
	});
}

function typeOf(type: string): Table['columns'][number]['type'] {
	if (type === 'BLOB') return 'blob';
	return type === 'INTEGER' ? 'integer' : 'text';
}

function namesOf({ columns }: Table, places: readonly number[] = [...columns.keys()]): string {
	return places.map((at) => `"${columns[at]?.name}"`).join(', ');
}

/** The real place of a file that may not be there yet. */
export function realFile(path: string): string {
	return existsSync(path) ? realpathSync(path) : path;
}
