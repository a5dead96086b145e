/** Columns of rows as arrays of PostgreSQL (manual, 8.15.2): one statement inserts thousands of rows. */
import type { Row, Value } from '../moving.js';

/** The values of all rows at that place. */
export function arrayText(rows: readonly Row[], at: number): string {
	let text = '{';
	for (const [n, row] of rows.entries()) text += n === 0 ? element(row[at]) : `,${element(row[at])}`;
	return `${text}}`;
}

function element(value: Value | undefined): string {
	if (value === null || value === undefined) return 'NULL';
	if (typeof value === 'number') return String(value);
	if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`;
	return `"\\\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}"`;
}
