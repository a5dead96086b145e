/** Erasure of a person. Messages stay as figures, without what tells of the person. A keyed hash of the address stays. */
import { randomUUID } from 'node:crypto';
import { type EmailKey, parseMailbox } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import { erasedAddress, erasedHash } from '../../engine/rules/subscription.js';
import type { StoredKey } from '../keys.js';
import type { Command, Operations } from '../operations.js';
import { dropContent } from './attachments.js';
import { keepAttempt, type SentMessage } from './attempts.js';
import { findKeys, insertKey } from './keys.js';
import { counterMove, moveCounters } from './list-counters.js';
import { emailColumn, readEnvelope } from './rows.js';
import { column, exists, insertInto, type Sql } from './sql.js';

export function createErasures(sql: Sql) {
	return {
		erasePerson: (command) => sql.overwriting(() => erase(sql, command)),
		liftErasure: async ({ email_key }) => {
			let lifted = 0;
			for (const { secret } of await erasureKeys(sql)) {
				const hash = erasedHash(secret, email_key);
				lifted += (await sql.run('DELETE FROM erased WHERE email_hash = ?', [hash])).changes;
			}
			return lifted > 0;
		},
	} satisfies Partial<Operations>;
}

export async function erase(
	sql: Sql,
	{ email_key, fresh, now }: Command<'erasePerson'>,
): ReturnType<Operations['erasePerson']> {
	const addresses = await writtenForms(sql, email_key);
	const { messages, canceled } = await eraseMessages(sql, email_key);
	await eraseCopies(sql, email_key, addresses);
	for (const text of addresses) for (const table of textTables) await replaceIn(sql, table, text);
	sql.write('DELETE FROM campaign_left_out WHERE to_key = ?', [email_key]);
	sql.write('DELETE FROM old_messages WHERE to_key = ?', [email_key]);
	const subscribers = await deleteSubscribers(sql, email_key);
	const suppressions = (await sql.run('DELETE FROM suppressions WHERE email_key = ?', [email_key])).changes;
	if ((await erasureKeys(sql)).length === 0) insertKey(sql, { purpose: 'erasure', ...fresh, now });
	const [key = fresh] = await erasureKeys(sql);
	const email_hash = erasedHash(key.secret, email_key);
	insertInto(sql, 'erased', { email_hash, key_id: key.id, erased_at: now }, 'ON CONFLICT DO NOTHING');
	return { subscribers, messages, canceled, suppressions };
}

/** The address as it is compared and as it was typed: texts of answers and replies quote either form. */
export async function writtenForms(sql: Sql, email_key: EmailKey): Promise<string[]> {
	const typed = await column<string>(
		sql,
		`SELECT ${emailColumn} FROM subscribers WHERE email_key = ?
		UNION
		SELECT to_email FROM messages WHERE to_key = ?`,
		[email_key, email_key],
	);
	return [...new Set([email_key, ...typed])];
}

async function deleteSubscribers(sql: Sql, email_key: EmailKey): Promise<number> {
	const rows = await sql.all<{ list_id: number; is_active: number; created_at: Micros }>(
		'DELETE FROM subscribers WHERE email_key = ? RETURNING list_id, is_active, created_at',
		[email_key],
	);
	for (const { list_id, is_active, created_at } of rows)
		moveCounters(sql, list_id, counterMove(is_active === 1, null), created_at);
	return rows.length;
}

/** A leased message is canceled too. Its outcome, whose reply may quote the address, is not recorded. */
async function eraseMessages(sql: Sql, address: EmailKey): Promise<{ messages: number; canceled: number }> {
	const own = await sql.all<SentMessage & { submission_seq: number; wake_at: number | null }>(
		`SELECT m.id, m.attempts, m.sent_at, m.last_reply, g.courier, m.submission_seq, m.wake_at
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE m.to_key = ?`,
		[address],
	);
	for (const message of own) {
		keepAttempt(sql, message);
		eraseMessage(sql, message.id);
	}
	for (const seq of new Set(own.map(({ submission_seq }) => submission_seq))) await eraseSubmission(sql, seq);
	return { messages: own.length, canceled: own.filter(({ wake_at }) => wake_at !== null).length };
}

function eraseMessage(sql: Sql, id: number): void {
	sql.write(
		// The id of a campaign's message is a hash of the address that anyone can compute, so a new id replaces it.
		`UPDATE messages
		SET uuid = CASE WHEN lane > 0 THEN ? ELSE uuid END,
			to_email = ?, to_key = ?, subscriber_id = NULL, variables = '{}', last_reply = NULL,
			state = CASE WHEN wake_at IS NULL THEN state ELSE 'canceled' END,
			wake_at = NULL, lease_owner = NULL, fence = fence + 1
		WHERE id = ?`,
		[randomUUID(), erasedAddress, erasedAddress, id],
	);
	sql.write("UPDATE attempts SET text = '' WHERE message_id = ?", [id]);
	const places = 'ip = NULL, user_agent = NULL, url = NULL, diagnostic = NULL';
	sql.write(`UPDATE events SET ${places} WHERE message_id = ?`, [id]);
	// Webhook deliveries name the address, and their answers may too: they are deleted, sent or not.
	sql.write(
		`DELETE FROM webhook_attempts
		WHERE delivery_id IN (SELECT id FROM webhook_deliveries WHERE message_id = ?)`,
		[id],
	);
	sql.write('DELETE FROM webhook_deliveries WHERE message_id = ?', [id]);
}

/** A submission with other recipients stays, and that of a campaign, which may still take rows, unless each is a request. */
async function eraseSubmission(sql: Sql, seq: number): Promise<void> {
	const others = 'SELECT 1 FROM messages WHERE submission_seq = ? AND to_key <> ?';
	if (await exists(sql, others, [seq, erasedAddress])) return;
	const row = await sql.get<{ envelope: string; content_sha256: string }>(
		`SELECT s.envelope, s.content_sha256
		FROM submissions s
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE s.seq = ? AND (g.seq IS NULL OR g.requests = 1)`,
		[seq],
	);
	if (row === undefined) return;
	sql.write(
		`INSERT INTO contents (sha256, subject, text, html, disable_inline, used_at)
		VALUES ('erased', '(erased)', '(erased)', NULL, 0, 0)
		ON CONFLICT DO NOTHING`,
	);
	sql.write("UPDATE submissions SET context = '{}', envelope = ?, content_sha256 = 'erased' WHERE seq = ?", [
		...[onlyFrom(row.envelope), seq],
	]);
	await dropContent(sql, row.content_sha256, null);
}

export function onlyFrom(envelope: string): string {
	return JSON.stringify({ from: readEnvelope(envelope).from, reply_to: [], cc: [], bcc: [], headers: {} });
}

/** Submissions that name an address beside the sender's and the recipients': submissions_with_copies, in its words. */
export function hasCopies({ dialect: { position } }: Sql, envelope: string): string {
	return `${position}(${envelope}, '"reply_to":[],"cc":[],"bcc":[]') = 0`;
}

/** Walks the submissions with copies, as no index leads to an address in them: erasures are rare. */
async function eraseCopies(sql: Sql, address: EmailKey, addresses: readonly string[]): Promise<void> {
	const kept = (texts: readonly string[]) => texts.filter((one) => parseMailbox(one)?.key !== address);
	for (const text of addresses) {
		const found = await sql.all<{ seq: number; envelope: string }>(
			`SELECT seq, envelope
			FROM submissions
			WHERE ${hasCopies(sql, 'envelope')} AND ${sql.dialect.position}(lower(envelope), lower(?)) > 0`,
			[text],
		);
		for (const { seq, envelope } of found) {
			const stored = readEnvelope(envelope);
			const { reply_to, cc, bcc } = stored;
			const rest = { ...stored, reply_to: kept(reply_to), cc: kept(cc), bcc: kept(bcc) };
			sql.write('UPDATE submissions SET envelope = ? WHERE seq = ?', [JSON.stringify(rest), seq]);
		}
	}
}

/** Columns with texts or JSON of ours in which an address may stand, and the key of their rows: of a day, or of few rows. */
const textTables = [
	{ table: 'idempotency_keys', name: 'answer', key: ['scope', 'key'], where: 'TRUE' },
	{ table: 'import_acks', name: 'ack', key: ['import_seq', 'first'], where: 'TRUE' },
	{ table: 'campaign_acks', name: 'ack', key: ['campaign_seq', 'first'], where: 'TRUE' },
	{ table: 'campaign_results', name: 'to_email', key: ['campaign_seq', 'n'], where: 'to_email IS NOT NULL' },
	{ table: 'campaign_results', name: 'error', key: ['campaign_seq', 'n'], where: 'to_email IS NOT NULL' },
] as const;

async function replaceIn(
	sql: Sql,
	{ table, name, key: [major, minor], where }: (typeof textTables)[number],
	address: string,
): Promise<void> {
	const inner = table === 'campaign_results' ? address : JSON.stringify(address).slice(1, -1);
	const found = await sql.tuples<[string, string | number, string | number]>(
		`SELECT ${name}, ${major}, ${minor}
		FROM ${table}
		WHERE ${where} AND ${sql.dialect.position}(lower(${name}), lower(?)) > 0`,
		[inner],
	);
	const changed = `UPDATE ${table} SET ${name} = ? WHERE ${major} = ? AND ${minor} = ?`;
	for (const [text, ...key] of found) sql.write(changed, [withoutAddress(text, inner), ...key]);
}

/** `ann@example.com` is not part of `joann@example.com` or `ann@example.com.au`, but may end a sentence. */
function withoutAddress(text: string, address: string): string {
	const escaped = address.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
	const whole = new RegExp(`(?<![-\\w.!#$%&'*+/=?^\`{|}~])${escaped}(?![-\\w]|\\.\\w)`, 'gi');
	return text.replace(whole, erasedAddress);
}

/** For many addresses: reads the keys once. `null` where no address was erased, as in nearly every database. */
export async function openErased(sql: Sql): Promise<((address: EmailKey) => Promise<boolean>) | null> {
	if (!(await exists(sql, 'SELECT 1 FROM erased'))) return null;
	const keys = await erasureKeys(sql);
	return async (address) => {
		for (const { secret } of keys)
			if (await exists(sql, 'SELECT 1 FROM erased WHERE email_hash = ?', [erasedHash(secret, address)]))
				return true;
		return false;
	};
}

export async function isErased(sql: Sql, address: EmailKey): Promise<boolean> {
	return (await openErased(sql))?.(address) ?? false;
}

export function erasureKeys(sql: Sql): Promise<StoredKey[]> {
	return findKeys(sql, 'erasure');
}
