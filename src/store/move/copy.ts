/** A table copied, or its rows digested, slice by slice in the order of its key: memory does not grow with it. */
import { createHash } from 'node:crypto';
import type { Movable, Row, Table, Value } from '../moving.js';

/** What the target keeps of a row; may change the row. */
export type Fold = (row: Row) => Row;

const mostRows = 4_000;
const mostBytes = 8 * 1_048_576;

/** The rows of a slice that fits into memory, whichever rows they are. */
export function rowsAtOnce(widest: number): number {
	return Math.max(1, Math.min(mostRows, Math.floor(mostBytes / Math.max(1, widest))));
}

interface Walk {
	table: Table;
	limit: number;
	fold: Fold;
	signal: AbortSignal;
}

/** Goes on after the last row that is there. One slice is written while the next one is read. */
export async function copyTable(
	{ from, to, table, limit, fold, signal }: Walk & { from: Movable; to: Movable },
	onCopied: (rows: number) => void,
): Promise<void> {
	let writing: Promise<void> = Promise.resolve();
	try {
		for await (const rows of slices(from, { table, limit, signal, after: await to.last(table) })) {
			await writing;
			const folded = rows.map(fold);
			writing = to.write(table, folded).then(() => onCopied(rows.length));
			// Told by the `await` above, or below.
			writing.catch(() => undefined);
		}
	} finally {
		await writing;
	}
}

/** The number of rows, and SHA-256 over them as JSON, an array each: the same on both databases. */
export async function digestTable(
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

/** Octets by their own digest. Throws for a number that JavaScript cannot hold. */
function plain({ name, columns }: Table, row: Row): (number | string | null)[] {
	return row.map((value, at) => {
		if (value instanceof Uint8Array) return createHash('sha256').update(value).digest('hex');
		if (typeof value === 'number' && !Number.isSafeInteger(value))
			throw new Error(`${name}.${columns[at]?.name} has ${value}, which is no integer below 2^53`);
		return value;
	});
}

async function* slices(
	side: Movable,
	{ table, limit, signal, after }: Omit<Walk, 'fold'> & { after: readonly Value[] | null },
): AsyncGenerator<Row[]> {
	let last = after;
	for (;;) {
		signal.throwIfAborted();
		const rows = await side.read(table, last, limit);
		const end = rows.at(-1);
		if (end === undefined) return;
		last = table.key.map((at) => end[at] ?? null);
		yield rows;
		// SQLite answers within the turn: lets a signal arrive.
		await new Promise((resolve) => setImmediate(resolve));
		if (rows.length < limit) return;
	}
}
