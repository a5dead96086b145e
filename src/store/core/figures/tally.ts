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
export class Tally {
	readonly #sql: Sql;
	readonly #dayAt: (quarter: number) => Day;
	readonly #days = new Counts(addToDay);
	readonly #quarters = new Counts(addToQuarter);
	readonly #clicks = new Counts(addToLink);
	readonly #bounces = new Counts(addToBounces);
	readonly #bounced = new Counts(addToBounced);
	/** A hundred messages mostly share one figure: comparing it costs less than its keys. */
	#last: (Omit<Figure, 'at' | 'by'> & { quarter: number; by: number }) | null = null;

	constructor(sql: Sql, zone: string) {
		this.#sql = sql;
		this.#dayAt = dayFinder(zone);
	}

	add({ at, campaign, type, audience, by = 1 }: Figure): void {
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

	/** One more click on a link; `messages`: 1 for the first of its message by this audience. */
	addClick(key: readonly [campaign: Uuid, content: string, link: number, Audience], messages: number): void {
		this.#clicks.add(key, [1, messages]);
	}

	addBounce({ at, campaign, type }: Omit<Figure, 'audience'>, address: string, code: string | null): void {
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
			if (type !== 'COMPLAINED') this.#days.add([scope, this.#dayAt(quarter), type, audience], [by]);
			this.#quarters.add([scope, quarter, type, audience], [by]);
		}
		this.#last = null;
	}
}

export async function createTally(sql: Sql): Promise<Tally> {
	return new Tally(sql, await timeZone(sql));
}

/** Stands in `bounced_figures` and `deleted_bounced` for a quarter of an hour that never came. */
export const never = -1;

function quarterOrNever(at: Micros | null): number {
	return at === null ? never : Math.floor(at / quarterHour);
}

export function quartersOf({ from, to }: { from: Day; to: Day }, zone: string): readonly [number, number] {
	return [
		from <= '1970-01-01' ? 0 : firstQuarterOf(from, zone),
		// The last day is over within two days of its midnight in UTC, in any zone.
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
			if (type !== 'COMPLAINED') days.add([scope, dayAt(quarter), type, audience], [by]);
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

	/** In one order, so that two writers of the same rows wait for each other instead of both. */
	write(sql: Sql): void {
		const named = [...this.#counts].sort(([one], [other]) => (one < other ? -1 : 1));
		for (const [, { key, by }] of named)
			if (by.some((sum) => sum !== 0)) sql.write(this.#text, [...key, sql.shard, ...by]);
		this.#counts.clear();
	}
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
