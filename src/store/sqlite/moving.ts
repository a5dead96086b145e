import { existsSync, realpathSync, rmSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { Micros } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import {
	type Ask,
	type Found,
	filledOf,
	type Mark,
	type Movable,
	namesOf,
	type Row,
	type Table,
	type Value,
	watcher,
} from '../moving.js';
import { lockAlone, secondName } from './backup.js';
import { lookAt, openConnection, translateFailure } from './connection.js';
import { countSecrets, findOthers, reclaimLeases } from './core.js';
import { fileAt, openUntouched, usersOf } from './inspect.js';
import {
	assertOurs,
	eraseMark,
	migrate,
	migrations,
	readMark,
	schemaVersion,
	writeMark,
} from './migrations.js';
import { createSql } from './sql.js';

const cacheKiB = 131_072;

/** The tables that a move copies have the same columns on SQLite and PostgreSQL. */
export function projectTables(): Table[] {
	const db = new Database(':memory:');
	for (const { sql } of migrations) db.exec(sql);
	const columns = db
		.prepare<[], { table: string; name: string; type: string; pk: number }>(
			`SELECT t.name AS "table", c.name, lower(c.type) AS type, c.pk
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
				AND t.name NOT IN ('migrations', 'processes', 'clock', 'id_sequences')
			ORDER BY 1, 2`,
		)
		.all();
	const parents = db
		.prepare<[], { table: string; parent: string }>(
			`SELECT DISTINCT t.name AS "table", f."table" AS parent
			FROM sqlite_schema t, pragma_foreign_key_list(t.name) f
			WHERE t.type = 'table'`,
		)
		.all();
	db.close();
	return [...new Set(columns.map(({ table }) => table))].map((name) => {
		const own = columns.filter(({ table }) => table === name);
		const places = own.flatMap(({ pk }, at) => (pk > 0 ? [[pk, at] as const] : []));
		return {
			name,
			columns: own.map((column) => ({ name: column.name, type: column.type as 'integer' | 'text' | 'blob' })),
			key: places.sort(([one], [other]) => one - other).map(([, at]) => at),
			parents: parents.filter(({ table }) => table === name).map(({ parent }) => parent),
		};
	});
}

export class MovableSqlite implements Movable {
	readonly name: string;
	readonly schema = schemaVersion;
	readonly keepsNul = true;
	readonly tables = projectTables();
	#db: Database.Database | null = null;
	readonly #statements = new Map<string, Database.Statement<Value[], unknown>>();

	constructor(path: string) {
		this.name = path;
	}

	readonly ask: Ask = (text, values = []) => this.#told(() => this.#statement(text).all(...values) as Row[]);

	async look(now: Micros): Promise<Found | null> {
		return this.#told(async () => {
			if ((lookAt(this.name)?.size ?? 0) === 0) return null;
			const file = fileAt(this.name);
			const { dev, ino } = statSync(file);
			const db = this.#use(openUntouched(file));
			assertOurs(db, this.name, { mayBeMarked: true });
			const found = Number(db.pragma('user_version', { simple: true }));
			if (found === 0) return null;
			const mark = readMark(db);
			const before = 'SELECT max(version) FROM migrations WHERE version < ?';
			const schema = mark === null ? found : Number((await this.ask(before, [found]))[0]?.[0]);
			const identity = `${dev}:${ino}`;
			if (schema !== schemaVersion) return { identity, schema, mark, usedBy: [], filled: [], keys: [] };
			const sql = createSql(db);
			return {
				...{ identity, schema, mark },
				usedBy: usersOf(findOthers(sql, watcher, now)),
				filled: await filledOf(this.ask, this.tables),
				keys: [...countSecrets(sql).keys()].filter((key) => key !== null),
			};
		});
	}

	async begin(mark: Mark): Promise<void> {
		await this.#told(async () => {
			const isNew = (await this.look(mark.at)) === null;
			this.#use(null);
			if (isNew) make(this.name, mark);
			const db = this.#lock();
			const filled = await filledOf(this.ask, this.tables);
			if (filled.length > 0)
				throw new StoreError('not_a_database', `${this.name} is not empty (${filled.join(', ')})`);
			writeMark(db, mark);
			db.exec('COMMIT');
			await this.goOn();
		});
	}

	async goOn(): Promise<void> {
		await this.#told(() => {
			const how = { role: 'writer', mode: 'existing', busyTimeoutMs: 5_000, mayBeMarked: true } as const;
			const copy = this.#use(openConnection({ path: this.name, ...how }));
			copy.pragma(`cache_size = -${cacheKiB}`);
		});
	}

	async shut(mark: Mark, now: Micros): Promise<void> {
		await this.#told(() => {
			const db = this.#db?.inTransaction && !this.#db.readonly ? this.#db : this.#lock();
			assertOurs(db, this.name, { mayBeMarked: true });
			writeMark(db, mark);
			reclaimLeases(createSql(db), { me: watcher, heardBefore: now, now });
			db.exec('COMMIT');
			if (!mark.isOver) db.exec('BEGIN IMMEDIATE');
		});
	}

	async open(mark: Mark): Promise<void> {
		await this.#told(() => {
			const db = this.#db ?? this.#lock();
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
		await this.#told(() => {
			if (!existsSync(this.name)) return;
			const found = readMark(this.#lock());
			if (found?.role === 'copy' && found.id === mark.id) removeFile(this.name);
			this.#use(null);
		});
	}

	async write(table: Table, rows: readonly Row[]): Promise<void> {
		await this.#told(() => {
			const places = table.columns.map(() => '?').join(', ');
			const insert = this.#statement(
				`INSERT INTO "${table.name}" (${namesOf(table)}) VALUES (${places}) ON CONFLICT DO NOTHING`,
			);
			const insertAll = this.#opened().transaction(() => {
				for (const row of rows) insert.run(...row);
			});
			insertAll.immediate();
		});
	}

	async ids(): Promise<Map<string, number>> {
		const rows = await this.ask(
			'SELECT name, seq FROM sqlite_sequence UNION ALL SELECT name, last FROM id_sequences',
		);
		return new Map(rows.map(([name, last]) => [String(name), Number(last)]));
	}

	async raiseIds(ids: ReadonlyMap<string, number>): Promise<void> {
		const numbered = await this.ask("SELECT name FROM sqlite_schema WHERE instr(sql, 'AUTOINCREMENT') > 0");
		const known = new Set((await this.ask('SELECT name FROM sqlite_sequence')).map(([name]) => name));
		await this.#told(() => {
			this.#statement("UPDATE id_sequences SET last = max(last, ?) WHERE name = 'subscribers'").run(
				ids.get('subscribers') ?? 0,
			);
			for (const [name = null] of numbered) {
				const last = ids.get(String(name)) ?? 0;
				if (last === 0) continue;
				const text = known.has(name)
					? 'UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?'
					: 'INSERT INTO sqlite_sequence (seq, name) VALUES (?, ?)';
				this.#statement(text).run(last, name);
			}
		});
	}

	async settle(): Promise<void> {
		const [orphan] = await this.ask('SELECT "table", parent FROM pragma_foreign_key_check LIMIT 1');
		if (orphan !== undefined) throw new Error(`a row of ${orphan[0]} has no parent in ${orphan[1]}`);
	}

	async close(): Promise<void> {
		this.#use(null);
	}

	async #told<T>(work: () => T | Promise<T>): Promise<T> {
		try {
			return await work();
		} catch (error) {
			throw translateFailure(error, this.name);
		}
	}

	#use<T extends Database.Database | null>(fresh: T): T {
		this.#db?.close();
		this.#db = fresh;
		this.#statements.clear();
		return fresh;
	}

	#opened(): Database.Database {
		return this.#db ?? this.#use(openUntouched(fileAt(this.name)));
	}

	#lock(): Database.Database {
		this.#use(null);
		const alone = lockAlone(this.name, { mayBeMarked: true });
		if (alone === null) throw new StoreError('damaged', `${this.name}: the database file is damaged`);
		return this.#use(alone);
	}

	#statement(text: string): Database.Statement<Value[], unknown> {
		const known = this.#statements.get(text);
		if (known !== undefined) return known;
		const fresh = this.#opened().prepare<Value[], unknown>(text);
		if (fresh.reader) fresh.raw();
		this.#statements.set(text, fresh);
		return fresh;
	}
}

/** Creates the tables and the mark together, so that a kill never leaves an empty database without a mark. */
function make(path: string, mark: Mark): void {
	const isNew = !existsSync(path);
	const file = isNew ? `${path}.begun` : path;
	if (isNew) removeFile(file);
	const fresh = openConnection({ path: file, role: 'writer', mode: 'create', busyTimeoutMs: 2_000 });
	try {
		const makeTables = fresh.transaction(() => {
			migrate(fresh, { path, me: watcher, now: mark.at });
			writeMark(fresh, mark);
		});
		makeTables.immediate();
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

export function realFile(path: string): string {
	return existsSync(path) ? realpathSync(path) : path;
}
