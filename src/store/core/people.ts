import { randomUUID } from 'node:crypto';
import { type EmailKey, emailKey, parseMailbox } from '../../api/address.js';
import { sayLeftOut } from '../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { LeftOut, ListedSubscriber, PersonDelivery, PersonMessage, Visit } from '../../api/people.js';
import type { Uuid } from '../../api/records.js';
import { erasedAddress } from '../../engine/rules/subscribers.js';
import type { Command, Operations } from '../operations.js';
import { dropContent } from './attachments.js';
import { keepAttempt, type SentMessage } from './attempts.js';
import { counterMove, moveCounters } from './figures/tally.js';
import { insertKey } from './keys.js';
import { getMessage } from './messages/messages.js';
import { holdsOfMessage } from './queue-state.js';
import {
	column,
	type Dated,
	dated,
	emailColumn,
	exists,
	insertInto,
	joinedMessages,
	parseTexts,
	readEnvelope,
	type Sql,
	type SubscriberRow,
	sliceOf,
	subscriberColumns,
	timeOf,
} from './sql.js';
import { toSubscriber } from './subscribers.js';
import { selectSuppressions } from './suppression-records.js';
import { erasedHash, erasureKeys } from './suppressions.js';

export function createPeople(sql: Sql) {
	return {
		getPerson: async ({ email_key }) => {
			const forms = await writtenForms(sql, email_key);
			const [sender = null] = await column<Micros>(
				sql,
				'SELECT created_at FROM senders WHERE email_key = ?',
				[email_key],
			);
			const found = {
				subscribers: await subscribersOf(sql, email_key),
				suppressions: await selectSuppressions(sql, 'email_key = ? ORDER BY reason, list_id', [email_key]),
				date_erased: timeOf(await erasedAt(sql, email_key)),
				left_out: [
					...(await leftOutByName(sql, email_key)),
					...(await leftOutOf(sql, email_key, forms)),
				].sort(({ date_created: one }, { date_created: other }) => Number(one < other) - Number(one > other)),
				copies: await copiesOf(sql, email_key, forms),
				date_sender: timeOf(sender),
				messages: await sql.number('SELECT count(*) FROM messages WHERE to_key = ?', [email_key]),
				old_messages: await sql.number('SELECT count(*) FROM old_messages WHERE to_key = ?', [email_key]),
			};
			const { date_erased, date_sender, messages, old_messages, ...lists } = found;
			const is_known =
				(date_erased ?? date_sender) !== null ||
				messages + old_messages > 0 ||
				Object.values(lists).some(({ length }) => length > 0);
			return { email: email_key, ...found, is_known };
		},
		slicePersonMessages: async ({ email_key, since_at, before, limit, now }) => {
			const rows = await sql.all<{ id: number; uuid: Uuid; variables: string }>(
				`SELECT m.id, m.uuid, m.variables
				FROM ${joinedMessages}
				WHERE m.to_key = ? AND m.id < ? AND coalesce(g.released_at, m.created_at) >= ?
				ORDER BY m.id DESC
				LIMIT ?`,
				[email_key, before ?? Number.MAX_SAFE_INTEGER, since_at ?? 0, limit + 1],
			);
			const { shown, next } = sliceOf(rows, limit, ({ id }) => id);
			const results: PersonMessage[] = [];
			for (const { id, uuid, variables } of shown) {
				const found = await getMessage(sql, uuid, {});
				if (found === null) continue;
				const { message, attempts, events, reports, tracking } = found;
				const holds = await holdsOfMessage(sql, uuid, now);
				const deliveries = await sql.all<Dated<PersonDelivery>>(
					`SELECT uuid AS id, webhook_id, type, state, created_at AS date_created, payload
					FROM webhook_deliveries
					WHERE message_id = ?
					ORDER BY id`,
					[id],
				);
				const held_by = holds.map(({ until_at, ...limit }) => ({
					...limit,
					until: formatDateTime(until_at),
				}));
				results.push({
					...{ ...message, delivery_attempts: attempts, events, reports, held_by, tracking },
					...{ variables: parseTexts(variables), visits: await visitsOf(sql, id) },
					webhook_deliveries: deliveries.map(dated),
				});
			}
			return { results, next };
		},
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

const most = 1000;

async function subscribersOf(sql: Sql, email_key: EmailKey): Promise<ListedSubscriber[]> {
	const rows = await sql.all<SubscriberRow & { list_name: string }>(
		`SELECT ${subscriberColumns}, (SELECT name FROM lists l WHERE l.id = list_id) AS list_name
		FROM subscribers
		WHERE email_key = ?
		ORDER BY list_id`,
		[email_key],
	);
	return rows.map((row) => ({ ...toSubscriber(row), list_name: row.list_name }));
}

async function erasedAt(sql: Sql, email_key: EmailKey): Promise<Micros | null> {
	for (const { secret } of await erasureKeys(sql)) {
		const hash = erasedHash(secret, email_key);
		const [at] = await column<Micros>(sql, 'SELECT erased_at FROM erased WHERE email_hash = ?', [hash]);
		if (at !== undefined) return at;
	}
	return null;
}

interface LeftOutRow extends Pick<LeftOut, 'key' | 'state' | 'code'> {
	id: Uuid;
	created_at: Micros;
}

function toLeftOut(
	{ id: campaign, key, state, created_at, code }: LeftOutRow,
	error: string | null,
): LeftOut {
	return { campaign, key, state, date_created: formatDateTime(created_at), code, error };
}

async function leftOutOf(sql: Sql, email_key: EmailKey, forms: readonly string[]): Promise<LeftOut[]> {
	const rows = await sql.all<LeftOutRow & { to_email: string; error: string | null }>(
		`SELECT g.id, g.key, g.state, g.created_at, r.to_email, r.code, r.error
		FROM campaign_results r
		JOIN campaigns g ON g.seq = r.campaign_seq
		WHERE r.to_email IS NOT NULL AND r.message_id IS NULL AND r.code <> 'duplicate' AND (${anyOf(sql, 'r.to_email', forms)})
		ORDER BY g.seq DESC, r.n
		LIMIT ${most}`,
		forms,
	);
	return rows
		.filter(({ to_email }) => to_email.split(', ').some((one) => keyOf(one) === email_key))
		.map((row) => toLeftOut(row, row.error));
}

/** A send call may name a campaign that has no row. */
async function leftOutByName(sql: Sql, email_key: EmailKey): Promise<LeftOut[]> {
	const rows = await sql.all<
		LeftOutRow & { detail: string | null; list: string | null; other: string | null }
	>(
		`SELECT coalesce(g.id, o.campaign) AS id, coalesce(g.key, o.campaign) AS key, 'released' AS state,
			coalesce(s.created_at, g.created_at) AS created_at, o.code, o.detail,
			CASE WHEN o.code = 'excluded'
				THEN (SELECT name FROM lists WHERE id = CAST(o.detail AS BIGINT)) END AS list,
			(SELECT key FROM campaigns WHERE id = o.detail) AS other
		FROM campaign_left_out o
		LEFT JOIN submissions s ON s.seq = o.submission_seq
		LEFT JOIN campaigns g ON g.seq = o.campaign_seq OR g.id = o.campaign
		WHERE o.to_key = ? AND (s.seq IS NOT NULL OR (
			g.state = 'released' AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.to_key = o.to_key AND m.lane = g.seq)
		))
		ORDER BY o.id DESC
		LIMIT ${most}`,
		[email_key],
	);
	return rows.map((row) => {
		const list = (id: string) => JSON.stringify(row.list ?? id);
		return toLeftOut(row, sayLeftOut(row, { list, campaign: (id) => row.other ?? id }));
	});
}

async function copiesOf(sql: Sql, email_key: EmailKey, forms: readonly string[]): Promise<Uuid[]> {
	const rows = await sql.all<{ uuid: Uuid; envelope: string }>(
		`SELECT m.uuid, s.envelope
		FROM submissions s
		CROSS JOIN messages m
		WHERE m.submission_seq = s.seq AND ${hasCopies(sql, 's.envelope')} AND (${anyOf(sql, 's.envelope', forms)})
		ORDER BY m.id DESC
		LIMIT ${most}`,
		forms,
	);
	return rows.flatMap(({ uuid, envelope }) => {
		const { cc, bcc, reply_to } = readEnvelope(envelope);
		return [...cc, ...bcc, ...reply_to].some((text) => keyOf(text) === email_key) ? [uuid] : [];
	});
}

function keyOf(text: string): EmailKey {
	return parseMailbox(text)?.key ?? emailKey(text);
}

function anyOf({ dialect: { position } }: Sql, name: string, forms: readonly string[]): string {
	return forms.map(() => `${position}(lower(${name}), lower(?)) > 0`).join(' OR ');
}

async function visitsOf(sql: Sql, message_id: number): Promise<Visit[]> {
	const rows = await sql.all<Omit<Visit, 'at' | 'machine'> & { at: Micros; machine: number }>(
		`SELECT type, at, machine, url, ip, user_agent, smtp_code, diagnostic
		FROM events
		WHERE message_id = ?
		ORDER BY at, id`,
		[message_id],
	);
	return rows.map((row) => ({ ...row, at: formatDateTime(row.at), machine: row.machine === 1 }));
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
	const subscribers = await sql.all<{ list_id: number; is_active: number; created_at: Micros }>(
		'DELETE FROM subscribers WHERE email_key = ? RETURNING list_id, is_active, created_at',
		[email_key],
	);
	for (const { list_id, is_active, created_at } of subscribers)
		moveCounters(sql, list_id, counterMove(is_active === 1, null), created_at);
	const suppressions = (await sql.run('DELETE FROM suppressions WHERE email_key = ?', [email_key])).changes;
	if ((await erasureKeys(sql)).length === 0) insertKey(sql, { purpose: 'erasure', ...fresh, now });
	const [key = fresh] = await erasureKeys(sql);
	const email_hash = erasedHash(key.secret, email_key);
	insertInto(sql, 'erased', { email_hash, key_id: key.id, erased_at: now }, 'ON CONFLICT DO NOTHING');
	return { subscribers: subscribers.length, messages, canceled, suppressions };
}

/** Returns the address in lower case and as typed, because replies and stored answers may quote either. */
async function writtenForms(sql: Sql, email_key: EmailKey): Promise<string[]> {
	const typed = await column<string>(
		sql,
		`SELECT ${emailColumn} FROM subscribers WHERE email_key = ?
		UNION
		SELECT to_email FROM messages WHERE to_key = ?`,
		[email_key, email_key],
	);
	return [...new Set([email_key, ...typed])];
}

/** Cancels leased messages too. A higher `fence` discards the worker's outcome, which may quote the address. */
async function eraseMessages(sql: Sql, address: EmailKey): Promise<{ messages: number; canceled: number }> {
	const own = await sql.all<SentMessage & { submission_seq: number; wake_at: number | null }>(
		`SELECT m.id, m.attempts, m.sent_at, m.last_reply, g.courier, m.submission_seq, m.wake_at
		FROM ${joinedMessages}
		WHERE m.to_key = ?`,
		[address],
	);
	for (const message of own) {
		keepAttempt(sql, message);
		const { id } = message;
		sql.write(
			// Anyone can compute the id of a campaign's message from the address, so replace it.
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
		// Webhook deliveries and their answers may contain the address, so delete all of them.
		sql.write(
			`DELETE FROM webhook_attempts
			WHERE delivery_id IN (SELECT id FROM webhook_deliveries WHERE message_id = ?)`,
			[id],
		);
		sql.write('DELETE FROM webhook_deliveries WHERE message_id = ?', [id]);
	}
	for (const seq of new Set(own.map(({ submission_seq }) => submission_seq))) await eraseSubmission(sql, seq);
	return { messages: own.length, canceled: own.filter(({ wake_at }) => wake_at !== null).length };
}

/** Clears a submission without other recipients, unless a campaign may still add recipients to it. */
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

/** Matches submissions with reply-to or copy addresses. Must equal the condition of index submissions_with_copies. */
function hasCopies({ dialect: { position } }: Sql, envelope: string): string {
	return `${position}(${envelope}, '"reply_to":[],"cc":[],"bcc":[]') = 0`;
}

/** Reads all submissions with copies, because no index covers the addresses in them. Erasures are rare. */
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

/** Columns whose text or JSON may contain an address. Their tables have few rows, so an erasure reads every row. */
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

/** Replaces `ann@example.com` also before a full stop, but not inside `joann@example.com` or `ann@example.com.au`. */
function withoutAddress(text: string, address: string): string {
	const escaped = address.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
	const whole = new RegExp(`(?<![-\\w.!#$%&'*+/=?^\`{|}~])${escaped}(?![-\\w]|\\.\\w)`, 'gi');
	return text.replace(whole, erasedAddress);
}
