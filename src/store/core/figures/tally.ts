/** Figures change with the rows that they count, in the same transaction. */
import { domainOf } from '../../../api/address.js';
import { addDays, dayOf, type Micros, microsPerDay, microsPerMs } from '../../../api/datetime.js';
import type { EventType, Uuid } from '../../../api/records.js';
import type { Audience } from '../../../engine/rules/outcomes.js';
import type { Day } from '../../store.js';
import type { Sql } from '../sql.js';

export const total = '';

/** A quarter of an hour lies within one day in every supported time zone. */
export const quarterHour: Micros = 900_000_000;

export const perDay = microsPerDay / quarterHour;

export interface Figure {
	at: Micros;
	campaign: Uuid | null;
	/** A complaint is not an event of the service document, and has no daily figure. */
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

/** Collects the counts of one operation, so that a hundred messages write one row for each figure. */
export interface Tally {
	add(figure: Figure): void;
	/** One more click on a link; `messages`: 1 for the first of its message by this audience. */
	addClick(click: {
		campaign: Uuid;
		content: string;
		link: number;
		audience: Audience;
		messages: number;
	}): void;
	addBounce(bounce: {
		at: Micros;
		campaign: Uuid | null;
		type: EventType;
		address: string;
		code: string | null;
	}): void;
	/** What is known of a message changes; it is counted once it has bounced. */
	moveBounced(before: BouncedMessage, after: BouncedMessage): void;
	write(): void;
}

export async function createTally(sql: Sql): Promise<Tally> {
	const dayAt = dayFinder(await timeZone(sql));
	const days = createCounts();
	const quarters = createCounts();
	const clicks = createCounts();
	const bounces = createCounts();
	const bounced = createCounts();
	const addBounced = ({ tag, campaign, sent, soft, hard }: BouncedMessage, by: number) => {
		if (soft === null && hard === null) return;
		bounced.add([...[hard, soft, sent].map(quarterOrNever), campaign ?? '', tag ?? ''], [by]);
	};
	// Those of a hundred messages are mostly one: its keys cost more than to see that it is the same.
	let last: (Omit<Figure, 'at' | 'by'> & { quarter: number; by: number }) | null = null;
	const addLast = () => {
		if (last === null) return;
		const { quarter, campaign, type, audience, by } = last;
		for (const scope of scopesOf(campaign)) {
			if (type !== 'COMPLAINED') days.add([scope, dayAt(quarter), type, audience], [by]);
			quarters.add([scope, quarter, type, audience], [by]);
		}
		last = null;
	};
	return {
		add: ({ at, campaign, type, audience, by = 1 }) => {
			const quarter = Math.floor(at / quarterHour);
			const isSame =
				last?.quarter === quarter &&
				last.campaign === campaign &&
				last.type === type &&
				last.audience === audience;
			if (!isSame) addLast();
			last = { quarter, campaign, type, audience, by: (last?.by ?? 0) + by };
		},
		addClick: ({ campaign, content, link, audience, messages }) =>
			clicks.add([campaign, content, link, audience], [1, messages]),
		addBounce: ({ at, campaign, type, address, code }) => {
			const quarter = Math.floor(at / quarterHour);
			for (const scope of scopesOf(campaign))
				bounces.add([scope, quarter, domainOf(address), type, code ?? ''], [1]);
		},
		moveBounced: (before, after) => {
			addBounced(before, -1);
			addBounced(after, 1);
		},
		write: () => {
			addLast();
			days.write(sql, addToDay);
			quarters.write(sql, addToQuarter);
			clicks.write(sql, addToLink);
			bounces.write(sql, addToBounces);
			bounced.write(sql, addToBounced);
		},
	};
}

/** Stands in `bounced_figures` and `deleted_bounced` for a quarter of an hour that never came. */
export const never = -1;

function quarterOrNever(at: Micros | null): number {
	return at === null ? never : Math.floor(at / quarterHour);
}

export function quartersOf({ from, to }: { from: Day; to: Day }, zone: string): readonly [number, number] {
	return [
		from <= '1970-01-01' ? 0 : firstQuarterOf(from, zone),
		// There is no day after the last one; in any zone it is over within two days of its midnight in UTC.
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

/** Remembers the last day: finding it costs as much as the rest of counting, and it is mostly the same. */
function dayFinder(zone: string): (quarter: number) => Day {
	let last = { quarter: Number.NaN, day: '' };
	return (quarter) => {
		if (quarter !== last.quarter) last = { quarter, day: dayOf(quarter * quarterHour, zone) };
		return last.day;
	};
}

type QuarterKey = [scope: string, quarter: number, type: string, audience: string, shard: number];

const sliceRows = 10_000;

/** Adds up the days anew, in the zone of the settings: each quarter of an hour lies within one. */
export async function sumDays(sql: Sql): Promise<void> {
	sql.write('DELETE FROM daily_figures');
	const days = createCounts();
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
			if (type !== 'COMPLAINED') days.add([scope, dayAt(quarter), type, audience], [by]);
		days.write(sql, addToDay);
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

function createCounts() {
	const counts = new Map<string, { key: Key; by: number[] }>();
	return {
		add: (key: Key, by: readonly number[]) => {
			const name = key.join('\0');
			const entry = counts.get(name) ?? { key, by: by.map(() => 0) };
			counts.set(name, { key, by: entry.by.map((sum, index) => sum + (by[index] ?? 0)) });
		},
		write: (sql: Sql, text: string) => {
			// In one order, so that two writers of the same rows wait for each other instead of both.
			const named = [...counts].sort(([one], [other]) => (one < other ? -1 : 1));
			for (const [, { key, by }] of named)
				if (by.some((sum) => sum !== 0)) sql.write(text, [...key, sql.shard, ...by]);
			counts.clear();
		},
	};
}

/** A statement that adds to counts in shards; its values are the key, the shard and the sums. */
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
