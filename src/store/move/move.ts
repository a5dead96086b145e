/**
 * Moves a project to another database: shuts the source, copies and compares its rows, then opens the copy. After a
 * kill, a later run continues from the marks and from the last copied row of each table.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { DatabaseMissing } from '../errors.js';
import { newerSchema } from '../migrations.js';
import {
	DatabaseMarked,
	type Found,
	type Mark,
	type Movable,
	namesOf,
	type Row,
	type Table,
	type Value,
} from '../moving.js';

interface Databases {
	from: Movable;
	to: Movable;
}

export interface MovePlan {
	begun: { id: string; isOver: boolean } | null;
	found: Found | null;
	tables: readonly { table: Table; rows: number }[];
	rows: number;
	keys: readonly string[];
}

interface MoveOptions extends Databases {
	plan: MovePlan;
	clock: Clock;
	newId: () => string;
	signal: AbortSignal;
	onShut: () => void;
	onProgress: (what: 'copying' | 'comparing', rows: number) => void;
}

interface Moved {
	tables: { table: string; rows: number; sha256: string }[];
	kept: number;
	/** Counts texts in which U+FFFD replaced U+0000, which the target cannot store. */
	replaced: number;
}

export class CopyDiffers extends Error {
	override readonly name = 'CopyDiffers';
	readonly differences: readonly string[];
	constructor(name: string, differences: readonly string[]) {
		super(`${name} differs from what was copied, so the move is not finished`);
		this.differences = differences;
	}
}

export async function planMove({ from, to }: Databases, clock: Clock): Promise<MovePlan> {
	const now = clock.now();
	const source = await from.look(now);
	if (source === null) throw new DatabaseMissing(from.name);
	const found = await to.look(now);
	if (found?.identity === source.identity)
		throw new StoreError('not_a_database', `${from.name} is both source and target: use another target`);
	const begun = begunBy({ from, to }, source, found);
	assertSchema(from, source);
	if (begun === null) {
		assertUnused(from, source);
		if (found !== null) {
			assertSchema(to, found);
			assertUnused(to, found);
		}
	}
	const tables = await Promise.all(
		ordered(from.tables).map(async (table) => ({ table, rows: await countRows(from, table) })),
	);
	const rows = tables.reduce((sum, { rows }) => sum + rows, 0);
	return { begun, found, tables, rows, keys: source.keys };
}

function begunBy({ from, to }: Databases, source: Found, found: Found | null): MovePlan['begun'] {
	const [ofSource, ofCopy] = [source.mark, found?.mark ?? null];
	if (ofSource?.role === 'copy') throw new DatabaseMarked(from.name, ofSource);
	if (ofSource !== null && ofCopy?.role === 'copy' && ofCopy.id === ofSource.id)
		return { id: ofSource.id, isOver: ofSource.isOver };
	if (ofSource?.isOver) throw new DatabaseMarked(from.name, ofSource);
	if (ofCopy?.role === 'source') throw new DatabaseMarked(to.name, ofCopy, 'place');
	const filled = found?.filled ?? [];
	if (filled.length === 0) return null;
	if (ofCopy !== null)
		throw new StoreError(
			'not_a_database',
			`${to.name} has an unfinished copy of ${ofCopy.other}: drop it, or use another target`,
		);
	throw new StoreError(
		'not_a_database',
		`${to.name} is not empty (${filled.join(', ')}): use a new file, an empty database, or a separate schema with ?schema=NAME`,
	);
}

function assertSchema({ name, schema }: Movable, found: Found): void {
	if (found.schema !== schema) throw newerSchema(name, found.schema, schema);
}

function assertUnused({ name }: Movable, { usedBy }: Found): void {
	if (usedBy.length === 0) return;
	const names = usedBy.map(({ role, host, pid }) => `${role} (pid ${pid} on ${host})`).join(', ');
	throw new StoreError('busy_elsewhere', `${name} is in use, and nothing was changed: ${names}`);
}

export async function move(options: MoveOptions): Promise<Moved> {
	const { from, to, plan, clock, signal, onShut } = options;
	const id = plan.begun?.id ?? options.newId();
	const at = clock.now();
	const ofCopy: Mark = { id, role: 'copy', isOver: false, other: from.name, at };
	const ofSource: Mark = { id, role: 'source', isOver: false, other: to.name, at };
	if (plan.begun === null) await to.begin(ofCopy);
	else await to.goOn(ofCopy);
	try {
		await from.shut({ ...ofSource, isOver: plan.begun?.isOver ?? false }, at);
	} catch (error) {
		if (plan.begun === null) await to.clear(ofCopy).catch(() => undefined);
		throw error;
	}
	onShut();
	signal.throwIfAborted();
	const moved = await copyAll(options);
	// Mark the source before opening the copy, so that nobody can use both at once.
	await from.shut({ ...ofSource, isOver: true, at: clock.now() }, clock.now());
	await to.open(ofCopy);
	return moved;
}

async function copyAll(options: MoveOptions): Promise<Moved> {
	const { from, to, plan, signal, onProgress } = options;
	const replaced = { texts: 0 };
	const fold = foldOf(to, replaced);
	const atOnce = new Map<string, number>();
	let [copied, kept] = [0, 0];
	for (const { table } of plan.tables) {
		const limit = await rowsAtOnce(from, table);
		atOnce.set(table.name, limit);
		const before = await countRows(to, table);
		kept += before;
		copied += before;
		onProgress('copying', copied);
		await copyTable({ ...{ from, to, table, limit, fold, signal } }, (rows) => {
			copied += rows;
			onProgress('copying', copied);
		});
	}
	const ids = await from.ids();
	await to.raiseIds(ids);
	await to.settle();
	replaced.texts = 0;
	const tables: Moved['tables'] = [];
	const differences: string[] = [];
	let compared = 0;
	for (const { table } of plan.tables) {
		const limit = atOnce.get(table.name) ?? 1;
		const digest = (side: Movable) =>
			digestTable({ side, table, limit, fold, signal }, (rows) => {
				compared += rows / 2;
				onProgress('comparing', Math.floor(compared));
			});
		const [source, copy] = await Promise.all([digest(from), digest(to)]);
		if (source.rows > 0) tables.push({ table: table.name, ...source });
		if (source.sha256 !== copy.sha256)
			differences.push(`${table.name}: ${source.rows} rows there and ${copy.rows} here, with other contents`);
	}
	const raised = await to.ids();
	for (const [table, id] of ids)
		if ((raised.get(table) ?? id) < id) differences.push(`${table}: ids below ${id} would be given again`);
	if (differences.length > 0) throw new CopyDiffers(to.name, differences);
	return { tables, kept, replaced: replaced.texts };
}

function foldOf(to: Movable, replaced: { texts: number }): Fold {
	if (to.keepsNul) return (row) => row;
	return (row) => {
		for (const [at, value] of row.entries()) {
			if (typeof value !== 'string' || !value.includes('\0')) continue;
			row[at] = value.replaceAll('\0', '\ufffd');
			replaced.texts += 1;
		}
		return row;
	};
}

export async function undoMove({ from, to }: Databases, clock: Clock): Promise<{ cleared: unknown }> {
	const now = clock.now();
	const source = await from.look(now);
	if (source === null) throw new DatabaseMissing(from.name);
	const { mark } = source;
	if (mark === null || mark.role === 'copy')
		throw new StoreError('not_a_database', `${from.name} is not being moved, and nothing was changed`);
	if (mark.isOver) throw new DatabaseMarked(from.name, mark);
	await from.shut(mark, now);
	await from.open(mark);
	return {
		cleared: await to.clear({ ...mark, role: 'copy' }).then(
			() => null,
			(error: unknown) => error,
		),
	};
}

function ordered(all: readonly Table[]): Table[] {
	const left = new Map(all.map((table) => [table.name, table]));
	const done: Table[] = [];
	while (left.size > 0) {
		const next = [...left.values()].filter(({ name, parents }) =>
			parents.every((parent) => parent === name || !left.has(parent)),
		);
		if (next.length === 0) throw new Error(`tables refer to each other: ${[...left.keys()].join(', ')}`);
		for (const table of next) left.delete(table.name);
		done.push(...next.sort((one, other) => (one.name < other.name ? -1 : 1)));
	}
	return done;
}

type Fold = (row: Row) => Row;

const mostRows = 4_000;
const mostBytes = 8 * 1_048_576;

async function numberOf({ ask }: Movable, text: string): Promise<number> {
	return Number((await ask(text))[0]?.[0]);
}

function countRows(side: Movable, { name }: Table): Promise<number> {
	return numberOf(side, `SELECT count(*) FROM "${name}"`);
}

async function rowsAtOnce(side: Movable, { name, columns }: Table): Promise<number> {
	const sizes = columns
		.filter(({ type }) => type !== 'integer')
		.map((column) => `coalesce(octet_length("${column.name}"), 0)`);
	const widest = `SELECT ${8 * columns.length} + coalesce(max(${['0', ...sizes].join(' + ')}), 0) FROM "${name}"`;
	return Math.max(1, Math.min(mostRows, Math.floor(mostBytes / (await numberOf(side, widest)))));
}

interface Walk {
	table: Table;
	limit: number;
	fold: Fold;
	signal: AbortSignal;
}

/** Writes one slice while it reads the next. */
async function copyTable(
	{ from, to, table, limit, fold, signal }: Walk & { from: Movable; to: Movable },
	onCopied: (rows: number) => void,
): Promise<void> {
	let writing: Promise<void> = Promise.resolve();
	try {
		const key = namesOf(table, table.key);
		const last = `SELECT ${key} FROM "${table.name}" ORDER BY ${key.replaceAll(/"(?=,|$)/g, '" DESC')} LIMIT 1`;
		const [after = null] = await to.ask(last);
		for await (const rows of slices(from, { table, limit, signal, after })) {
			await writing;
			const folded = rows.map(fold);
			writing = to.write(table, folded).then(() => onCopied(rows.length));
			writing.catch(() => undefined);
		}
	} finally {
		await writing;
	}
}

async function digestTable(
	{ side, table, limit, fold, signal }: Walk & { side: Movable },
	onRead: (rows: number) => void,
): Promise<{ rows: number; sha256: string }> {
	const hash = createHash('sha256');
	let rows = 0;
	for await (const slice of slices(side, { table, limit, signal, after: null })) {
		hash.update(`${JSON.stringify(slice.map((row) => plain(table, fold(row)))).slice(1, -1)},`);
		rows += slice.length;
		onRead(slice.length);
	}
	return { rows, sha256: hash.digest('hex') };
}

function plain({ name, columns }: Table, row: Row): (number | string | null)[] {
	return row.map((value, at) => {
		if (value instanceof Uint8Array) return createHash('sha256').update(value).digest('hex');
		if (typeof value === 'number' && !Number.isSafeInteger(value))
			throw new Error(`${name}.${columns[at]?.name} has ${value}, which is not an integer below 2^53`);
		return value;
	});
}

async function* slices(
	side: Movable,
	{ table, limit, signal, after }: Omit<Walk, 'fold'> & { after: readonly Value[] | null },
): AsyncGenerator<Row[]> {
	const key = namesOf(table, table.key);
	const from = `SELECT ${namesOf(table)} FROM "${table.name}"`;
	const first = `${from} ORDER BY ${key} LIMIT ?`;
	const next = `${from} WHERE (${key}) > (${table.key.map(() => '?').join(', ')}) ORDER BY ${key} LIMIT ?`;
	let last = after;
	for (;;) {
		signal.throwIfAborted();
		const rows = last === null ? await side.ask(first, [limit]) : await side.ask(next, [...last, limit]);
		const end = rows.at(-1);
		if (end === undefined) return;
		last = table.key.map((at) => end[at] ?? null);
		yield rows;
		// SQLite answers within one turn of the event loop. Start a new turn, so that a signal can arrive.
		await new Promise((resolve) => setImmediate(resolve));
		if (rows.length < limit) return;
	}
}
