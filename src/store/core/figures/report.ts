/** Figures of reports beyond days: by hour, by link, bounces by domain and code. Only those of lists read more than rows of figures. */
import { offsetOf } from '../../../api/datetime.js';
import type { Uuid } from '../../../api/records.js';
import type { BounceCounts, Joined } from '../../../api/reports.js';
import type { Operations } from '../../operations.js';
import type { DetailFigures, LinkFigures, ListFigures } from '../../reports.js';
import type { Day } from '../../store.js';
import { listCounts } from '../list-counters.js';
import type { Sql } from '../sql.js';
import { isCampaign } from './daily.js';
import { countBounced } from './detail.js';
import { perDay, quarterHour, quartersOf, timeZone, total } from './tally.js';

/** A campaign has one content, one of requests has many. */
const maxContents = 200;
const maxLinks = 10_000;

export function createReportDetails(sql: Sql) {
	return {
		linkFigures: async ({ campaign }) =>
			(await isCampaign(sql, campaign)) ? await linkFigures(sql, campaign) : null,
		reportDetails: async ({ lists, ...range }) => {
			const details = await reportDetails(sql, range);
			return { ...details, lists: lists ? await listsOf(sql, spansOf(range, details.time_zone)) : null };
		},
	} satisfies Partial<Operations>;
}

interface Range {
	from: Day;
	to: Day;
	campaign: Uuid | null;
}

async function reportDetails(sql: Sql, range: Range): Promise<Omit<DetailFigures, 'lists'>> {
	const zone = await timeZone(sql);
	const scope = range.campaign ?? total;
	const spans = spansOf(range, zone);
	const bounds = quartersOf(range, zone);
	return {
		time_zone: zone,
		...(await countBounced(sql, { ...range, tag: null, zone })),
		days: await daysOf(sql, scope, range, spans),
		hours: await hoursOf(sql, scope, spans),
		week: await weekOf(sql, scope, spans),
		...(await domainsOf(sql, scope, bounds)),
		codes: (await bouncesBy(sql, 'code', scope, bounds)).slice(0, shownCodes),
	};
}

/** Quarters of an hour in UTC, both ends inclusive, while the clocks are `ahead` by so many quarters. */
interface Span {
	from: number;
	to: number;
	ahead: number;
}

/** The days of a zone, cut where its clocks change. */
function spansOf(range: Range, zone: string): Span[] {
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

async function daysOf(
	sql: Sql,
	scope: string,
	{ from, to }: Range,
	spans: readonly Span[],
): Promise<DetailFigures['days']> {
	const daily = await sql.all<DetailFigures['days'][number]>(
		`SELECT day, type, audience, sum(count) AS count
		FROM daily_figures
		WHERE scope = ? AND day BETWEEN ? AND ?
		GROUP BY day, type, audience
		HAVING sum(count) > 0`,
		[scope, from, to],
	);
	for (const { from, to, ahead } of spans) {
		const complaints = await sql.all<{ local: number; count: number }>(
			`SELECT (quarter + ?) / ${perDay} AS local, sum(count) AS count
			FROM quarter_figures
			WHERE scope = ? AND quarter BETWEEN ? AND ? AND type = 'COMPLAINED'
			GROUP BY 1`,
			[ahead, scope, from, to],
		);
		for (const { local, count } of complaints) {
			const day = new Date(local * 86_400_000).toISOString().slice(0, 10);
			daily.push({ day, type: 'COMPLAINED', audience: 'all', count });
		}
	}
	return daily;
}

const shownHours = 72;

async function hoursOf(sql: Sql, scope: string, spans: readonly Span[]): Promise<DetailFigures['hours']> {
	const [span] = spans;
	const last = spans.at(-1);
	if (span === undefined || last === undefined) return [];
	const begin = await sql.number(
		`SELECT coalesce(min(quarter), 0)
		FROM quarter_figures
		WHERE scope = ? AND quarter BETWEEN ? AND ? AND type = 'SENT' AND count > 0`,
		[scope, span.from, last.to],
	);
	if (begin === 0) return [];
	const hours: DetailFigures['hours'] = [];
	for (const one of spans) {
		const from = begin - ((begin + one.ahead) % 4);
		const cut = { ...one, from: Math.max(one.from, from), to: Math.min(one.to, from + 4 * shownHours - 1) };
		if (cut.from <= cut.to) hours.push(...(await countHours(sql, scope, cut, localHour)));
	}
	return hours;
}

async function weekOf(sql: Sql, scope: string, spans: readonly Span[]): Promise<DetailFigures['week']> {
	const week: DetailFigures['week'] = [];
	for (const span of spans) week.push(...(await countHours(sql, scope, span, weekHour)));
	return week;
}

/**
 * Hours since 1970 by the clocks of the zone, and hours of the week: that day was a Thursday. The cast: to SQLite every
 * number of JavaScript is a REAL one, whose quotient has a fraction.
 */
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

const shownDomains = 20;
const shownCodes = 50;

async function domainsOf(
	sql: Sql,
	scope: string,
	bounds: readonly [number, number],
): Promise<Pick<DetailFigures, 'domains' | 'other_domains'>> {
	const all = await bouncesBy(sql, 'domain', scope, bounds);
	const domains = all.slice(0, shownDomains);
	return { domains, other_domains: all.length - domains.length };
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

const shownLists = 10;

/** The largest lists. Those who came after the range, or left after it, are taken from the figures of today. */
async function listsOf(sql: Sql, spans: readonly Span[]): Promise<ListFigures[]> {
	const begin = spans[0]?.from ?? 0;
	const end = spans.at(-1)?.to ?? 0;
	const lists = await sql.all<{ id: number; name: string; active: number }>(
		`SELECT id, name, coalesce(c.active, 0) AS active
		FROM lists
		LEFT JOIN ${listCounts} c ON c.list_id = id
		ORDER BY 3 DESC, id
		LIMIT ?`,
		[shownLists],
	);
	const ids = lists.map(({ id }) => id);
	const added = await additions(sql, ids, begin);
	const later = added.some(({ quarter }) => quarter > end) ? await laterAdditions(sql, ids, end) : [];
	const changes = [
		...added.filter(({ quarter }) => quarter <= end),
		...later,
		...(await departures(sql, ids, { begin, end })),
	];
	return lists.map(({ id, name, active }) => {
		const own = changes.filter(({ list_id }) => list_id === id);
		const later = own.filter(({ quarter }) => quarter > end);
		const dayAt = (quarter: number) => {
			const ahead = spans.find(({ to }) => quarter <= to)?.ahead ?? 0;
			return new Date(Math.floor((quarter + ahead) / perDay) * 86_400_000).toISOString().slice(0, 10);
		};
		return {
			id,
			name,
			active: later.reduce((sum, { count, since }) => sum - since * count, active),
			days: own
				.filter(({ quarter }) => quarter <= end)
				.map(({ quarter, kind, count }) => ({ day: dayAt(quarter), kind, count })),
		};
	});
}

/** Of a list; `since`: the part of each that it has in the number of active ones. */
interface Change {
	list_id: number;
	quarter: number;
	kind: keyof Joined;
	count: number;
	since: number;
}

async function additions(sql: Sql, ids: readonly number[], begin: number): Promise<Change[]> {
	return await sql.all<Change>(
		`SELECT list_id, quarter, 'added' AS kind, sum(count) AS count, 0 AS since
		FROM list_joined
		WHERE list_id IN (${ids.map(() => '?').join(', ')}) AND quarter >= ?
		GROUP BY list_id, quarter
		HAVING sum(count) > 0`,
		[...ids, begin],
	);
}

/** Those who came after the range and are active now: most ranges end today. */
async function laterAdditions(sql: Sql, ids: readonly number[], end: number): Promise<Change[]> {
	return await sql.all<Change>(
		`SELECT list_id, CAST(? AS BIGINT) AS quarter, 'added' AS kind, count(*) AS count, 1 AS since
		FROM subscribers
		WHERE list_id IN (${ids.map(() => '?').join(', ')}) AND created_at >= ? AND is_active = 1
		GROUP BY list_id`,
		[end + 1, ...ids, (end + 1) * quarterHour],
	);
}

/** Inactive subscribers by their first lasting suppression. One who was suppressed before coming left at once. */
async function departures(
	sql: Sql,
	ids: readonly number[],
	{ begin, end }: { begin: number; end: number },
): Promise<Change[]> {
	const kinds = ['unsubscribed', 'bounced', 'left'] as const;
	return (
		await sql.all<Omit<Change, 'kind'> & { kind: number }>(
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
		)
	).map((change) => ({ ...change, kind: kinds[change.kind] ?? 'left' }));
}

async function linkFigures(sql: Sql, campaign: string): Promise<LinkFigures> {
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
}
