import type { CampaignFigures } from '../../../api/campaigns.js';
import { type Day, dayOf, offsetOf } from '../../../api/datetime.js';
import { type EventType, eventTypes, type Uuid } from '../../../api/records.js';
import type { BounceCounts } from '../../../api/reports.js';
import { type Audience, hasAudiences } from '../../../engine/rules/outcomes.js';
import type { Command, Operations } from '../../operations.js';
import type { DetailFigures, LinkFigures, ListFigures, ReportFigures } from '../../store.js';
import { exists, type Sql } from '../sql.js';
import { perDay, quarterHour, quartersOf, timeZone, total } from './tally.js';

const maxContents = 200;
const maxLinks = 10_000;
const shownHours = 72;
const shownDomains = 20;
const shownCodes = 50;
const shownLists = 10;

export function createReports(sql: Sql) {
	return {
		linkFigures: async ({ campaign }) => {
			if (!(await isCampaign(sql, campaign))) return null;
			return {
				contents: await sql.all<LinkFigures['contents'][number]>(
					`SELECT s.content_sha256 AS sha256, min(s.id) AS submission
					FROM submissions s
					LEFT JOIN (
						SELECT content_sha256, sum(clicks) AS clicks
						FROM link_figures
						WHERE campaign = ? AND audience = 'all'
						GROUP BY content_sha256
					) f ON f.content_sha256 = s.content_sha256
					WHERE s.campaign = ?
					GROUP BY s.content_sha256
					ORDER BY max(coalesce(f.clicks, 0)) DESC, min(s.seq)
					LIMIT ?`,
					[campaign, campaign, maxContents],
				),
				figures: await sql.all<LinkFigures['figures'][number]>(
					`SELECT content_sha256 AS sha256, link, audience, sum(clicks) AS clicks, sum(messages) AS messages
					FROM link_figures
					WHERE campaign = ?
					GROUP BY content_sha256, link, audience
					ORDER BY clicks DESC, sha256, link, audience
					LIMIT ?`,
					[campaign, maxLinks],
				),
			};
		},
		reportDetails: async ({ lists: hasLists, ...range }) => {
			const zone = await timeZone(sql);
			const scope = range.campaign ?? total;
			const spans = spansOf(range, zone);
			const bounds = quartersOf(range, zone);
			const domains = await bouncesBy(sql, 'domain', scope, bounds);
			const shown = domains.slice(0, shownDomains);
			const week: DetailFigures['week'] = [];
			for (const span of spans) week.push(...(await countHours(sql, scope, span, weekHour)));
			return {
				time_zone: zone,
				...(await countBounced(sql, { ...range, tag: null }, zone)),
				days: await dailyFigures(sql, range),
				hours: await hoursOf(sql, scope, spans),
				week,
				domains: shown,
				other_domains: domains.length - shown.length,
				codes: (await bouncesBy(sql, 'code', scope, bounds)).slice(0, shownCodes),
				lists: hasLists ? await listsOf(sql, spans) : null,
			};
		},
		campaignLife: async ({ campaign }) => {
			if (!(await isCampaign(sql, campaign))) return null;
			const row = await sql.get<{ from: Day | null; to: Day | null }>(
				`SELECT min(day) AS "from", max(day) AS "to"
				FROM (
					SELECT day
					FROM daily_figures
					WHERE scope = ? AND type <> 'COMPLAINED'
					GROUP BY day, type, audience
					HAVING sum(count) > 0
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

/** A range of quarters of an hour in UTC, both ends included. `ahead`: the UTC offset of local time, in quarters. */
interface Span {
	from: number;
	to: number;
	ahead: number;
}

function spansOf(range: { from: string; to: string }, zone: string): Span[] {
	const [first, last] = quartersOf(range, zone);
	const aheadAt = (quarter: number) => offsetOf(quarter * quarterHour, zone) / quarterHour;
	const spans: Span[] = [];
	const add = (from: number, to: number) => {
		const ahead = aheadAt(from);
		const before = spans.at(-1);
		if (before?.ahead === ahead) before.to = to;
		else spans.push({ from, to, ahead });
	};
	for (let from = first; from <= last; from += perDay) {
		const to = Math.min(from + perDay - 1, last);
		if (aheadAt(from) === aheadAt(to)) add(from, to);
		else for (let quarter = from; quarter <= to; quarter++) add(quarter, quarter);
	}
	return spans;
}

function dayText(quarter: number): string {
	return new Date(Math.floor(quarter / perDay) * 86_400_000).toISOString().slice(0, 10);
}

async function hoursOf(sql: Sql, scope: string, spans: readonly Span[]): Promise<DetailFigures['hours']> {
	const begin = await sql.number(
		`SELECT coalesce(min(quarter), 0)
		FROM quarter_figures
		WHERE scope = ? AND quarter BETWEEN ? AND ? AND type = 'SENT' AND count > 0`,
		[scope, spans[0]?.from ?? 0, spans.at(-1)?.to ?? 0],
	);
	const hours: DetailFigures['hours'] = [];
	for (const one of begin === 0 ? [] : spans) {
		const from = begin - ((begin + one.ahead) % 4);
		const cut = { ...one, from: Math.max(one.from, from), to: Math.min(one.to, from + 4 * shownHours - 1) };
		if (cut.from <= cut.to) hours.push(...(await countHours(sql, scope, cut, localHour)));
	}
	return hours;
}

/** Hours since 1970 in local time. SQLite binds JavaScript numbers as REAL, so the cast drops the fraction. */
const localHour = 'CAST((quarter + ?) / 4 AS BIGINT)';
const weekHour = `(${localHour} + 72) % 168`;

async function countHours(
	sql: Sql,
	scope: string,
	{ from, to, ahead }: Span,
	hour: string,
): Promise<DetailFigures['hours']> {
	return await sql.all<DetailFigures['hours'][number]>(
		`SELECT ${hour} AS hour, type, audience, sum(count) AS count
		FROM quarter_figures
		WHERE scope = ? AND quarter BETWEEN ? AND ?
		GROUP BY 1, type, audience
		HAVING sum(count) <> 0`,
		[ahead, scope, from, to],
	);
}

async function bouncesBy<K extends 'domain' | 'code'>(
	sql: Sql,
	column: K,
	scope: string,
	bounds: readonly [number, number],
): Promise<(Record<K, string> & BounceCounts)[]> {
	return await sql.all<Record<K, string> & BounceCounts>(
		`SELECT ${column}, sum(CASE type WHEN 'SOFTBOUNCED' THEN count ELSE 0 END) AS softbounced,
			sum(CASE type WHEN 'HARDBOUNCED' THEN count ELSE 0 END) AS hardbounced
		FROM bounce_figures
		WHERE scope = ? AND quarter BETWEEN ? AND ?
		GROUP BY ${column}
		ORDER BY sum(count) DESC, ${column}`,
		[scope, ...bounds],
	);
}

interface Change {
	list_id: number;
	quarter: number;
	kind: ListFigures['days'][number]['kind'];
	count: number;
	since: number;
}

/** Returns figures of the largest lists. `active` is the current count without the changes after the range. */
async function listsOf(sql: Sql, spans: readonly Span[]): Promise<ListFigures[]> {
	const begin = spans[0]?.from ?? 0;
	const end = spans.at(-1)?.to ?? 0;
	const lists = await sql.all<{ id: number; name: string; active: number }>(
		`SELECT id, name, coalesce(c.active, 0) AS active
		FROM lists
		LEFT JOIN (SELECT list_id, sum(active) AS active FROM list_counters GROUP BY list_id) c ON c.list_id = id
		ORDER BY 3 DESC, id
		LIMIT ?`,
		[shownLists],
	);
	const ids = lists.map(({ id }) => id);
	if (ids.length === 0) return [];
	const among = ids.map(() => '?').join(', ');
	const added = await sql.all<Change>(
		`SELECT list_id, quarter, 'added' AS kind, sum(count) AS count, 0 AS since
		FROM list_joined
		WHERE list_id IN (${among}) AND quarter >= ?
		GROUP BY list_id, quarter
		HAVING sum(count) > 0`,
		[...ids, begin],
	);
	const isLater = ({ quarter }: Change) => quarter > end;
	const counted = `SELECT list_id, CAST(? AS BIGINT) AS quarter, 'added' AS kind, count(*) AS count, 1 AS since
		FROM subscribers
		WHERE list_id IN (${among}) AND created_at >= ? AND is_active = 1
		GROUP BY list_id`;
	const later = added.some(isLater)
		? await sql.all<Change>(counted, [end + 1, ...ids, (end + 1) * quarterHour])
		: [];
	const changes = [
		...added.filter((one) => !isLater(one)),
		...later,
		...(await departures(sql, ids, { begin, end })),
	];
	const dayAt = (quarter: number) => dayText(quarter + (spans.find(({ to }) => quarter <= to)?.ahead ?? 0));
	return lists.map(({ id, name, active }) => {
		const own = changes.filter(({ list_id }) => list_id === id);
		const days = own
			.filter((one) => !isLater(one))
			.map(({ quarter, kind, count }) => ({ day: dayAt(quarter), kind, count }));
		return {
			id,
			name,
			active: own.filter(isLater).reduce((sum, { count, since }) => sum - since * count, active),
			days,
		};
	});
}

/** Counts an inactive subscriber on the day of the first lasting suppression or, if later, on the day of joining. */
async function departures(
	sql: Sql,
	ids: readonly number[],
	{ begin, end }: { begin: number; end: number },
): Promise<Change[]> {
	const kinds = ['unsubscribed', 'bounced', 'left'] as const;
	const rows = await sql.all<Omit<Change, 'kind'> & { kind: number }>(
		`SELECT list_id, stopped / ${quarterHour} AS quarter, kind, count(*) AS count,
			CASE WHEN created_at < ? THEN -1 ELSE 0 END AS since
		FROM (
			SELECT s.list_id, s.created_at,
				CASE WHEN min(p.created_at) < s.created_at THEN s.created_at ELSE min(p.created_at) END AS stopped,
				min(CASE p.reason
					WHEN 'UNSUBSCRIBED' THEN 0
					WHEN 'HARDBOUNCED' THEN 1
					WHEN 'SOFTBOUNCED' THEN 1
					ELSE 2 END) AS kind
			FROM suppressions p
			JOIN subscribers s ON s.email_key = p.email_key AND (p.list_id = 0 OR p.list_id = s.list_id)
			WHERE p.expires_at IS NULL AND s.is_active = 0 AND s.list_id IN (${ids.map(() => '?').join(', ')})
			GROUP BY s.id, s.list_id, s.created_at
		) AS gone
		WHERE stopped >= ?
		GROUP BY 1, 2, 3, 5`,
		[(end + 1) * quarterHour, ...ids, begin * quarterHour],
	);
	return rows.map((change) => ({ ...change, kind: kinds[change.kind] ?? 'left' }));
}

type Query = Command<'reportFigures'>;

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

async function isCampaign(sql: Sql, campaign: Uuid): Promise<boolean> {
	const known = 'SELECT 1 FROM submissions WHERE campaign = ? UNION ALL SELECT 1 FROM campaigns WHERE id = ?';
	return await exists(sql, known, [campaign, campaign]);
}

async function dailyFigures(
	sql: Sql,
	{ from, to, campaign }: Pick<Query, 'from' | 'to' | 'campaign'>,
): Promise<DetailFigures['days']> {
	return await sql.all<DetailFigures['days'][number]>(
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
	return (await dailyFigures(sql, query)).flatMap(({ day, type, audience, count }) => {
		if (type === 'COMPLAINED') return [];
		return audience === (query.human && hasAudiences(type) ? 'human' : 'all') ? [{ day, type, count }] : [];
	});
}

async function countBounced(
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
			-- Uses the index bounced_figures_soft.
			SELECT sent, campaign, tag, count FROM bounced_figures
			WHERE soft BETWEEN ? AND ? AND soft >= 0 AND hard NOT BETWEEN ? AND ?
		) b
		WHERE (${of} campaign = ?) AND (${of} tag = ?)`,
		[...range, ...range, ...range, ...range, campaign, campaign, tag, tag],
	);
	return row ?? { bounced: 0, neverSent: 0 };
}

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
