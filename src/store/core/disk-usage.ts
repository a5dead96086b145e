import { type Micros, microsPerDay } from '../../api/datetime.js';
import { type Retention, retentionOf, retentionSettings } from '../../engine/rules/settings.js';
import type { Kind, RetentionForecast, Sizes } from '../maintenance.js';
import type { Operations } from '../operations.js';
import { column, findSince, type Sql } from './sql.js';
import { messageCount } from './submissions.js';

export function createRoom(sql: Sql) {
	return {
		sizes: () => sizesOf(sql),
		deletedMessages: async ({ now }) => {
			const kept =
				"SELECT value FROM settings WHERE name = 'keep_messages' AND EXISTS (SELECT 1 FROM deleted_figures)";
			const [keep_messages = ''] = await column<string>(sql, kept);
			const { messages } = cutoffsOf({ keep_messages }, now);
			return messages === null ? null : { before_at: messages, keep_messages };
		},
		foreseeRetention: async ({ values, now }) => {
			const before = cutoffsOf(values, now);
			const sizes = await sizesOf(sql);
			const messages = await oldMessages(sql, before.messages);
			const events = await oldEvents(sql, before.events);
			const bodies = await oldBodies(sql, before.bodies);
			const bytes =
				messages.share * sizes.messages +
				Math.max(messages.share, events.share) * sizes.events +
				bodies.share * sizes.bodies;
			return {
				...{ messages: messages.rows, events: events.rows, bodies: bodies.rows },
				bytes: Math.round(bytes),
			} satisfies RetentionForecast;
		},
	} satisfies Partial<Operations>;
}

const kinds: Readonly<Record<Exclude<Kind, 'other'>, readonly string[]>> = {
	messages: ['messages', 'message_', 'attempts', 'submissions', 'campaign', 'bounce_reports', 'compositions'],
	events: ['events'],
	links: ['old_messages'],
	bodies: ['content', 'attachments'],
	subscribers: ['subscribers', 'suppressions'],
	figures: ['daily_', 'quarter_', 'link_', 'bounce_figures', 'bounced_', 'deleted_', 'list_'],
};

const none: Readonly<Record<Kind, number>> = {
	...{ messages: 0, events: 0, bodies: 0, links: 0, subscribers: 0, figures: 0, other: 0 },
};

async function sizesOf(sql: Sql): Promise<Sizes> {
	const total = await sql.number(sql.dialect.databaseSize);
	const free = await sql.number(sql.dialect.freeSize);
	const tables = await sql.all<{ name: string; bytes: number }>(sql.dialect.tableSizes);
	const bytes: Record<Kind, number> = tables.length === 0 ? await estimated(sql, total - free) : { ...none };
	for (const { name, bytes: size } of tables) {
		const [kind] =
			Object.entries(kinds).find(([, begins]) => begins.some((begin) => name.startsWith(begin))) ?? [];
		bytes[(kind as Kind | undefined) ?? 'other'] += size;
	}
	return { ...bytes, free, is_estimate: tables.length === 0 };
}

/** Estimates sizes from samples. The rest counts as bodies: other data, such as figures and links, is small. */
async function estimated(sql: Sql, used: number): Promise<Record<Kind, number>> {
	const perMessage = await average(
		sql,
		'messages',
		`3 * length(to_key) + 2 * length(uuid) + length(variables) + length(coalesce(last_reply, '')) + 110
			+ (SELECT coalesce(sum(length(a.text) + 45), 0) FROM attempts a WHERE a.message_id = t.id)
			+ 45 * (SELECT count(*) FROM message_firsts f WHERE f.message_id = t.id)`,
	);
	const texts = ['ip', 'user_agent', 'url', 'diagnostic'].map((name) => `length(coalesce(${name}, ''))`);
	const perEvent = await average(sql, 'events', `${texts.join(' + ')} + 60`);
	const ofSubscriber = 'length(email) + 2 * length(email_key) + length(name) + length(meta) + 60';
	const { first, last } = await spanOf(sql, 'events');
	const subscribers = await sql.number('SELECT coalesce(sum(active + inactive), 0) FROM list_counters');
	const bytes = {
		...none,
		messages: Math.round(perMessage * (await messageCount(sql))),
		events: Math.round(perEvent * (last - first + 1)),
		subscribers: Math.round((await average(sql, 'subscribers', ofSubscriber)) * subscribers),
	};
	return { ...bytes, bodies: Math.max(0, used - bytes.messages - bytes.events - bytes.subscribers) };
}

const sample = 200;
const fill = 1.25;

async function average(sql: Sql, table: string, bytes: string): Promise<number> {
	const { first, last } = await spanOf(sql, table);
	const step = Math.max(1, Math.floor((last - first) / sample));
	const ids = Array.from({ length: sample }, (_, at) => first + at * step);
	const select = `SELECT avg(${bytes}) FROM ${table} t WHERE ${sql.dialect.oneOf('t.id')}`;
	const [size = null] = await column<number | null>(sql, select, [JSON.stringify(ids)]);
	return Number(size ?? 0) * fill;
}

async function spanOf(sql: Sql, table: string): Promise<{ first: number; last: number }> {
	const first = await sql.number(`SELECT coalesce(min(id), 1) FROM ${table}`);
	return { first, last: await sql.number(`SELECT coalesce(max(id), 0) FROM ${table}`) };
}

interface Old {
	rows: number;
	share: number;
}

function part(rows: number, all: number): Old {
	return { rows, share: all === 0 ? 0 : Math.min(1, rows / all) };
}

async function oldMessages(sql: Sql, before: Micros | null): Promise<Old> {
	if (before === null) return part(0, 0);
	const { first, last, found } = await findSince(sql, 'messages', 'id', before + 1);
	if (last < first) return part(0, 0);
	const all = await messageCount(sql);
	return part(Math.round((all * (found - first)) / (last + 1 - first)), all);
}

async function oldEvents(sql: Sql, before: Micros | null): Promise<Old> {
	const { first, last } = await spanOf(sql, 'events');
	if (before === null || last < first) return part(0, 0);
	const [young = last + 1] = await column<number>(
		sql,
		'SELECT id FROM events WHERE at > ? ORDER BY at LIMIT 1',
		[before],
	);
	return part(young - first, last + 1 - first);
}

const mostCounted = 100_000;

async function oldBodies(sql: Sql, before: Micros | null): Promise<Old> {
	const counted = async (most: Micros) =>
		await sql.number(
			`SELECT count(*)
			FROM (SELECT 1 AS one FROM contents WHERE dropped_at IS NULL AND used_at <= ? LIMIT ${mostCounted}) c`,
			[most],
		);
	return before === null ? part(0, 0) : part(await counted(before), await counted(Number.MAX_SAFE_INTEGER));
}

/** Returns the times up to which retention deletes data (null: nothing). */
export async function cutoffs(sql: Sql, now: Micros): Promise<Retention> {
	const rows = await sql.tuples<[name: string, value: string]>(
		`SELECT name, value FROM settings WHERE name IN (${retentionSettings.map((name) => `'${name}'`).join(', ')})`,
	);
	return cutoffsOf(Object.fromEntries(rows), now);
}

function cutoffsOf(values: Readonly<Record<string, string>>, now: Micros): Retention {
	const { messages, events, bodies } = retentionOf(values);
	const before = (kept: Micros | null) => (kept === null ? null : now - kept);
	// `used_at` changes at most once a day, so the last send may be up to a day later.
	const sent = bodies === null ? null : bodies + microsPerDay;
	return { messages: before(messages), events: before(events), bodies: before(sent) };
}
