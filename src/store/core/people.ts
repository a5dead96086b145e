import { type EmailKey, emailKey, parseMailbox } from '../../api/address.js';
import { sayLeftOut } from '../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { LeftOut, ListedSubscriber, PersonDelivery, PersonMessage, Visit } from '../../api/people.js';
import type { Uuid } from '../../api/records.js';
import { erasedHash } from '../../engine/rules/subscription.js';
import type { Command, Operations } from '../operations.js';
import { erasureKeys, hasCopies, writtenForms } from './erasures.js';
import { holdsOfMessage } from './limits/holders.js';
import { getMessage } from './messages/messages.js';
import { parseTexts, readEnvelope, type SubscriberRow, sliceOf, subscriberColumns, timeOf } from './rows.js';
import { column, type Sql } from './sql.js';
import { toSubscriber } from './subscribers.js';
import { selectSuppressions } from './suppression-records.js';

export function createPeople(sql: Sql) {
	return {
		getPerson: ({ email_key }) => getPerson(sql, email_key),
		slicePersonMessages: (command) => sliceMessages(sql, command),
	} satisfies Partial<Operations>;
}

const most = 1000;

async function getPerson(sql: Sql, email_key: EmailKey): ReturnType<Operations['getPerson']> {
	const forms = await writtenForms(sql, email_key);
	const [sender = null] = await column<Micros>(sql, 'SELECT created_at FROM senders WHERE email_key = ?', [
		email_key,
	]);
	const found = {
		subscribers: await subscribersOf(sql, email_key),
		suppressions: await selectSuppressions(sql, 'email_key = ? ORDER BY reason, list_id', [email_key]),
		date_erased: timeOf(await erasedAt(sql, email_key)),
		left_out: [
			...(await leftOutByName(sql, email_key)),
			...(await leftOutOfCalls(sql, email_key)),
			...(await leftOutOf(sql, email_key, forms)),
		].sort(newestFirst),
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
}

function newestFirst(one: LeftOut, other: LeftOut): number {
	if (one.date_created === other.date_created) return 0;
	return one.date_created > other.date_created ? -1 : 1;
}

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

async function leftOutByName(sql: Sql, email_key: EmailKey): Promise<LeftOut[]> {
	const rows = await sql.all<
		LeftOutRow & { detail: string | null; list: string | null; other: string | null }
	>(
		`SELECT g.id, g.key, g.state, g.created_at, o.code, o.detail,
			CASE WHEN o.code = 'excluded'
				THEN (SELECT name FROM lists WHERE id = CAST(o.detail AS BIGINT)) END AS list,
			(SELECT key FROM campaigns WHERE id = o.detail) AS other
		FROM campaign_left_out o
		JOIN campaigns g ON g.seq = o.campaign_seq
		WHERE o.to_key = ? AND g.state = 'released'
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.to_key = o.to_key AND m.lane = g.seq)
		ORDER BY g.seq DESC, o.id
		LIMIT ${most}`,
		[email_key],
	);
	return rows.map((row) => {
		const list = (id: string) => JSON.stringify(row.list ?? id);
		return toLeftOut(row, sayLeftOut(row, { list, campaign: (id) => row.other ?? id }));
	});
}

async function leftOutOfCalls(sql: Sql, email_key: EmailKey): Promise<LeftOut[]> {
	const rows = await sql.all<LeftOutRow & { detail: string | null }>(
		`SELECT o.campaign AS id, coalesce(g.key, o.campaign) AS key, 'released' AS state, s.created_at, o.code, o.detail
		FROM campaign_left_out o
		JOIN submissions s ON s.seq = o.submission_seq
		LEFT JOIN campaigns g ON g.id = o.campaign
		WHERE o.to_key = ?
		ORDER BY o.id DESC
		LIMIT ${most}`,
		[email_key],
	);
	return rows.map((row) => toLeftOut(row, sayLeftOut(row, { list: String, campaign: String })));
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

async function sliceMessages(
	sql: Sql,
	{ email_key, since_at, before, limit, now }: Command<'slicePersonMessages'>,
): ReturnType<Operations['slicePersonMessages']> {
	const rows = await sql.all<{ id: number; uuid: Uuid; variables: string }>(
		`SELECT m.id, m.uuid, m.variables
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
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
		const held_by = holds.map(({ until_at, ...limit }) => ({ ...limit, until: formatDateTime(until_at) }));
		results.push({
			...{ ...message, delivery_attempts: attempts, events, reports, held_by, tracking },
			...{ variables: parseTexts(variables), visits: await visitsOf(sql, id) },
			webhook_deliveries: await deliveriesOf(sql, id),
		});
	}
	return { results, next };
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

async function deliveriesOf(sql: Sql, message_id: number): Promise<PersonDelivery[]> {
	const rows = await sql.all<Omit<PersonDelivery, 'date_created'> & { date_created: Micros }>(
		`SELECT uuid AS id, webhook_id, type, state, created_at AS date_created, payload
		FROM webhook_deliveries
		WHERE message_id = ?
		ORDER BY id`,
		[message_id],
	);
	return rows.map((row) => ({ ...row, date_created: formatDateTime(row.date_created) }));
}
