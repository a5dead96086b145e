import { domainOf } from '../../../api/address.js';
import { addDays, type Day, dayOf, type Micros, microsPerDay, microsPerMs } from '../../../api/datetime.js';
import type { EventType, Uuid } from '../../../api/records.js';
import type { Audience } from '../../../engine/rules/outcomes.js';
import { type Dialect, flag, joinedMessages, type Sql } from '../sql.js';

export const total = '';

/** In every supported time zone, each quarter of an hour lies within one day. */
export const quarterHour: Micros = 900_000_000;

export const perDay = microsPerDay / quarterHour;

interface CountedEvent {
	at: Micros;
	campaign: Uuid | null;
	type: EventType | 'COMPLAINED';
	audience: Audience;
	by?: number;
}

export interface BouncedMessage {
	tag: string | null;
	campaign: Uuid | null;
	sent: Micros | null;
	soft: Micros | null;
	hard: Micros | null;
}

/** Collects the counts of one operation, so that a hundred messages write one row per figure. */
export class Tally {
	readonly #sql: Sql;
	readonly #dayAt: (quarter: number) => Day;
	readonly #days = new Counts(addToDay);
	readonly #quarters = new Counts(addToQuarter);
	readonly #clicks = new Counts(addToLink);
	readonly #bounces = new Counts(addToBounces);
	readonly #bounced = new Counts(addToBounced);
	/** Consecutive events mostly count in the same figure. Comparing with the last one is cheaper than building a key. */
	#last: (Omit<CountedEvent, 'at' | 'by'> & { quarter: number; by: number }) | null = null;

	constructor(sql: Sql, zone: string) {
		this.#sql = sql;
		this.#dayAt = dayFinder(zone);
	}

	add({ at, campaign, type, audience, by = 1 }: CountedEvent): void {
		const quarter = Math.floor(at / quarterHour);
		const last = this.#last;
		const isSame =
			last?.quarter === quarter &&
			last.campaign === campaign &&
			last.type === type &&
			last.audience === audience;
		if (!isSame) this.#addLast();
		this.#last = { quarter, campaign, type, audience, by: (isSame ? last.by : 0) + by };
	}

	/** Counts a click on a link. `messages` is 1 for this audience's first click on the link in a message, else 0. */
	addClick(key: readonly [campaign: Uuid, content: string, link: number, Audience], messages: number): void {
		this.#clicks.add(key, [1, messages]);
	}

	addBounce(
		{ at, campaign, type }: Omit<CountedEvent, 'audience'>,
		address: string,
		code: string | null,
	): void {
		const quarter = Math.floor(at / quarterHour);
		for (const scope of scopesOf(campaign))
			this.#bounces.add([scope, quarter, domainOf(address), type, code ?? ''], [1]);
	}

	moveBounced(before: BouncedMessage, after: BouncedMessage): void {
		for (const [{ tag, campaign, sent, soft, hard }, by] of [[before, -1] as const, [after, 1] as const])
			if (soft !== null || hard !== null)
				this.#bounced.add([...[hard, soft, sent].map(quarterOrNever), campaign ?? '', tag ?? ''], [by]);
	}

	write(): void {
		this.#addLast();
		for (const counts of [this.#days, this.#quarters, this.#clicks, this.#bounces, this.#bounced])
			counts.write(this.#sql);
	}

	#addLast(): void {
		if (this.#last === null) return;
		const { quarter, campaign, type, audience, by } = this.#last;
		for (const scope of scopesOf(campaign)) {
			this.#days.add([scope, this.#dayAt(quarter), type, audience], [by]);
			this.#quarters.add([scope, quarter, type, audience], [by]);
		}
		this.#last = null;
	}
}

export async function createTally(sql: Sql): Promise<Tally> {
	return new Tally(sql, await timeZone(sql));
}

/** Stands for the quarter of an event that did not happen: the message was not sent, or did not bounce. */
export const never = -1;

function quarterOrNever(at: Micros | null): number {
	return at === null ? never : Math.floor(at / quarterHour);
}

export function quartersOf({ from, to }: { from: Day; to: Day }, zone: string): readonly [number, number] {
	return [
		from <= '1970-01-01' ? 0 : firstQuarterOf(from, zone),
		// The last day is 9999-12-31. In every time zone, it ends less than two days after it begins in UTC.
		to >= '9999-12-31' ? midnightOf(to) + 2 * perDay : firstQuarterOf(addDays(to, 1), zone) - 1,
	];
}

function firstQuarterOf(day: Day, zone: string): number {
	const midnight = midnightOf(day);
	let [before, from] = [midnight - perDay, midnight + perDay];
	while (from - before > 1) {
		const middle = Math.floor((before + from) / 2);
		if (dayOf(middle * quarterHour, zone) < day) before = middle;
		else from = middle;
	}
	return from;
}

function midnightOf(day: Day): number {
	return (Date.parse(day) * microsPerMs) / quarterHour;
}

/** Remembers the day of the last quarter-hour, because `dayOf` costs as much as the rest of counting. */
function dayFinder(zone: string): (quarter: number) => Day {
	let last = { quarter: Number.NaN, day: '' };
	return (quarter) => {
		if (quarter !== last.quarter) last = { quarter, day: dayOf(quarter * quarterHour, zone) };
		return last.day;
	};
}

type QuarterKey = [scope: string, quarter: number, type: string, audience: string, shard: number];

const sliceRows = 10_000;

export async function sumDays(sql: Sql): Promise<void> {
	sql.write('DELETE FROM daily_figures');
	const days = new Counts(addToDay);
	const dayAt = dayFinder(await timeZone(sql));
	for (let after: QuarterKey = ['', 0, '', '', -1]; ; ) {
		const rows = await sql.tuples<[...QuarterKey, count: number]>(
			`SELECT scope, quarter, type, audience, shard, count
			FROM quarter_figures
			WHERE (scope, quarter, type, audience, shard) > (?, ?, ?, ?, ?)
			ORDER BY scope, quarter, type, audience, shard
			LIMIT ${sliceRows}`,
			after,
		);
		for (const [scope, quarter, type, audience, , by] of rows)
			days.add([scope, dayAt(quarter), type, audience], [by]);
		days.write(sql);
		const last = rows.at(-1);
		if (last === undefined || rows.length < sliceRows) return;
		const [scope, quarter, type, audience, shard] = last;
		after = [scope, quarter, type, audience, shard];
	}
}

export async function timeZone(sql: Sql): Promise<string> {
	const row = await sql.get<{ value: string }>("SELECT value FROM settings WHERE name = 'time_zone'");
	return row?.value ?? 'UTC';
}

export function scopesOf(campaign: Uuid | null): string[] {
	return campaign === null ? [total] : [total, campaign];
}

type Key = readonly (string | number)[];

class Counts {
	readonly #text: string;
	readonly #counts = new Map<string, { key: Key; by: number[] }>();

	constructor(text: string) {
		this.#text = text;
	}

	add(key: Key, by: readonly number[]): void {
		const name = key.join('\0');
		const entry = this.#counts.get(name) ?? { key, by: by.map(() => 0) };
		this.#counts.set(name, { key, by: entry.by.map((sum, index) => sum + (by[index] ?? 0)) });
	}

	/** Writes rows in a fixed order, so that two writers of the same rows cannot deadlock. */
	write(sql: Sql): void {
		const named = [...this.#counts].sort(([one], [other]) => (one < other ? -1 : 1));
		for (const [, { key, by }] of named)
			if (by.some((sum) => sum !== 0)) sql.write(this.#text, [...key, sql.shard, ...by]);
		this.#counts.clear();
	}
}

export function addTo(table: string, key: readonly string[], sums: readonly string[] = ['count']): string {
	const names = [...key, 'shard'].join(', ');
	return `INSERT INTO ${table} (${names}, ${sums.join(', ')})
		VALUES (${[...key, 'shard', ...sums].map(() => '?').join(', ')})
		ON CONFLICT (${names}) DO UPDATE SET ${sums.map((sum) => `${sum} = ${table}.${sum} + excluded.${sum}`).join(', ')}`;
}

const addToDay = addTo('daily_figures', ['scope', 'day', 'type', 'audience']);
export const addToQuarter = addTo('quarter_figures', ['scope', 'quarter', 'type', 'audience']);
const linkKey = ['campaign', 'content_sha256', 'link', 'audience'];
const addToLink = addTo('link_figures', linkKey, ['clicks', 'messages']);
const addToBounces = addTo('bounce_figures', ['scope', 'quarter', 'domain', 'type', 'code']);
const addToBounced = addTo('bounced_figures', ['hard', 'soft', 'sent', 'campaign', 'tag']);

interface CounterMove {
	active: number;
	inactive: number;
}

const addToCounters = addTo('list_counters', ['list_id'], ['active', 'inactive']);
const addToJoined = addTo('list_joined', ['list_id', 'quarter']);

/** `joinedAt`: when the added or removed people joined; null leaves `list_joined` as it is. */
export function moveCounters(
	sql: Sql,
	list_id: number,
	{ active, inactive }: CounterMove,
	joinedAt: Micros | null,
): void {
	if (active === 0 && inactive === 0) return;
	sql.write(addToCounters, [list_id, sql.shard, active, inactive]);
	if (joinedAt === null || active + inactive === 0) return;
	sql.write(addToJoined, [list_id, Math.floor(joinedAt / quarterHour), sql.shard, active + inactive]);
}

export function counterMove(before: boolean | null, after: boolean | null): CounterMove {
	const change = (activity: boolean) => flag(after === activity) - flag(before === activity);
	return { active: change(true), inactive: change(false) };
}

/** Takes the name of a column of message ids. Returns a condition that begins with AND, or '' for all messages. */
export type Only = (id: string) => string;
const everything: Only = () => '';

export function countedRows(only = everything): string {
	return `SELECT tag, campaign, 'CREATED' AS type, 'all' AS audience, at / ${quarterHour} AS quarter, count(*) AS count
		FROM (
			SELECT s.tag, s.campaign, coalesce(g.released_at, m.created_at) AS at
			FROM ${joinedMessages}
			WHERE (s.campaign_seq IS NULL OR g.released_at IS NOT NULL) ${only('m.id')}
		) c
		GROUP BY tag, campaign, quarter
		UNION ALL
		SELECT s.tag, s.campaign, 'SENT', 'all', m.sent_at / ${quarterHour} AS quarter, count(*)
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.sent_at IS NOT NULL ${only('m.id')}
		GROUP BY s.tag, s.campaign, quarter
		UNION ALL
		SELECT s.tag, s.campaign, f.type, f.audience, f.first_at / ${quarterHour} AS quarter, count(*)
		FROM (
			SELECT message_id, type, 'all' AS audience, min(first_at) AS first_at
			FROM message_firsts
			WHERE TRUE ${only('message_id')}
			GROUP BY message_id, type
			UNION ALL
			SELECT message_id, type, 'human', min(first_at)
			FROM message_firsts
			WHERE machine = 0 ${only('message_id')}
			GROUP BY message_id, type
		) f
		JOIN messages m ON m.id = f.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY s.tag, s.campaign, f.type, f.audience, quarter`;
}

export function clickedRows(only = everything): string {
	return `SELECT s.campaign, s.content_sha256, f.link, a.audience, sum(f.count) AS clicks, count(DISTINCT f.message_id) AS messages
		FROM message_firsts f
		JOIN (SELECT 'all' AS audience, 1 AS machine UNION ALL SELECT 'human', 0) a ON f.machine <= a.machine
		JOIN messages m ON m.id = f.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE f.type = 'REDIRECTED' AND f.link >= 0 AND s.campaign IS NOT NULL ${only('f.message_id')}
		GROUP BY s.campaign, s.content_sha256, f.link, a.audience`;
}

const isBounce = "type IN ('SOFTBOUNCED', 'HARDBOUNCED')";

export function bouncedRows({ position }: Dialect, only = everything): string {
	return `SELECT s.campaign, f.first_at / ${quarterHour} AS quarter,
			CASE ${position}(m.to_key, '@') WHEN 0 THEN ''
				ELSE replace(m.to_key, rtrim(m.to_key, replace(m.to_key, '@', '')), '') END AS domain,
			f.type,
			coalesce(
				(SELECT e.smtp_code FROM events e WHERE e.message_id = f.message_id AND e.type = f.type
					ORDER BY e.id LIMIT 1),
				(SELECT coalesce(t.enhanced, CAST(t.code AS TEXT)) FROM attempts t
					WHERE t.message_id = f.message_id AND t.outcome IN ('bounced', 'failed')
					ORDER BY t.number DESC LIMIT 1),
				'') AS code,
			count(*) AS count
		FROM (
			SELECT message_id, type, min(first_at) AS first_at
			FROM message_firsts
			WHERE ${isBounce} ${only('message_id')}
			GROUP BY message_id, type
		) f
		JOIN messages m ON m.id = f.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY s.campaign, quarter, domain, f.type, code`;
}

export function bouncedGroups(only = everything): string {
	const quarter = (at: string) => `coalesce(${at} / ${quarterHour}, ${never})`;
	return `SELECT coalesce(s.tag, '') AS tag, coalesce(s.campaign, '') AS campaign,
			${quarter('m.sent_at')} AS sent, ${quarter('b.soft')} AS soft, ${quarter('b.hard')} AS hard, count(*) AS count
		FROM (
			SELECT message_id, min(CASE type WHEN 'SOFTBOUNCED' THEN first_at END) AS soft,
				min(CASE type WHEN 'HARDBOUNCED' THEN first_at END) AS hard
			FROM message_firsts
			WHERE ${isBounce} ${only('message_id')}
			GROUP BY message_id
		) b
		JOIN messages m ON m.id = b.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY 1, 2, 3, 4, 5`;
}

/** `counted` returns a query that computes the same figures from other tables. */
export interface Figure {
	table: string;
	columns: readonly string[];
	/** `checkCounts` compares sums by these columns, because erasures and late bounces change the other columns. */
	key: readonly string[];
	sums: readonly string[];
	counted(dialect: Dialect): string;
}

export const sharded: readonly Figure[] = [
	{
		table: 'link_figures',
		columns: ['campaign', 'content_sha256', 'link', 'audience'],
		key: ['campaign', 'link', 'audience'],
		sums: ['clicks', 'messages'],
		counted: () => `${clickedRows()}
			UNION ALL SELECT campaign, content_sha256, link, audience, clicks, messages FROM deleted_links`,
	},
	{
		table: 'bounce_figures',
		columns: ['scope', 'quarter', 'domain', 'type', 'code'],
		key: ['scope', 'type'],
		sums: ['count'],
		counted: (dialect) => {
			const rows = `(${bouncedRows(dialect)}
				UNION ALL SELECT campaign, quarter, domain, type, code, count FROM deleted_bounces)`;
			return `SELECT '${total}' AS scope, quarter, domain, type, code, count FROM ${rows} a
				UNION ALL SELECT campaign, quarter, domain, type, code, count FROM ${rows} b WHERE campaign <> ''`;
		},
	},
	{
		table: 'bounced_figures',
		columns: ['hard', 'soft', 'sent', 'campaign', 'tag'],
		key: ['hard', 'soft', 'sent', 'campaign', 'tag'],
		sums: ['count'],
		counted: () => `${bouncedGroups()}
			UNION ALL SELECT tag, campaign, sent, soft, hard, count FROM deleted_bounced`,
	},
	{
		table: 'list_joined',
		columns: ['list_id', 'quarter'],
		key: ['list_id', 'quarter'],
		sums: ['count'],
		counted: () => `SELECT list_id, created_at / ${quarterHour} AS quarter, count(*) AS count
			FROM subscribers
			GROUP BY list_id, quarter`,
	},
];
