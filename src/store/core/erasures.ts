/**
 * Erasure of a person. Messages stay as figures, without address, variables, replies or places of opens. A submission
 * without another recipient also loses its context, copies and content. The address also goes from copies of other
 * people's messages and from kept answers. Of the address only a keyed hash stays.
 */
import { randomUUID } from 'node:crypto';
import { type EmailKey, parseMailbox } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import { erasedAddress, erasedHash } from '../../engine/rules/subscription.js';
import type { StoredKey } from '../keys.js';
import type { Command, Operations } from '../operations.js';
import { dropContent } from './attachments.js';
import { keepSentAttempt } from './attempts.js';
import { findKeys, insertKey } from './keys.js';
import { counterMove, moveCounters } from './list-counters.js';
import { eraseOld } from './retention/old-messages.js';
import { emailColumn, readEnvelope } from './rows.js';
import { exists, type Sql } from './sql.js';

type EraseCommand = Command<'erasePerson'>;

/** Each runs in one transaction of the caller. What an erasure deletes is overwritten with zeros. */
export function createErasures(sql: Sql) {
	return {
		erasePerson: (command) => sql.overwriting(() => erase(sql, command)),
		liftErasure: async ({ email_key }) => {
			let lifted = 0;
			for (const { secret } of await erasureKeys(sql))
				lifted += (await sql.run('DELETE FROM erased WHERE email_hash = ?', [erasedHash(secret, email_key)]))
					.changes;
			return lifted > 0;
		},
	} satisfies Partial<Operations>;
}

async function erase(
	sql: Sql,
	{ email_key, fresh, now }: EraseCommand,
): ReturnType<Operations['erasePerson']> {
	const addresses = await writtenForms(sql, email_key);
	const { messages, canceled } = await eraseMessages(sql, email_key);
	await eraseTraces(sql, email_key, addresses);
	eraseOld(sql, email_key);
	const subscribers = await deleteSubscribers(sql, email_key);
	const suppressions = (await sql.run('DELETE FROM suppressions WHERE email_key = ?', [email_key])).changes;
	await remember(sql, { email_key, fresh, now });
	return { subscribers, messages, canceled, suppressions };
}

/** The address as it is compared and as it was typed: texts of answers and replies quote either form. */
export async function writtenForms(sql: Sql, email_key: EmailKey): Promise<string[]> {
	const typed = await sql.all<{ email: string }>(
		`SELECT ${emailColumn} FROM subscribers WHERE email_key = ?
		UNION
		SELECT to_email FROM messages WHERE to_key = ?`,
		[email_key, email_key],
	);
	return [...new Set([email_key, ...typed.map(({ email }) => email)])];
}

async function deleteSubscribers(sql: Sql, email_key: EmailKey): Promise<number> {
	const rows = await sql.all<{ list_id: number; is_active: number; created_at: Micros }>(
		// subscribers_by_key (email_key, list_id)
		'DELETE FROM subscribers WHERE email_key = ? RETURNING list_id, is_active, created_at',
		[email_key],
	);
	for (const { list_id, is_active, created_at } of rows) {
		moveCounters(sql, list_id, counterMove(is_active === 1, null), created_at);
	}
	return rows.length;
}

async function remember(sql: Sql, { email_key, fresh, now }: EraseCommand): Promise<void> {
	if ((await erasureKeys(sql)).length === 0) {
		insertKey(sql, { purpose: 'erasure', ...fresh, now });
	}
	const [key] = await erasureKeys(sql);
	if (key === undefined) throw new Error('the key of erasures is missing');
	sql.write('INSERT INTO erased (email_hash, key_id, erased_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING', [
		erasedHash(key.secret, email_key),
		key.id,
		now,
	]);
}

export interface ErasedMessages {
	messages: number;
	canceled: number;
}

/**
 * A leased message is canceled too. Its fence moves on, so the outcome, whose reply may quote the address, is not
 * recorded. The message may still have arrived.
 */
export async function eraseMessages(sql: Sql, address: EmailKey): Promise<ErasedMessages> {
	const own = await sql.all<{ id: number; submission_seq: number; wake_at: number | null }>(
		// messages_of_address
		'SELECT id, submission_seq, wake_at FROM messages WHERE to_key = ?',
		[address],
	);
	for (const { id } of own) {
		await keepSentAttempt(sql, id);
		eraseMessage(sql, id);
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
	sql.write(
		'UPDATE events SET ip = NULL, user_agent = NULL, url = NULL, diagnostic = NULL WHERE message_id = ?',
		[id],
	);
	eraseDeliveries(sql, id);
}

/** Webhook deliveries name the address, and their answers may too: they are deleted, sent or not. */
function eraseDeliveries(sql: Sql, message_id: number): void {
	sql.write(
		`DELETE FROM webhook_attempts
		WHERE delivery_id IN (SELECT id FROM webhook_deliveries WHERE message_id = ?)`,
		[message_id],
	);
	// webhook_deliveries_of_message
	sql.write('DELETE FROM webhook_deliveries WHERE message_id = ?', [message_id]);
}

/**
 * A submission with other recipients stays: they share its context and content. So does that of a campaign, which may
 * still take rows, unless its rows are requests of their own.
 */
async function eraseSubmission(sql: Sql, seq: number): Promise<void> {
	const isShared = await exists(sql, 'SELECT 1 FROM messages WHERE submission_seq = ? AND to_key <> ?', [
		seq,
		erasedAddress,
	]);
	const row = await sql.get<{ envelope: string; content_sha256: string }>(
		`SELECT s.envelope, s.content_sha256
		FROM submissions s
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE s.seq = ? AND (g.seq IS NULL OR g.requests = 1)`,
		[seq],
	);
	if (row === undefined || isShared) return;
	sql.write(
		`INSERT INTO contents (sha256, subject, text, html, disable_inline, used_at)
		VALUES ('erased', '(erased)', '(erased)', NULL, 0, 0)
		ON CONFLICT DO NOTHING`,
	);
	const { from } = readEnvelope(row.envelope);
	sql.write("UPDATE submissions SET context = '{}', envelope = ?, content_sha256 = 'erased' WHERE seq = ?", [
		JSON.stringify({ from, reply_to: [], cc: [], bcc: [], headers: {} }),
		seq,
	]);
	await dropContent(sql, row.content_sha256, 'at once');
}

/**
 * `addresses`: every way the address was written. Walks the submissions with copies, the rows of campaigns without a
 * message and the answers of a day, as no index leads to an address in them: erasures are rare.
 */
export async function eraseTraces(sql: Sql, address: EmailKey, addresses: readonly string[]): Promise<void> {
	await eraseCopies(sql, address, addresses);
	for (const table of answerTables) await replaceIn(sql, table, addresses);
	for (const text of addresses) await eraseResults(sql, text);
	sql.write('DELETE FROM campaign_left_out WHERE to_key = ?', [address]);
}

/** Columns with JSON of ours in which an address may stand, and the key of their rows. */
const answerTables = [
	{ name: 'idempotency_keys', column: 'answer', key: ['scope', 'key'] },
	{ name: 'import_acks', column: 'ack', key: ['import_seq', 'first'] },
	{ name: 'campaign_acks', column: 'ack', key: ['campaign_seq', 'first'] },
] as const;

/** Submissions that name an address beside the sender's and the recipients': submissions_with_copies, in its words. */
export function hasCopies({ dialect: { position } }: Sql, envelope: string): string {
	return `${position}(${envelope}, '"reply_to":[],"cc":[],"bcc":[]') = 0`;
}

async function eraseCopies(sql: Sql, address: EmailKey, addresses: readonly string[]): Promise<void> {
	for (const text of addresses) {
		const found = await sql.all<{ seq: number; envelope: string }>(
			`SELECT seq, envelope
			FROM submissions
			WHERE ${hasCopies(sql, 'envelope')} AND ${sql.dialect.position}(lower(envelope), lower(?)) > 0`,
			[text],
		);
		for (const { seq, envelope } of found) {
			const stored = readEnvelope(envelope);
			const kept = (texts: readonly string[]) => texts.filter((one) => parseMailbox(one)?.key !== address);
			const { reply_to, cc, bcc } = stored;
			const rest = { ...stored, reply_to: kept(reply_to), cc: kept(cc), bcc: kept(bcc) };
			sql.write('UPDATE submissions SET envelope = ? WHERE seq = ?', [JSON.stringify(rest), seq]);
		}
	}
}

async function replaceIn(
	sql: Sql,
	{ name, column, key: [major, minor] }: (typeof answerTables)[number],
	addresses: readonly string[],
): Promise<void> {
	for (const text of addresses) {
		const inner = JSON.stringify(text).slice(1, -1);
		const found = await sql.tuples<[string, string | number, string | number]>(
			`SELECT ${column}, ${major}, ${minor}
			FROM ${name}
			WHERE ${sql.dialect.position}(lower(${column}), lower(?)) > 0`,
			[inner],
		);
		for (const [answer, ...key] of found) {
			sql.write(`UPDATE ${name} SET ${column} = ? WHERE ${major} = ? AND ${minor} = ?`, [
				withoutAddress(answer, inner),
				...key,
			]);
		}
	}
}

async function eraseResults(sql: Sql, address: string): Promise<void> {
	const found = await sql.all<{ campaign_seq: number; n: number; to_email: string; error: string | null }>(
		`SELECT campaign_seq, n, to_email, error
		FROM campaign_results
		WHERE to_email IS NOT NULL
			AND ${sql.dialect.position}(lower(to_email || ' ' || coalesce(error, '')), lower(?)) > 0`,
		[address],
	);
	for (const { campaign_seq, n, to_email, error } of found) {
		sql.write('UPDATE campaign_results SET to_email = ?, error = ? WHERE campaign_seq = ? AND n = ?', [
			withoutAddress(to_email, address),
			error === null ? null : withoutAddress(error, address),
			campaign_seq,
			n,
		]);
	}
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
