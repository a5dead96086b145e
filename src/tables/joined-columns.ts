/** `--map "First+Last=name"`: columns whose cells become one value, with a blank between them. Pure. */

const joiner = '+';

/**
 * The columns that `source` names, in its order; null where a part is no column. `find` gives the column of a name.
 * A column may be called `A+B` itself: the longest name that is there counts.
 */
export function partsOf(
	source: string,
	find: (name: string) => string | undefined,
): readonly string[] | null {
	const words = source.split(joiner);
	// A name of many signs is no list of columns.
	if (words.length > mostParts) return null;
	const parts: string[] = [];
	for (let from = 0; from < words.length; ) {
		let end = words.length;
		let column: string | undefined;
		for (; end > from && column === undefined; end -= 1) {
			const name = words.slice(from, end).join(joiner).trim();
			column = name === '' ? undefined : find(name);
		}
		if (column === undefined) return null;
		parts.push(column);
		from = end + 1;
	}
	return parts.length > 1 ? parts : null;
}

const mostParts = 20;

/** Only texts can be joined: the name, and fields. */
export function canBeJoined(target: string): boolean {
	return target === 'name' || target.startsWith('meta.');
}

/** Where a value stands in a row: in one cell, or in several that are joined. */
export interface Place {
	/** Position in the table's rows, from 0. */
	index: number;
	/** Positions of columns whose cells follow, each after a blank. */
	joined?: readonly number[];
}

/** Blank cells are left out where several are joined; empty where there is nothing. */
export function cellOf(row: readonly string[], { index, joined }: Place): string {
	if (joined === undefined) return row[index] ?? '';
	const cells = [index, ...joined].map((at) => row[at]?.trim() ?? '');
	return cells.filter((cell) => cell !== '').join(' ');
}

/** The columns of a value, by their names in the file: `First + Last`. */
export function mappedName(header: readonly string[], { index, joined = [] }: Place): string {
	return [index, ...joined].map((at) => (header[at] ?? '').trim()).join(` ${joiner} `);
}
