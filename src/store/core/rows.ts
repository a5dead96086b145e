import { formatDateTime, type Micros } from '../../api/datetime.js';
import { isRecord } from '../../api/json.js';
import type { Envelope } from '../../api/messages.js';
import { filledSubject } from '../../api/variables.js';
import { damaged, parseStored } from '../errors.js';
import type { PageOf, Slice, Written } from '../store.js';
import type { Conditions, Sql } from './sql.js';

export type Dated<Record extends { date_created: string }> = Omit<Record, 'date_created'> & {
	date_created: Micros;
};

export function dated<Row extends { date_created: Micros }>(row: Row) {
	return { ...row, date_created: formatDateTime(row.date_created) };
}

export function timeOf(at: Micros): string;
export function timeOf(at: Micros | null): string | null;
export function timeOf(at: Micros | null): string | null {
	return at === null ? null : formatDateTime(at);
}

export interface SubscriberRow {
	id: number;
	list_id: number;
	email: string;
	email_key: string;
	name: string;
	is_active: number;
	disable_reason: string | null;
	is_email_verified: number;
	meta: string;
	source: string;
	opt_in_signed: Micros | null;
	created_at: Micros;
	import_seq: number | null;
}

/** The address as it was given: stored as '' where it equals its key, as most do. */
export const emailColumn = "coalesce(nullif(email, ''), email_key) AS email";

export const subscriberColumns = `id, list_id, ${emailColumn}, email_key, name, is_active, disable_reason, is_email_verified, meta, source, opt_in_signed, created_at, import_seq`;

/** Needs the message `m`, its submission `s` and content `c`; null where the subject has no variable. */
export const variablesOfSubject = `CASE WHEN c.subject LIKE '%#%' THEN m.variables END AS own_variables,
	CASE WHEN c.subject LIKE '%#%' THEN s.context END AS shared_variables`;

/** The subject as its recipient reads it; `own` and `shared` variables as they are stored. */
export function subjectOf(
	subject: string,
	{ to, own, shared }: { to: string; own: string | null; shared: string | null },
): string {
	if (own === null || shared === null || !subject.includes('#')) return subject;
	return filledSubject(subject, { email: to, ...parseTexts(shared), ...parseTexts(own) });
}

export function parseRecord(text: string): Record<string, unknown> {
	const value = parseStored(text);
	if (!isRecord(value)) throw damaged(new TypeError('a stored object is none'));
	return value;
}

export function parseTexts(text: string): Record<string, string> {
	const record = parseRecord(text);
	if (hasOnlyTexts(record)) return record;
	return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, String(value)]));
}

function hasOnlyTexts(record: Record<string, unknown>): record is Record<string, string> {
	return Object.values(record).every((value) => typeof value === 'string');
}

export function parseNames(text: string): string[] {
	return textsOf(parseStored(text));
}

function textsOf(value: unknown): string[] {
	return Array.isArray(value) ? value.map(String) : [];
}

export function parseUsed(text: string): string[] | null {
	return text === 'null' ? null : parseNames(text);
}

/** Missing lists and headers are empty. Throws unless the text is a JSON object. */
export function readEnvelope(text: string): Envelope {
	const stored = parseRecord(text);
	return {
		from: String(stored['from']),
		reply_to: textsOf(stored['reply_to']),
		cc: textsOf(stored['cc']),
		bcc: textsOf(stored['bcc']),
		headers: parseTexts(JSON.stringify(stored['headers'] ?? {})),
	};
}

/** The time at which a message wakes that a limit of sending has set aside: never, until there is room. */
export const setAside: Micros = Number.MAX_SAFE_INTEGER;

export function flag(value: boolean): 0 | 1 {
	return value ? 1 : 0;
}

export interface Paged extends Partial<Conditions> {
	columns: string;
	from: string;
	joins?: string;
	order: string;
}

export async function selectPage<Row, Record>(
	sql: Sql,
	{ columns, from, joins = '', where, values = [], order }: Paged,
	page: PageOf,
	toRecord: (row: Row) => Record,
): Promise<Slice<Record>> {
	const wanted = where === undefined ? '' : `WHERE ${where}`;
	const [count, rows] = await sql.together([
		() => sql.number(`SELECT count(*) FROM ${from} ${wanted}`, values),
		() =>
			sql.all<Row>(`SELECT ${columns} FROM ${from} ${joins} ${wanted} ORDER BY ${order} LIMIT ? OFFSET ?`, [
				...values,
				...span(page),
			]),
	]);
	return { count, results: rows.map(toRecord) };
}

/** The first `limit` of the rows that were read, one more than that; `next`: the key of the last, null at the end. */
export function sliceOf<Row>(rows: readonly Row[], limit: number, keyOf: (row: Row) => number) {
	const shown = rows.slice(0, limit);
	const last = shown.at(-1);
	return { shown, next: last === undefined || rows.length <= limit ? null : keyOf(last) };
}

export function writtenOf<Record>(record: Record | null): Written<Record> {
	return record === null ? { kind: 'not_found' } : { kind: 'written', record };
}

export function span({ page, page_size }: PageOf): [limit: number, offset: number] {
	return [page_size, (page - 1) * page_size];
}
