/**
 * Columns of rows as arrays of PostgreSQL: one statement inserts thousands of rows. In their binary form, in which
 * nothing is escaped and nothing parsed: dimensions, flags, element type, length and lower bound, then each element
 * behind its length (`array_recv` in src/backend/utils/adt/arrayfuncs.c).
 */
import type { Columns, SqlValue } from '../core/sql.js';

type ElementType = Columns[string] | 'BYTEA';

/** Object identifiers of the types of elements (src/include/catalog/pg_type.dat). */
const elementTypes: Readonly<Record<ElementType, number>> = { BIGINT: 20, TEXT: 25, BYTEA: 17 };

const headerBytes = 20;
const lengthBytes = 4;
/** The most octets of UTF-8 for a UTF-16 unit. */
const maxOctets = 3;
const isNull = -1;

/** The values of all rows at that place. Throws `RangeError` for a number that is none of up to 53 bits. */
export function arrayOf(type: ElementType, rows: readonly (readonly SqlValue[])[], at: number): Buffer {
	const bytes = Buffer.allocUnsafe(rows.reduce((sum, row) => sum + roomFor(row[at] ?? null), headerBytes));
	bytes.writeInt32BE(1, 0);
	bytes.writeInt32BE(1, 4);
	bytes.writeInt32BE(elementTypes[type], 8);
	bytes.writeInt32BE(rows.length, 12);
	bytes.writeInt32BE(1, 16);
	let end = headerBytes;
	for (const row of rows) {
		const begin = end + lengthBytes;
		const length = put(bytes, begin, row[at] ?? null, type);
		bytes.writeInt32BE(length, end);
		end = begin + Math.max(length, 0);
	}
	return bytes.subarray(0, end);
}

function roomFor(value: SqlValue): number {
	if (value === null) return lengthBytes;
	if (typeof value === 'string') return lengthBytes + value.length * maxOctets;
	return lengthBytes + (typeof value === 'object' ? value.byteLength : 32);
}

/** The length of the element. */
function put(bytes: Buffer, at: number, value: SqlValue, type: ElementType): number {
	if (value === null) return isNull;
	if (typeof value === 'object') {
		bytes.set(value, at);
		return value.byteLength;
	}
	if (type === 'TEXT') return bytes.write(String(value), at);
	if (typeof value !== 'number') return bytes.writeBigInt64BE(BigInt(value), at) - at;
	if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no whole number`);
	bytes.writeInt32BE(Math.floor(value / 2 ** 32), at);
	return bytes.writeUInt32BE(value >>> 0, at + 4) - at;
}
