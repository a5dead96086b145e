/**
 * Moves a project from one database to another. A mark in both keeps other processes away, so that no message waits
 * in two queues.
 */
import { formatDateTime, type Micros } from '../api/datetime.js';
import { StoreError } from '../api/errors.js';
import type { OtherProcess } from './store.js';

/** Kept as the last migration: a program without moves takes it for a newer schema, and refuses it. */
export const markVersion = 2_000_000_000;

export interface Mark {
	id: string;
	/** Nothing changes a `source` any more; nothing works on a `copy` yet. */
	role: 'source' | 'copy';
	isOver: boolean;
	other: string;
	at: Micros;
}

export function parseMark(text: string): Mark {
	const mark: unknown = JSON.parse(text);
	if (typeof mark !== 'object' || mark === null || !('id' in mark) || !('role' in mark))
		throw new Error(`no mark of a move: ${text.slice(0, 100)}`);
	return mark as Mark;
}

/** Continues the name of the database. */
export function whyMarked({ role, isOver, other, at }: Mark): string {
	const time = timeOf(at);
	if (role === 'copy')
		return `is an unfinished copy of ${other}, begun at ${time}: nothing works on it before "engine migrate" has ended`;
	if (isOver) return `was moved to ${other} at ${time}: name that database`;
	return `is being moved to ${other} since ${time}: the same "engine migrate" again goes on, with --undo it is given up`;
}

/** A move has marked the database. `wanted`: its data, or its place for another database. */
export class DatabaseMarked extends StoreError {
	override readonly name = 'DatabaseMarked';
	readonly database: string;
	readonly mark: Mark;
	readonly wanted: 'data' | 'place';
	constructor(database: string, mark: Mark, wanted: DatabaseMarked['wanted'] = 'data') {
		super('moved', `${database} ${wanted === 'place' && mark.isOver ? whyKept(mark) : whyMarked(mark)}`);
		this.database = database;
		this.mark = mark;
		this.wanted = wanted;
	}
}

function whyKept({ other, at }: Mark): string {
	return `has what was moved to ${other} at ${timeOf(at)}, and nothing is put in its place`;
}

function timeOf(at: Micros): string {
	return `${formatDateTime(at).slice(0, 16).replace('T', ' ')} UTC`;
}

export type Value = number | string | Uint8Array | null;
export type Row = Value[];

export interface Table {
	name: string;
	/** Sorted by name, so that both databases have one order. */
	columns: readonly { name: string; type: 'integer' | 'text' | 'blob' }[];
	key: readonly number[];
	parents: readonly string[];
}

export const notMoved: ReadonlySet<string> = new Set([
	'migrations',
	'processes',
	'clock',
	'leaders',
	'outcomes',
	'id_sequences',
]);

export interface Found {
	identity: string;
	schema: number;
	mark: Mark | null;
	usedBy: readonly OtherProcess[];
	filled: readonly string[];
	keys: readonly string[];
}

export interface Movable {
	readonly name: string;
	readonly schema: number;
	/** Whether texts may hold U+0000. */
	readonly keepsNul: boolean;
	/** Null: the database does not exist, or lacks our tables. */
	look(now: Micros): Promise<Found | null>;
	/**
	 * Makes the tables and sets the mark: from now on only this move writes. Rejects where a process has it open, or it
	 * has rows.
	 */
	begin(mark: Mark, now: Micros): Promise<void>;
	goOn(mark: Mark): Promise<void>;
	/**
	 * Sets the mark of a source: from now on nothing changes it. Rejects with `busy_elsewhere` where a process works on
	 * it.
	 */
	shut(mark: Mark, now: Micros): Promise<void>;
	open(mark: Mark): Promise<void>;
	clear(mark: Mark): Promise<void>;
	tables(): Promise<Table[]>;
	count(table: Table): Promise<number>;
	widest(table: Table): Promise<number>;
	/** Rows after that key, in the order of keys: octets of texts, then numbers. */
	read(table: Table, after: readonly Value[] | null, limit: number): Promise<Row[]>;
	last(table: Table): Promise<Value[] | null>;
	write(table: Table, rows: readonly Row[]): Promise<void>;
	ids(): Promise<Map<string, number>>;
	/** Keeps the id of a deleted record from being given again. */
	raiseIds(ids: ReadonlyMap<string, number>): Promise<void>;
	settle(): Promise<void>;
	close(): Promise<void>;
}

export function namesOf({ columns }: Table, places: readonly number[] = [...columns.keys()]): string {
	return places.map((at) => `"${columns[at]?.name}"`).join(', ');
}

export function questionsOn(table: Table) {
	const key = namesOf(table, table.key);
	const sizes = table.columns
		.filter(({ type }) => type !== 'integer')
		.map(({ name }) => `coalesce(octet_length("${name}"), 0)`);
	const from = `FROM "${table.name}"`;
	const behind = `WHERE (${key}) > (${table.key.map(() => '?').join(', ')})`;
	return {
		count: `SELECT count(*) ${from}`,
		widest: `SELECT ${8 * table.columns.length} + coalesce(max(${['0', ...sizes].join(' + ')}), 0) ${from}`,
		slice: `SELECT ${namesOf(table)} ${from} ${behind} ORDER BY ${key} LIMIT ?`,
		firstSlice: `SELECT ${namesOf(table)} ${from} ORDER BY ${key} LIMIT ?`,
		last: `SELECT ${key} ${from} ORDER BY ${key.replaceAll(/"(?=,|$)/g, '" DESC')} LIMIT 1`,
	};
}

export function tableOf(
	name: string,
	columns: readonly (Table['columns'][number] & { key: number })[],
	parents: readonly string[],
): Table {
	const key = columns
		.map(({ key }, at) => ({ key, at }))
		.filter(({ key }) => key > 0)
		.sort((one, other) => one.key - other.key);
	return {
		name,
		columns: columns.map(({ name, type }) => ({ name, type })),
		key: key.map(({ at }) => at),
		parents,
	};
}
