/**
 * Moves a project from one database to another. A mark in both databases keeps other processes out, so that no
 * message is in two queues.
 */
import { hostname } from 'node:os';
import { formatDateTime, type Micros } from '../api/datetime.js';
import { StoreError } from '../api/errors.js';
import type { OtherProcess } from './store.js';

/** The mark's version in `migrations`. A mailctl without `engine migrate` thus refuses the database as too new. */
export const markVersion = 2_000_000_000;

export interface Mark {
	id: string;
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

export function whyMarked({ role, isOver, other, at }: Mark): string {
	const time = timeOf(at);
	if (role === 'copy')
		return `is an unfinished copy of ${other}, started at ${time}: finish it with "engine migrate" first`;
	if (isOver) return `was moved to ${other} at ${time}: use that database`;
	return `is being moved to ${other} since ${time}: repeat "engine migrate" to continue it, or add --undo to stop it`;
}

/** `wanted`: the caller wants to use the marked database (`data`) or to overwrite it (`place`). */
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
	return `has data that was moved to ${other} at ${timeOf(at)}, and cannot be overwritten`;
}

function timeOf(at: Micros): string {
	return `${formatDateTime(at).slice(0, 16).replace('T', ' ')} UTC`;
}

export type Value = number | string | Uint8Array | null;
export type Row = Value[];

export type Ask = (text: string, values?: readonly Value[]) => Promise<Row[]>;

export interface Table {
	name: string;
	columns: readonly { name: string; type: 'integer' | 'text' | 'blob' }[];
	key: readonly number[];
	parents: readonly string[];
}

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
	readonly keepsNul: boolean;
	readonly tables: readonly Table[];
	readonly ask: Ask;
	/** Null if the database does not exist or lacks mailctl's tables. */
	look(now: Micros): Promise<Found | null>;
	/**
	 * Creates the tables and sets the mark, so that only this move writes. Rejects if the database has rows, or if a
	 * process has it open.
	 */
	begin(mark: Mark): Promise<void>;
	goOn(mark: Mark): Promise<void>;
	/** Marks the source, so that no process changes its data. Rejects with `busy_elsewhere` if a process uses it. */
	shut(mark: Mark, now: Micros): Promise<void>;
	open(mark: Mark): Promise<void>;
	clear(mark: Mark): Promise<void>;
	write(table: Table, rows: readonly Row[]): Promise<void>;
	ids(): Promise<Map<string, number>>;
	raiseIds(ids: ReadonlyMap<string, number>): Promise<void>;
	settle(): Promise<void>;
	close(): Promise<void>;
}

export const watcher = { id: '', role: 'cli', host: hostname(), pid: process.pid };

export function namesOf({ columns }: Table, places: readonly number[] = [...columns.keys()]): string {
	return places.map((at) => `"${columns[at]?.name}"`).join(', ');
}

export async function filledOf(ask: Ask, tables: readonly Table[]): Promise<string[]> {
	const filled: string[] = [];
	for (const { name } of tables)
		if ((await ask(`SELECT 1 FROM "${name}" LIMIT 1`)).length > 0) filled.push(name);
	return filled;
}
