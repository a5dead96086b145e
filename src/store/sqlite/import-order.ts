/**
 * The order in which rows of one transaction are put: about that of their addresses, in which the index has them. Then
 * neighbours in a page of it are put together and the page is read and written once; in the order of a file each row
 * touches another one, and a large index has more of them than the cache holds.
 */

/** Characters of a key that are looked at, and how many different ones: printable ASCII, which keys mostly are. */
const ranked = 5;
const firstCode = 0x20;
const codes = 96;

/** Rows of one call at most: with a rank they make up a number that a double holds. */
export const maxOrderedRows = 2 ** 20;

/**
 * Orders keys about as they are ordered; the same for the same key, whether `codeAt` gives its UTF-16 units or its
 * octets: behind the first that is no ASCII nothing is looked at. 0 behind its end.
 */
export function rankOf(codeAt: (place: number) => number): number {
	let rank = 0;
	let isPlain = true;
	for (let place = 0; place < ranked; place += 1) {
		const code: number = isPlain ? Math.max(codeAt(place) - firstCode, 0) : codes;
		isPlain = code < codes - 1;
		rank = rank * codes + Math.min(code, codes - 1);
	}
	return rank;
}

/**
 * The numbers 0 … `count` − 1 by rank; those of one rank, so all rows of one key, stay in their order. Throws
 * `RangeError` for more rows than `maxOrderedRows`.
 */
export function* orderByRank(
	count: number,
	rankAt: (index: number) => number,
): Generator<number, void, undefined> {
	if (count > maxOrderedRows) throw new RangeError(`${count} rows at once`);
	const order = new Float64Array(count);
	for (let index = 0; index < count; index += 1) order[index] = rankAt(index) * maxOrderedRows + index;
	for (const ranking of order.sort()) yield ranking % maxOrderedRows;
}
