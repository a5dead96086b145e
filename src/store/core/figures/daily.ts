/** The report from daily figures: any range is a sum. The report of a tag counts the messages. */
import type { CampaignFigures } from '../../../api/campaigns.js';
import { dayOf, type Micros } from '../../../api/datetime.js';
import { type EventType, eventTypes, type Uuid } from '../../../api/records.js';
import { type Audience, hasAudiences } from '../../../engine/rules/outcomes.js';
import type { Operations } from '../../operations.js';
import type { ReportFigures } from '../../reports.js';
import type { Day } from '../../store.js';
import { exists, type Sql } from '../sql.js';
import { countBounced } from './detail.js';
import { createTally, quarterHour, timeZone, total } from './tally.js';

interface ReportRange {
	from: Day;
	to: Day;
	campaign: Uuid | null;
	human: boolean;
}

/** Only reads. With a tag it counts messages, as there are no figures by tag; otherwise it adds up daily sums. */
export function createFigures(sql: Sql) {
	return {
		campaignLife: ({ campaign }) => campaignLife(sql, campaign),
		reportFigures: async (query) => {
			const zone = await timeZone(sql);
			const { tag } = query;
			const daily =
				tag === null ? await dailyFigures(sql, query) : await reportOfTag(sql, { ...query, tag, zone });
			const sent = daily.reduce((sum, { type, count }) => (type === 'SENT' ? sum + count : sum), 0);
			return { daily, attempted: sent + (await countBounced(sql, { ...query, zone })).neverSent };
		},
	} satisfies Partial<Operations>;
}

export async function figuresOf(sql: Sql, campaign: Uuid): Promise<CampaignFigures> {
	const rows = await sql.all<{ type: EventType; audience: Audience; count: number }>(
		`SELECT type, audience, sum(count) AS count
		FROM daily_figures
		WHERE scope = ?
		GROUP BY type, audience`,
		[campaign],
	);
	const counted = (type: EventType, audience: Audience = 'all') =>
		rows.find((row) => row.type === type && row.audience === audience)?.count ?? 0;
	return {
		created: counted('CREATED'),
		sent: counted('SENT'),
		opened: counted('OPENED', 'human'),
		machine_opened: counted('OPENED') - counted('OPENED', 'human'),
		clicked: counted('REDIRECTED', 'human'),
		machine_clicked: counted('REDIRECTED') - counted('REDIRECTED', 'human'),
		unsubscribed: counted('UNSUBSCRIBED'),
		softbounced: counted('SOFTBOUNCED'),
		hardbounced: counted('HARDBOUNCED'),
	};
}

export async function isCampaign(sql: Sql, campaign: Uuid): Promise<boolean> {
	// submissions_of_campaign; a campaign of requests has no submission before its first row.
	const known = 'SELECT 1 FROM submissions WHERE campaign = ? UNION ALL SELECT 1 FROM campaigns WHERE id = ?';
	return await exists(sql, known, [campaign, campaign]);
}

async function campaignLife(sql: Sql, campaign: Uuid): ReturnType<Operations['campaignLife']> {
	if (!(await isCampaign(sql, campaign))) return null;
	const row = await sql.get<{ from: Day | null; to: Day | null }>(
		`SELECT min(day) AS "from", max(day) AS "to"
		FROM (
			SELECT day FROM daily_figures WHERE scope = ? GROUP BY day, type, audience HAVING sum(count) > 0
		) d`,
		[campaign],
	);
	const { from = null, to = null } = row ?? {};
	return { days: from === null || to === null ? null : { from, to } };
}

async function dailyFigures(
	sql: Sql,
	{ from, to, campaign, human }: ReportRange,
): Promise<ReportFigures['daily']> {
	return (
		await sql.all<{ day: Day; type: EventType; audience: Audience; count: number }>(
			`SELECT day, type, audience, sum(count) AS count
			FROM daily_figures
			WHERE scope = ? AND day BETWEEN ? AND ?
			GROUP BY day, type, audience
			HAVING sum(count) > 0
			ORDER BY day, type`,
			[campaign ?? total, from, to],
		)
	)
		.filter(({ type, audience }) => audience === (human && hasAudiences(type) ? 'human' : 'all'))
		.map(({ day, type, count }) => ({ day, type, count }));
}

interface Counted {
	campaign: Uuid | null;
	type: EventType;
	audience: Audience;
	quarter: number;
	count: number;
}

export async function recountQuarters(sql: Sql): Promise<void> {
	sql.write("DELETE FROM quarter_figures WHERE type <> 'COMPLAINED'");
	const tally = await createTally(sql, 'quarters');
	for (const { quarter, campaign, type, audience, count } of await countEverything(sql)) {
		tally.add({ at: quarter * quarterHour, campaign, type, audience, by: count });
	}
	tally.write();
}

/** Messages and events by quarter of an hour, those that retention has deleted too, as the figures should have them. */
export async function countEverything(sql: Sql): Promise<Counted[]> {
	return await sql.all<Counted>(
		`SELECT campaign, type, audience, quarter, sum(count) AS count
		FROM (
			${countedRows(() => '')}
			UNION ALL
			SELECT tag, nullif(campaign, ''), type, audience, quarter, count FROM deleted_figures
		) e
		GROUP BY campaign, type, audience, quarter`,
	);
}

/** Counts by tag, campaign, type, audience and quarter. `only`: of the column of a message's id, as what follows a WHERE; four times. */
export function countedRows(only: (id: string) => string): string {
	return `SELECT tag, campaign, 'CREATED' AS type, 'all' AS audience, at / ${quarterHour} AS quarter, count(*) AS count
		FROM (
			SELECT s.tag, s.campaign, coalesce(g.released_at, m.created_at) AS at
			FROM messages m
			JOIN submissions s ON s.seq = m.submission_seq
			LEFT JOIN campaigns g ON g.seq = s.campaign_seq
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
export async function reportOfTag(
	sql: Sql,
	query: TagQuery,
): Promise<{ day: Day; type: EventType; count: number }[]> {
	const counts = new Map<string, number>();
	for (const { type, at, count } of await instants(sql, query)) {
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

// Groups by quarter of an hour, which is one day in every zone: result rows enter this process instead of messages.
async function instants(sql: Sql, { campaign, tag, human }: TagQuery): Promise<Instant[]> {
	const scope = `s.tag = ? AND (CAST(? AS TEXT) IS NULL OR s.campaign = ?)`;
	const values = [tag, campaign, campaign];
	const quarter = (at: string) => `${at} / 900000000 * 900000000`;
	const created = await sql.all<Instant>(
		`SELECT 'CREATED' AS type, ${quarter('coalesce(g.released_at, m.created_at)')} AS at, count(*) AS count
		FROM submissions s
		JOIN messages m ON m.submission_seq = s.seq
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE ${scope} AND (s.campaign_seq IS NULL OR g.released_at IS NOT NULL)
		GROUP BY 2`,
		values,
	);
	const sent = await sql.all<Instant>(
		`SELECT 'SENT' AS type, ${quarter('m.sent_at')} AS at, count(*) AS count
		FROM submissions s
		JOIN messages m ON m.submission_seq = s.seq
		WHERE ${scope} AND m.sent_at IS NOT NULL
		GROUP BY 2`,
		values,
	);
	const firsts = await sql.all<Instant>(
		`SELECT type, ${quarter('first_at')} AS at, count(*) AS count
		FROM (
			SELECT f.type, min(f.first_at) AS first_at
			FROM submissions s
			JOIN messages m ON m.submission_seq = s.seq
			JOIN message_firsts f ON f.message_id = m.id
			WHERE ${scope} AND (f.machine = 0 OR ? = 0 OR f.type NOT IN (${audienceTypes}))
			GROUP BY m.id, f.type
		) f
		GROUP BY 1, 2`,
		[...values, human ? 1 : 0],
	);
	const deleted = await sql.all<Instant>(
		`SELECT s.type, s.quarter * ${quarterHour} AS at, sum(s.count) AS count
		FROM deleted_figures s
		WHERE ${scope} AND s.audience = CASE WHEN ? = 1 AND s.type IN (${audienceTypes}) THEN 'human' ELSE 'all' END
		GROUP BY 1, 2`,
		[...values, human ? 1 : 0],
	);
	return [...created, ...sent, ...firsts, ...deleted];
}

const audienceTypes = eventTypes
	.filter(hasAudiences)
	.map((type) => `'${type}'`)
	.join(', ');
