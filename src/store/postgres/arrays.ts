/** Columns of rows as arrays of PostgreSQL (manual, 8.15.2): one statement inserts thousands of rows. */
import type { SqlValue } from '../core/sql.js';

/** The values of all rows at that place. */
export function arrayText(rows: readonly (readonly SqlValue[])[], at: number): string {
	let text = '{';
	for (const [n, row] of rows.entries()) text += n === 0 ? element(row[at]) : `,${element(row[at])}`;
	return `${text}}`;
}

function element(value: SqlValue | undefined): string {
	if (value === null || value === undefined) return 'NULL';
	if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`;
	if (typeof value !== 'object') return String(value);
	return `"\\\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}"`;
}
