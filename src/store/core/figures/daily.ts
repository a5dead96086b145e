import type { CampaignFigures } from '../../../api/campaigns.js';
import { dayOf } from '../../../api/datetime.js';
import { type EventType, eventTypes, type Uuid } from '../../../api/records.js';
import { type Audience, hasAudiences } from '../../../engine/rules/outcomes.js';
import type { Command, Operations } from '../../operations.js';
import type { ReportFigures } from '../../reports.js';
import type { Day } from '../../store.js';
import { exists, type Sql } from '../sql.js';
import { quarterHour, quartersOf, timeZone, total } from './tally.js';

type Query = Command<'reportFigures'>;

export function createFigures(sql: Sql) {
	return {
		campaignLife: async ({ campaign }) => {
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
		},
		reportFigures: async (query) => {
			const zone = await timeZone(sql);
			const daily =
				query.tag === null ? await reportOfDays(sql, query) : await reportOfTag(sql, query, query.tag, zone);
			const sent = daily.reduce((sum, { type, count }) => (type === 'SENT' ? sum + count : sum), 0);
			return { daily, attempted: sent + (await countBounced(sql, query, zone)).neverSent };
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
	const known = 'SELECT 1 FROM submissions WHERE campaign = ? UNION ALL SELECT 1 FROM campaigns WHERE id = ?';
	return await exists(sql, known, [campaign, campaign]);
}

export interface DailyRow {
	day: Day;
	type: EventType;
	audience: Audience;
	count: number;
}

export async function dailyFigures(
	sql: Sql,
	{ from, to, campaign }: Pick<Query, 'from' | 'to' | 'campaign'>,
): Promise<DailyRow[]> {
	return await sql.all<DailyRow>(
		`SELECT day, type, audience, sum(count) AS count
		FROM daily_figures
		WHERE scope = ? AND day BETWEEN ? AND ?
		GROUP BY day, type, audience
		HAVING sum(count) > 0
		ORDER BY day, type`,
		[campaign ?? total, from, to],
	);
}

async function reportOfDays(sql: Sql, query: Query): Promise<ReportFigures['daily']> {
	return (await dailyFigures(sql, query))
		.filter(({ type, audience }) => audience === (query.human && hasAudiences(type) ? 'human' : 'all'))
		.map(({ day, type, count }) => ({ day, type, count }));
}

export async function countBounced(
	sql: Sql,
	{ campaign, tag, ...days }: Pick<Query, 'from' | 'to' | 'campaign' | 'tag'>,
	zone: string,
): Promise<{ bounced: number; neverSent: number }> {
	const range = quartersOf(days, zone);
	const of = `CAST(? AS TEXT) IS NULL OR`;
	const row = await sql.get<{ bounced: number; neverSent: number }>(
		`SELECT coalesce(sum(count), 0) AS bounced,
			coalesce(sum(CASE WHEN sent BETWEEN ? AND ? THEN 0 ELSE count END), 0) AS "neverSent"
		FROM (
			SELECT sent, campaign, tag, count FROM bounced_figures WHERE hard BETWEEN ? AND ?
			UNION ALL
			-- bounced_figures_soft
			SELECT sent, campaign, tag, count FROM bounced_figures
			WHERE soft BETWEEN ? AND ? AND soft >= 0 AND hard NOT BETWEEN ? AND ?
		) b
		WHERE (${of} campaign = ?) AND (${of} tag = ?)`,
		[...range, ...range, ...range, ...range, campaign, campaign, tag, tag],
	);
	return row ?? { bounced: 0, neverSent: 0 };
}

/** Distinct messages by the day of the first such event; walks submissions_of_tag and their messages. */
async function reportOfTag(
	sql: Sql,
	{ from, to, campaign, human }: Query,
	tag: string,
	zone: string,
): Promise<ReportFigures['daily']> {
	const scope = 's.tag = ? AND (CAST(? AS TEXT) IS NULL OR s.campaign = ?)';
	const values = [tag, campaign, campaign];
	const isHuman = human ? 1 : 0;
	const ofTag = 'FROM submissions s JOIN messages m ON m.submission_seq = s.seq';
	const rows = await sql.tuples<[type: EventType, quarter: number, count: number]>(
		// Grouped by quarter of an hour, which is one day in every zone: few rows leave the database.
		`SELECT 'CREATED', coalesce(g.released_at, m.created_at) / ${quarterHour}, count(*)
		${ofTag}
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE ${scope} AND (s.campaign_seq IS NULL OR g.released_at IS NOT NULL)
		GROUP BY 2
		UNION ALL
		SELECT 'SENT', m.sent_at / ${quarterHour}, count(*) ${ofTag} WHERE ${scope} AND m.sent_at IS NOT NULL GROUP BY 2
		UNION ALL
		SELECT type, first_at / ${quarterHour}, count(*)
		FROM (
			SELECT f.type, min(f.first_at) AS first_at
			${ofTag}
			JOIN message_firsts f ON f.message_id = m.id
			WHERE ${scope} AND (f.machine = 0 OR ? = 0 OR f.type NOT IN (${audienceTypes}))
			GROUP BY m.id, f.type
		) f
		GROUP BY 1, 2
		UNION ALL
		SELECT s.type, s.quarter, sum(s.count)
		FROM deleted_figures s
		WHERE ${scope} AND s.audience = CASE WHEN ? = 1 AND s.type IN (${audienceTypes}) THEN 'human' ELSE 'all' END
		GROUP BY 1, 2`,
		[...values, ...values, ...values, isHuman, ...values, isHuman],
	);
	const counts = new Map<string, ReportFigures['daily'][number]>();
	for (const [type, quarter, count] of rows) {
		const day = dayOf(quarter * quarterHour, zone);
		const known = counts.get(`${day} ${type}`)?.count ?? 0;
		counts.set(`${day} ${type}`, { day, type, count: known + count });
	}
	return [...counts.values()]
		.filter(({ day }) => day >= from && day <= to)
		.sort((a, b) => (a.day + a.type < b.day + b.type ? -1 : 1));
}

const audienceTypes = eventTypes
	.filter(hasAudiences)
	.map((type) => `'${type}'`)
	.join(', ');
