/** Daily figures: changed with the rows they count, so that a report of any range is a sum. */
import { dayOf, type Micros } from '../../api/datetime.js';
import type { EventType, Uuid } from '../../api/records.js';
import { type Audience, hasAudiences } from '../../engine/rules/events.js';
import type { Day } from '../store.js';
import { createNotices, type Notices } from './notices.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';
import { reportOfTag } from './tag-figures.js';

/** The scope of everything; any other scope is a campaign. */
const total = '';

/** Whole quarter hours share a day in every zone of our times. */
const quarterHour: Micros = 900_000_000;

/** Collects what one operation counts, so that a hundred messages write one row a (scope, day, type). */
export interface Tally {
	add(figure: { at: Micros; campaign: Uuid | null; type: EventType; audience: Audience; by?: number }): void;
	write(): void;
	/** Whoever is to be told of what is counted. */
	readonly notices: Notices;
}

/** For one operation, in its transaction: nothing is counted before `write`. Days are of the zone that is set now. */
export function createTally(sql: Sql): Tally {
	const zone = timeZone(sql);
	const counts = new Map<string, { key: readonly string[]; by: number }>();
	// What is counted together mostly happened together, and a day costs as much as the rest of counting.
	let last = { quarter: Number.NaN, day: '' };
	const dayAt = (at: Micros): Day => {
		const quarter = Math.floor(at / quarterHour);
		if (quarter !== last.quarter) last = { quarter, day: dayOf(at, zone) };
		return last.day;
	};
	const addTo = (key: readonly string[], by: number) => {
		const name = key.join('\0');
		const entry = counts.get(name) ?? { key, by: 0 };
		counts.set(name, { key, by: entry.by + by });
	};
	return {
		add: ({ at, campaign, type, audience, by = 1 }) => {
			const day = dayAt(at);
			addTo([total, day, type, audience], by);
			if (campaign !== null) addTo([campaign, day, type, audience], by);
		},
		write: () => {
			for (const { key, by } of counts.values()) if (by !== 0) addFigure(sql, key, by);
			counts.clear();
		},
		notices: createNotices(sql),
	};
}

/** The zone whose days the figures count. */
export function timeZone(sql: Sql): string {
	const row = sql.get<{ value: string }>("SELECT value FROM settings WHERE name = 'time_zone'");
	return row?.value ?? 'UTC';
}

/** Reads alone. With a tag messages are counted, as no figures are kept of tags; else daily sums are added up. */
export function createFigures(sql: Sql): Pick<Operations, 'reportFigures'> {
	return {
		reportFigures: ({ from, to, campaign, tag, human }) => {
			if (tag !== null) return reportOfTag(sql, { from, to, campaign, tag, human, zone: timeZone(sql) });
			return sql
				.all<{ day: Day; type: EventType; audience: Audience; count: number }>(
					`SELECT day, type, audience, sum(count) AS count
					FROM daily_figures
					WHERE scope = ? AND day BETWEEN ? AND ?
					GROUP BY day, type, audience
					HAVING sum(count) > 0
					ORDER BY day, type`,
					campaign ?? total,
					from,
					to,
				)
				.filter(({ type, audience }) => audience === (human && hasAudiences(type) ? 'human' : 'all'))
				.map(({ day, type, count }) => ({ day, type, count }));
		},
	};
}

interface Counted {
	campaign: Uuid | null;
	type: EventType;
	audience: Audience;
	quarter: number;
	count: number;
}

/** Counts everything anew by the days of a zone. */
export function recountFigures(sql: Sql, zone: string): void {
	sql.run('DELETE FROM daily_figures');
	const tally = createTally(sql);
	if (timeZone(sql) !== zone) throw new Error('the zone is a setting: store it first');
	for (const { quarter, campaign, type, audience, count } of countEverything(sql)) {
		tally.add({ at: quarter * quarterHour, campaign, type, audience, by: count });
	}
	tally.write();
}

function countEverything(sql: Sql): Counted[] {
	return sql.all<Counted>(
		`SELECT campaign, 'CREATED' AS type, 'all' AS audience, at / ${quarterHour} AS quarter, count(*) AS count
		FROM (
			SELECT s.campaign, coalesce(g.released_at, m.created_at) AS at
			FROM messages m
			JOIN submissions s ON s.seq = m.submission_seq
			LEFT JOIN mailings g ON g.seq = s.mailing_seq
			WHERE s.mailing_seq IS NULL OR g.released_at IS NOT NULL
		)
		GROUP BY campaign, quarter
		UNION ALL
		SELECT s.campaign, 'SENT', 'all', m.sent_at / ${quarterHour} AS quarter, count(*)
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.sent_at IS NOT NULL
		GROUP BY s.campaign, quarter
		UNION ALL
		SELECT s.campaign, f.type, f.audience, f.first_at / ${quarterHour} AS quarter, count(*)
		FROM (
			SELECT message_id, type, 'all' AS audience, min(first_at) AS first_at
			FROM message_firsts
			GROUP BY message_id, type
			UNION ALL
			SELECT message_id, type, 'human', min(first_at)
			FROM message_firsts
			WHERE machine = 0
			GROUP BY message_id, type
		) f
		JOIN messages m ON m.id = f.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY s.campaign, f.type, f.audience, quarter`,
	);
}

function addFigure(sql: Sql, key: readonly string[], by: number): void {
	sql.run(
		`INSERT INTO daily_figures (scope, day, type, audience, shard, count)
		VALUES (?, ?, ?, ?, 0, ?)
		ON CONFLICT DO UPDATE SET count = count + excluded.count`,
		...key,
		by,
	);
}
