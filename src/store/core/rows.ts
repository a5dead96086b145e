import { formatDateTime, type Micros } from '../../api/datetime.js';
import { isRecord } from '../../api/json.js';
import type { Envelope } from '../../api/messages.js';
import type {
	DeliveryAttempt,
	Field,
	List,
	Message,
	MessageState,
	Sender,
	Template,
	Webhook,
	WebhookType,
} from '../../api/records.js';
import { filledSubject } from '../../api/variables.js';
import { damaged, parseStored } from '../errors.js';
import type { PageOf, Slice, Written } from '../store.js';
import type { Columns, Sql, SqlValue } from './sql.js';

export interface ListRow {
	id: number;
	name: string;
	email_reason: string;
	active_count: number;
	inactive_count: number;
	created_at: Micros;
}

export function toList(row: ListRow): List {
	return {
		id: row.id,
		name: row.name,
		email_reason: row.email_reason,
		active_subscribers_count: row.active_count,
		inactive_subscribers_count: row.inactive_count,
		overall_subscribers_count: row.active_count + row.inactive_count,
		date_created: formatDateTime(row.created_at),
	};
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

export function storedEmail({ email, email_key }: { email: string; email_key: string }): string {
	return email === email_key ? '' : email;
}

export const subscriberColumns = `id, list_id, ${emailColumn}, email_key, name, is_active, disable_reason, is_email_verified, meta, source, opt_in_signed, created_at, import_seq`;

export interface NewSubscriber {
	list_id: number;
	email: string;
	email_key: string;
	email_folded: string | null;
	name: string;
	is_active: boolean;
	disable_reason: string | null;
	meta: string;
	source: 'API' | 'IMPORT';
	created_at: Micros;
	import_seq: number | null;
}

export const newSubscriberColumns = {
	...{ list_id: 'BIGINT', email: 'TEXT', email_key: 'TEXT', email_folded: 'TEXT', name: 'TEXT' },
	...{ is_active: 'BIGINT', disable_reason: 'TEXT', meta: 'TEXT', source: 'TEXT' },
	...{ created_at: 'BIGINT', import_seq: 'BIGINT' },
} as const satisfies Columns;

export function newSubscriberValues(row: NewSubscriber): SqlValue[] {
	return [
		row.list_id,
		storedEmail(row),
		row.email_key,
		row.email_folded,
		row.name,
		flag(row.is_active),
		row.disable_reason,
		row.meta,
		row.source,
		row.created_at,
		row.import_seq,
	];
}

export interface FieldRow {
	id: number;
	variable: string;
	name: string;
	created_at: Micros;
}

export function toField({ created_at, ...row }: FieldRow): Field {
	return { ...row, date_created: formatDateTime(created_at) };
}

export interface WebhookRow {
	id: number;
	url: string;
	type: WebhookType;
	is_auth_enabled: number;
	login: string;
	password: string;
	created_at: Micros;
}

/** Returns the password as it was set, as in the service document; a command that prints it masks it. */
export function toWebhook({ created_at, is_auth_enabled, ...row }: WebhookRow): Webhook {
	const { id, url, type, login, password } = row;
	const date_created = formatDateTime(created_at);
	return { id, url, type, is_auth_enabled: is_auth_enabled === 1, login, password, date_created };
}

export interface TemplateRow {
	id: string;
	name: string;
	text_body: string;
	html_body: string;
	created_at: Micros;
	updated_at: Micros;
}

export function toTemplate({ created_at, updated_at, ...row }: TemplateRow): Template {
	return { ...row, date_created: formatDateTime(created_at), date_updated: formatDateTime(updated_at) };
}

export interface SenderRow {
	id: number;
	full_name: string;
	from_email: string;
	reply_to_email: string;
	created_at: Micros;
}

export function toSender({ created_at, ...row }: SenderRow): Sender {
	return { ...row, is_verified: true, date_created: formatDateTime(created_at) };
}

/** Of a message `m` with its submission `s` and content `c`; null where its subject has none. */
export const variablesOfSubject = `CASE WHEN c.subject LIKE '%#%' THEN m.variables END AS own_variables,
	CASE WHEN c.subject LIKE '%#%' THEN s.context END AS shared_variables`;

/** The subject of a message as its recipient reads it; `own` and `shared` variables as they are stored. */
export function subjectOf(
	subject: string,
	{ to, own, shared }: { to: string; own: string | null; shared: string | null },
): string {
	if (own === null || shared === null || !subject.includes('#')) return subject;
	return filledSubject(subject, { email: to, ...parseTexts(shared), ...parseTexts(own) });
}

export interface MessageRow {
	uuid: string;
	to_email: string;
	envelope: string;
	subject: string;
	own_variables: string | null;
	shared_variables: string | null;
	type: 'TRANSACTIONAL' | 'BULK';
	tag: string | null;
	campaign: string | null;
	campaign_key: string | null;
	list_id: number | null;
	state: MessageState;
	attempts: number;
	due_at: Micros;
	created_at: Micros;
	sent_at: Micros | null;
	last_reply: string | null;
}

const waiting: ReadonlySet<MessageState> = new Set(['staged', 'queued', 'deferred']);

/**
 * `row.state` and `row.created_at` are the visible ones, see `seenState`; `due_at` is null for a message that does not
 * wait.
 */
export function toMessage(row: MessageRow): Message {
	return {
		id: row.uuid,
		to: row.to_email,
		from: String(parseRecord(row.envelope)['from']),
		subject: subjectOf(row.subject, {
			to: row.to_email,
			own: row.own_variables,
			shared: row.shared_variables,
		}),
		type: row.type,
		tag: row.tag,
		campaign_unique_id: row.campaign,
		list_id: row.list_id,
		state: row.state,
		attempts: row.attempts,
		due_at: waiting.has(row.state) ? formatDateTime(row.due_at) : null,
		date_created: formatDateTime(row.created_at),
		date_sent: row.sent_at === null ? null : formatDateTime(row.sent_at),
		last_reply: row.last_reply,
		campaign: row.campaign_key,
	};
}

export interface AttemptRow extends Omit<DeliveryAttempt, 'at'> {
	at: Micros;
}

export function toAttempt({ number, at, outcome, phase, code, enhanced, text }: AttemptRow): DeliveryAttempt {
	return { number, at: formatDateTime(at), outcome, phase, code, enhanced, text };
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

/** A stored JSON array; any other JSON gives an empty one. */
export function parseNames(text: string): string[] {
	const value = parseStored(text);
	return Array.isArray(value) ? value.map(String) : [];
}

export function parseUsed(text: string): string[] | null {
	return text === 'null' ? null : parseNames(text);
}

/** The time at which a message wakes that a limit of sending has set aside: never, until there is room. */
export const setAside: Micros = Number.MAX_SAFE_INTEGER;

/** SQLite has no booleans, and the driver refuses to bind one. */
export function flag(value: boolean): 0 | 1 {
	return value ? 1 : 0;
}

export interface Paged {
	columns: string;
	from: string;
	joins?: string;
	where?: string;
	values?: readonly SqlValue[];
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

/** The answer to a change of a record, as it is read afterwards; null: there is none. */
export function writtenOf<Record>(record: Record | null): Written<Record> {
	return record === null ? { kind: 'not_found' } : { kind: 'written', record };
}

export function span({ page, page_size }: PageOf): [limit: number, offset: number] {
	return [page_size, (page - 1) * page_size];
}

/** Missing lists and headers are empty. Throws when the text is no JSON object. */
export function readEnvelope(text: string): Envelope {
	const stored = parseRecord(text);
	return {
		from: String(stored['from']),
		reply_to: texts(stored['reply_to']),
		cc: texts(stored['cc']),
		bcc: texts(stored['bcc']),
		headers: parseTexts(JSON.stringify(stored['headers'] ?? {})),
	};
}

function texts(value: unknown): string[] {
	return Array.isArray(value) ? value.map(String) : [];
}
