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
	namesOf,
	notMoved,
	questionsOn,
	type Row,
	type Table,
	tableOf,
	type Value,
} from '../moving.js';
import { openConnection } from './connection.js';
import { countSecrets, findOthers, reclaimLeases } from './core.js';
import { translateFailure } from './failures.js';
import { fileAt, openUntouched } from './inspect.js';
import { assertOurs, eraseMark, migrate, readMark, schemaVersion, writeMark } from './migrations.js';
import { lockAlone, secondName } from './restore.js';
import { createSql } from './sql.js';

const me = { id: '', role: 'cli', host: hostname(), pid: process.pid };

const cacheKiB = 131_072;

export class MovableSqlite implements Movable {
	readonly name: string;
	readonly schema = schemaVersion;
	readonly keepsNul = true;
	#db: Database.Database | null = null;
	readonly #statements = new Map<string, Database.Statement<Value[], unknown>>();

	constructor(path: string) {
		this.name = path;
	}

	async look(now: Micros): Promise<Found | null> {
		return this.#told(() => look(this.name, now));
	}

	async begin(mark: Mark, now: Micros): Promise<void> {
		this.#told(() => {
			if (look(this.name, now) === null) make(this.name, mark, now);
			const alone = this.#lock();
			try {
				const filled = filledTables(alone);
				if (filled.length > 0)
					throw new StoreError('not_a_database', `${this.name} is not empty (${filled.join(', ')})`);
				writeMark(alone, mark);
				alone.exec('COMMIT');
			} finally {
				alone.close();
			}
			this.#resume();
		});
	}

	async goOn(): Promise<void> {
		this.#told(() => this.#resume());
	}

	async shut(mark: Mark, now: Micros): Promise<void> {
		this.#told(() => {
			const db = this.#alone();
			assertOurs(db, this.name, { mayBeMarked: true });
			writeMark(db, mark);
			// No other process has the file open, so its messages may go on at once.
			reclaimLeases(createSql(db), { me, heardBefore: now, now });
			db.exec('COMMIT');
			// Others may read the mark; a second move finds the lock.
			if (!mark.isOver) db.exec('BEGIN IMMEDIATE');
		});
	}

	async open(mark: Mark): Promise<void> {
		this.#told(() => {
			const db = this.#db ?? this.#alone();
			if (readMark(db)?.id !== mark.id)
				throw new StoreError('not_a_database', `${this.name} has another mark`);
			if (!db.inTransaction) db.exec('BEGIN IMMEDIATE');
			eraseMark(db);
			db.exec('COMMIT');
			if (db.pragma('journal_mode', { simple: true }) === 'wal') db.pragma('wal_checkpoint(TRUNCATE)');
			this.#use(null);
		});
	}

	async clear(mark: Mark): Promise<void> {
		this.#told(() => {
			if (!existsSync(this.name)) return;
			const alone = this.#lock();
			try {
				const found = readMark(alone);
				if (found?.role === 'copy' && found.id === mark.id) removeFile(this.name);
			} finally {
				alone.close();
			}
		});
	}

	async tables(): Promise<Table[]> {
		return this.#told(() => tablesOf(this.#opened()));
	}

	async count(table: Table): Promise<number> {
		return Number(this.#rows(questionsOn(table).count)[0]?.[0]);
	}

	async widest(table: Table): Promise<number> {
		return Number(this.#rows(questionsOn(table).widest)[0]?.[0]);
	}

	async read(table: Table, after: readonly Value[] | null, limit: number): Promise<Row[]> {
		const { firstSlice, slice } = questionsOn(table);
		return after === null ? this.#rows(firstSlice, limit) : this.#rows(slice, ...after, limit);
	}

	async last(table: Table): Promise<Value[] | null> {
		return this.#rows(questionsOn(table).last)[0] ?? null;
	}

	async write(table: Table, rows: readonly Row[]): Promise<void> {
		this.#told(() => {
			const places = table.columns.map(() => '?').join(', ');
			const insert = this.#statement(
				`INSERT INTO "${table.name}" (${namesOf(table)}) VALUES (${places}) ON CONFLICT DO NOTHING`,
			);
			this.#opened()
				.transaction(() => {
					for (const row of rows) insert.run(...row);
				})
				.immediate();
		});
	}

	async ids(): Promise<Map<string, number>> {
		const rows = this.#rows(
			'SELECT name, seq FROM sqlite_sequence UNION ALL SELECT name, last FROM id_sequences',
		);
		return new Map(rows.map(([name, last]) => [String(name), Number(last)]));
	}

	async raiseIds(ids: ReadonlyMap<string, number>): Promise<void> {
		this.#told(() => {
			const own = new Set(tablesOf(this.#opened(), 'AUTOINCREMENT').map(({ name }) => name));
			const known = new Set(this.#rows('SELECT name FROM sqlite_sequence').map(([name]) => name));
			this.#statement("UPDATE id_sequences SET last = max(last, ?) WHERE name = 'subscribers'").run(
				ids.get('subscribers') ?? 0,
			);
			for (const [name, last] of ids) {
				if (!own.has(name) || last === 0) continue;
				const text = known.has(name)
					? 'UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?'
					: 'INSERT INTO sqlite_sequence (seq, name) VALUES (?, ?)';
				this.#statement(text).run(last, name);
			}
		});
	}

	async settle(): Promise<void> {
		const [orphan] = this.#rows('SELECT "table", parent FROM pragma_foreign_key_check LIMIT 1');
		if (orphan !== undefined) throw new Error(`a row of ${orphan[0]} has no parent in ${orphan[1]}`);
	}

	async close(): Promise<void> {
		this.#use(null);
	}

	#told<T>(work: () => T): T {
		try {
			return work();
		} catch (error) {
			throw translateFailure(error, this.name);
		}
	}

	#use(fresh: Database.Database | null): void {
		this.#db?.close();
		this.#db = fresh;
		this.#statements.clear();
	}

	#opened(): Database.Database {
		this.#db ??= openUntouched(fileAt(this.name));
		return this.#db;
	}

	#lock(): Database.Database {
		this.#use(null);
		const alone = lockAlone(this.name, { mayBeMarked: true });
		if (alone === null) throw new StoreError('damaged', `${this.name}: the database file is damaged`);
		return alone;
	}

	/** Stays locked; already alone where the mark is set anew. */
	#alone(): Database.Database {
		if (this.#db?.inTransaction && !this.#db.readonly) return this.#db;
		const alone = this.#lock();
		this.#use(alone);
		return alone;
	}

	#resume(): void {
		this.#use(new Database(this.name, { fileMustExist: true, timeout: 5_000 }));
		const copy = this.#opened();
		copy.pragma('trusted_schema = OFF');
		copy.pragma('journal_mode = WAL');
		copy.pragma('synchronous = FULL');
		// Leaves no rows behind that an erasure would not find.
		copy.pragma('secure_delete = FAST');
		copy.pragma('foreign_keys = ON');
		copy.pragma('temp_store = MEMORY');
		copy.pragma(`cache_size = -${cacheKiB}`);
	}

	#statement(text: string): Database.Statement<Value[], unknown> {
		const known = this.#statements.get(text);
		if (known !== undefined) return known;
		const fresh = this.#opened().prepare<Value[], unknown>(text);
		if (fresh.reader) fresh.raw();
		this.#statements.set(text, fresh);
		return fresh;
	}

	#rows(text: string, ...values: Value[]): Row[] {
		return this.#told(() => this.#statement(text).all(...values) as Row[]);
	}
}

/** The tables appear together with the mark: a kill never leaves an empty database beside the source. */
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

function schemaOf(db: Database.Database): number {
	const newest = 'SELECT max(version) FROM migrations WHERE version < (SELECT max(version) FROM migrations)';
	return Number(db.prepare(newest).pluck().get());
}

function filledTables(db: Database.Database): string[] {
	const isFilled = ({ name }: Table) => db.prepare(`SELECT 1 FROM "${name}" LIMIT 1`).get() !== undefined;
	return tablesOf(db)
		.filter((table) => !notMoved.has(table.name) && isFilled(table))
		.map(({ name }) => name);
}

function tablesOf(db: Database.Database, containing = ''): Table[] {
	const names = db
		.prepare<[string], string>(
			`SELECT name FROM sqlite_schema
			WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND instr(sql, ?) > 0
			ORDER BY name`,
		)
		.pluck()
		.all(containing === '' ? 'CREATE' : containing);
	const columnsOf = db.prepare<[string], { name: string; type: string; key: number }>(
		'SELECT name, type, pk AS key FROM pragma_table_info(?) ORDER BY name',
	);
	const parentsOf = db
		.prepare<[string], string>('SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)')
		.pluck();
	return names.map((name) => {
		const columns = columnsOf.all(name).map((column) => ({ ...column, type: typeOf(column.type) }));
		return tableOf(name, columns, parentsOf.all(name));
	});
}

function typeOf(type: string): Table['columns'][number]['type'] {
	if (type === 'BLOB') return 'blob';
	return type === 'INTEGER' ? 'integer' : 'text';
}

export function realFile(path: string): string {
	return existsSync(path) ? realpathSync(path) : path;
}
