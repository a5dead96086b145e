/** The report of one tag: from the messages themselves, since figures are kept in total and by campaign only. */
import { dayOf, type Micros } from '../../api/datetime.js';
import { type EventType, eventTypes, type Uuid } from '../../api/records.js';
import { hasAudiences } from '../../engine/rules/events.js';
import type { Day } from '../store.js';
import type { Sql } from './sql.js';

export interface TagQuery {
	from: Day;
	to: Day;
	campaign: Uuid | null;
	tag: string;
	human: boolean;
	zone: string;
}

interface Instant {
	type: EventType;
	at: Micros;
	count: number;
}

/** Distinct messages by the day of the first such event; walks submissions_of_tag and their messages. */
export function reportOfTag(sql: Sql, query: TagQuery): { day: Day; type: EventType; count: number }[] {
	const counts = new Map<string, number>();
	for (const { type, at, count } of instants(sql, query)) {
		const key = `${dayOf(at, query.zone)} ${type}`;
		counts.set(key, (counts.get(key) ?? 0) + count);
	}
	return [...counts]
		.map(([key, count]) => ({ day: key.slice(0, 10), type: key.slice(11), count }))
		.filter(({ day }) => day >= query.from && day <= query.to)
		.sort((a, b) => (a.day + a.type < b.day + b.type ? -1 : 1))
		.flatMap(({ day, type, count }) => {
			const known = eventTypes.find((each) => each === type);
			return known === undefined ? [] : [{ day, type: known, count }];
		});
}

// Grouped by quarter hour, which is one day in every zone: rows of the answer, not messages, cross into here.
function instants(sql: Sql, { campaign, tag, human }: TagQuery): Instant[] {
	const scope = `s.tag = ? AND (? IS NULL OR s.campaign = ?)`;
	const values = [tag, campaign, campaign];
	const quarter = (at: string) => `${at} / 900000000 * 900000000`;
	const created = sql.all<Instant>(
		`SELECT 'CREATED' AS type, ${quarter('coalesce(g.released_at, m.created_at)')} AS at, count(*) AS count
		FROM submissions s
		JOIN messages m ON m.submission_seq = s.seq
		LEFT JOIN mailings g ON g.seq = s.mailing_seq
		WHERE ${scope} AND (s.mailing_seq IS NULL OR g.released_at IS NOT NULL)
		GROUP BY 2`,
		...values,
	);
	const sent = sql.all<Instant>(
		`SELECT 'SENT' AS type, ${quarter('m.sent_at')} AS at, count(*) AS count
		FROM submissions s
		JOIN messages m ON m.submission_seq = s.seq
		WHERE ${scope} AND m.sent_at IS NOT NULL
		GROUP BY 2`,
		...values,
	);
	const firsts = sql.all<Instant>(
		`SELECT type, ${quarter('first_at')} AS at, count(*) AS count
		FROM (
			SELECT f.type, min(f.first_at) AS first_at
			FROM submissions s
			JOIN messages m ON m.submission_seq = s.seq
			JOIN message_firsts f ON f.message_id = m.id
			WHERE ${scope} AND (f.machine = 0 OR ? = 0 OR f.type NOT IN (${audienceTypes}))
			GROUP BY m.id, f.type
		)
		GROUP BY 1, 2`,
		...values,
		human ? 1 : 0,
	);
	return [...created, ...sent, ...firsts];
}

const audienceTypes = eventTypes
	.filter(hasAudiences)
	.map((type) => `'${type}'`)
	.join(', ');
