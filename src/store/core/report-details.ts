/** Figures of reports beyond days: by hour, by link, bounces by domain and code. Reads only rows of figures. */
import { daysBetween, microsPerDay, offsetOf } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { BounceCounts } from '../../api/reports.js';
import type { Operations } from '../operations.js';
import type { DetailFigures, LinkFigures } from '../reports.js';
import type { Day } from '../store.js';
import { countBounced, isCampaign } from './figures.js';
import type { Sql } from './sql.js';
import { quarterHour, timeZone, total } from './tally.js';

/** A campaign has one content, one of requests has many. */
const maxContents = 200;
const maxLinks = 10_000;

export function createReportDetails(sql: Sql) {
	return {
		linkFigures: ({ campaign }) => (isCampaign(sql, campaign) ? linkFigures(sql, campaign) : null),
		reportDetails: (range) => reportDetails(sql, range),
	} satisfies Partial<Operations>;
}

interface Range {
	from: Day;
	to: Day;
	campaign: Uuid | null;
}

function reportDetails(sql: Sql, range: Range): DetailFigures {
	const zone = timeZone(sql);
	const scope = range.campaign ?? total;
	const spans = spansOf(range, zone);
	const bounds = [spans[0]?.from ?? 0, spans.at(-1)?.to ?? 0] as const;
	return {
		time_zone: zone,
		...countBounced(sql, { ...range, tag: null, zone }),
		days: daysOf(sql, scope, range, spans),
		hours: hoursOf(sql, scope, spans),
		week: weekOf(sql, scope, spans),
		...domainsOf(sql, scope, bounds),
		codes: bouncesBy(sql, 'code', scope, bounds).slice(0, shownCodes),
	};
}

/** Quarters of an hour in UTC, both ends inclusive, while the clocks are `ahead` by so many quarters. */
interface Span {
	from: number;
	to: number;
	ahead: number;
}

const perDay = microsPerDay / quarterHour;

/** The days of a zone, cut where its clocks change. */
function spansOf({ from, to }: Range, zone: string): Span[] {
	const first = daysBetween('1970-01-01', from) * perDay;
	const end = daysBetween('1970-01-01', to) * perDay + perDay;
	const aheadAt = (quarter: number) => offsetOf(quarter * quarterHour, zone) / quarterHour;
	const spans: Span[] = [];
	const add = (quarter: number, length: number, ahead: number) => {
		const begin = Math.max(quarter, first - ahead);
		const last = Math.min(quarter + length, end - ahead) - 1;
		const before = spans.at(-1);
		if (begin > last) return;
		if (before?.ahead === ahead && before.to + 1 === begin) before.to = last;
		else spans.push({ from: begin, to: last, ahead });
	};
	// A day of any zone lies within those of UTC around it.
	for (let day = first - perDay; day < end + perDay; day += perDay) {
		const [begin, last] = [aheadAt(day), aheadAt(day + perDay - 1)];
		if (begin === last) add(day, perDay, begin);
		else for (let quarter = day; quarter < day + perDay; quarter++) add(quarter, 1, aheadAt(quarter));
	}
	return spans;
}

/** Of complaints there are no daily figures. */
function daysOf(sql: Sql, scope: string, { from, to }: Range, spans: readonly Span[]): DetailFigures['days'] {
	const daily = sql.all<DetailFigures['days'][number]>(
		`SELECT day, type, audience, sum(count) AS count
		FROM daily_figures
		WHERE scope = ? AND day BETWEEN ? AND ?
		GROUP BY day, type, audience
		HAVING sum(count) > 0`,
		scope,
		from,
		to,
	);
	for (const { from, to, ahead } of spans) {
		const complaints = sql.all<{ local: number; count: number }>(
			`SELECT (quarter + ?) / ${perDay} AS local, sum(count) AS count
			FROM quarter_figures
			WHERE scope = ? AND quarter BETWEEN ? AND ? AND type = 'COMPLAINED'
			GROUP BY 1`,
			ahead,
			scope,
			from,
			to,
		);
		for (const { local, count } of complaints) {
			const day = new Date(local * 86_400_000).toISOString().slice(0, 10);
			daily.push({ day, type: 'COMPLAINED', audience: 'all', count });
		}
	}
	return daily;
}

/** The part of a chart by hour. */
const shownHours = 72;

function hoursOf(sql: Sql, scope: string, spans: readonly Span[]): DetailFigures['hours'] {
	const [span] = spans;
	const last = spans.at(-1);
	if (span === undefined || last === undefined) return [];
	const begin = sql.number(
		`SELECT coalesce(min(quarter), 0)
		FROM quarter_figures
		WHERE scope = ? AND quarter BETWEEN ? AND ? AND type = 'SENT' AND count > 0`,
		scope,
		span.from,
		last.to,
	);
	if (begin === 0) return [];
	const hours: DetailFigures['hours'] = [];
	for (const one of spans) {
		// From the beginning of its hour.
		const from = begin - ((begin + one.ahead) % 4);
		const cut = { ...one, from: Math.max(one.from, from), to: Math.min(one.to, from + 4 * shownHours - 1) };
		if (cut.from <= cut.to) hours.push(...countHours(sql, scope, cut, localHour));
	}
	return hours;
}

function weekOf(sql: Sql, scope: string, spans: readonly Span[]): DetailFigures['week'] {
	const week: DetailFigures['week'] = [];
	for (const span of spans) week.push(...countHours(sql, scope, span, weekHour));
	return week;
}

/** Hours since 1970 by the clocks of the zone, and hours of the week: that day was a Thursday. */
const localHour = '(quarter + ?) / 4';
const weekHour = '((quarter + ?) / 4 + 72) % 168';

function countHours(
	sql: Sql,
	scope: string,
	{ from, to, ahead }: Span,
	hour: string,
): DetailFigures['hours'] {
	return sql.all<DetailFigures['hours'][number]>(
		`SELECT ${hour} AS hour, type, audience, sum(count) AS count
		FROM quarter_figures
		WHERE scope = ? AND quarter BETWEEN ? AND ?
		GROUP BY 1, type, audience
		HAVING sum(count) <> 0`,
		ahead,
		scope,
		from,
		to,
	);
}

const shownDomains = 20;
const shownCodes = 50;

function domainsOf(
	sql: Sql,
	scope: string,
	bounds: readonly [number, number],
): Pick<DetailFigures, 'domains' | 'other_domains'> {
	const all = bouncesBy(sql, 'domain', scope, bounds);
	const domains = all.slice(0, shownDomains);
	return { domains, other_domains: all.length - domains.length };
}

/** The most first. */
function bouncesBy<K extends 'domain' | 'code'>(
	sql: Sql,
	column: K,
	scope: string,
	bounds: readonly [number, number],
): (Record<K, string> & BounceCounts)[] {
	return sql.all<Record<K, string> & BounceCounts>(
		`SELECT ${column}, sum(CASE type WHEN 'SOFTBOUNCED' THEN count ELSE 0 END) AS softbounced,
			sum(CASE type WHEN 'HARDBOUNCED' THEN count ELSE 0 END) AS hardbounced
		FROM bounce_figures
		WHERE scope = ? AND quarter BETWEEN ? AND ?
		GROUP BY ${column}
		ORDER BY sum(count) DESC, ${column}`,
		scope,
		...bounds,
	);
}

function linkFigures(sql: Sql, campaign: string): LinkFigures {
	return {
		contents: sql.all<LinkFigures['contents'][number]>(
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
			campaign,
			campaign,
			maxContents,
		),
		figures: sql.all<LinkFigures['figures'][number]>(
			`SELECT content_sha256 AS sha256, link, audience, sum(clicks) AS clicks, sum(messages) AS messages
			FROM link_figures
			WHERE campaign = ?
			GROUP BY content_sha256, link, audience
			ORDER BY clicks DESC, sha256, link, audience
			LIMIT ?`,
			campaign,
			maxLinks,
		),
	};
}
