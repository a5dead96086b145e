/**
 * Figures of links and of bounces against what they count. Erasures leave neither content nor address, and a bounce that is
 * told late keeps its quarter of an hour: sums are compared that both leave alone, and only what differs is counted anew.
 */

import type { Uuid } from '../../../api/records.js';
import type { Day } from '../../store.js';
import type { Sql } from '../sql.js';
import { never, quarterHour, quartersOf, total } from './tally.js';

const clicked = `FROM message_firsts f
	JOIN (SELECT 'all' AS audience, 1 AS machine UNION ALL SELECT 'human', 0) a ON f.machine <= a.machine
	JOIN messages m ON m.id = f.message_id
	JOIN submissions s ON s.seq = m.submission_seq
	WHERE f.type = 'REDIRECTED' AND f.link >= 0 AND s.campaign IS NOT NULL`;

/** `only`: of the column message_id, as what follows a WHERE. */
const bounced = (only = '') => `FROM (
		SELECT message_id, type, min(first_at) AS first_at
		FROM message_firsts
		WHERE type IN ('SOFTBOUNCED', 'HARDBOUNCED') ${only}
		GROUP BY message_id, type
	) f
	JOIN messages m ON m.id = f.message_id
	JOIN submissions s ON s.seq = m.submission_seq`;

type LinkKey = readonly [campaign: string, link: number, audience: string];
type BounceKey = readonly [scope: string, type: string];

export async function wrongLinks(sql: Sql): Promise<LinkKey[]> {
	const rows = await sql.all<{ campaign: string; link: number; audience: string }>(
		`SELECT campaign, link, audience
		FROM (
			SELECT campaign, link, audience, clicks, messages FROM link_figures
			UNION ALL
			SELECT s.campaign, f.link, a.audience, -sum(f.count), -count(DISTINCT f.message_id)
			${clicked}
			GROUP BY s.campaign, f.link, a.audience
			UNION ALL
			SELECT campaign, link, audience, -clicks, -messages FROM deleted_links
		) l
		GROUP BY campaign, link, audience
		HAVING sum(clicks) <> 0 OR sum(messages) <> 0
		ORDER BY campaign, link, audience`,
	);
	return rows.map(({ campaign, link, audience }) => [campaign, link, audience]);
}

export function recountLinks(sql: Sql, keys: readonly LinkKey[]): void {
	for (const key of keys) {
		sql.write('DELETE FROM link_figures WHERE campaign = ? AND link = ? AND audience = ?', key);
		sql.write(
			`INSERT INTO link_figures (campaign, content_sha256, link, audience, shard, clicks, messages)
			SELECT campaign, content_sha256, link, audience, 0, sum(clicks), sum(messages)
			FROM (
				${clickedRows('s.campaign = ? AND f.link = ? AND a.audience = ?')}
				UNION ALL
				SELECT campaign, content_sha256, link, audience, clicks, messages
				FROM deleted_links
				WHERE campaign = ? AND link = ? AND audience = ?
			) l
			GROUP BY campaign, content_sha256, link, audience`,
			[...key, ...key],
		);
	}
}

/** Clicks by campaign, content, link and audience, of messages that meet a condition. */
export function clickedRows(condition: string): string {
	return `SELECT s.campaign, s.content_sha256, f.link, a.audience, sum(f.count) AS clicks, count(DISTINCT f.message_id) AS messages
		${clicked} AND ${condition}
		GROUP BY s.campaign, s.content_sha256, f.link, a.audience`;
}

export async function wrongBounces(sql: Sql): Promise<BounceKey[]> {
	const rows = await sql.all<{ scope: string; type: string }>(
		`SELECT scope, type
		FROM (
			SELECT scope, type, count FROM bounce_figures
			UNION ALL
			SELECT '${total}', f.type, -count(*) ${bounced()} GROUP BY f.type
			UNION ALL
			SELECT s.campaign, f.type, -count(*) ${bounced()} WHERE s.campaign IS NOT NULL GROUP BY s.campaign, f.type
			UNION ALL
			SELECT '${total}', type, -count FROM deleted_bounces
			UNION ALL
			SELECT campaign, type, -count FROM deleted_bounces WHERE campaign <> ''
		) b
		GROUP BY scope, type
		HAVING sum(count) <> 0
		ORDER BY scope, type`,
	);
	return rows.map(({ scope, type }) => [scope, type]);
}

export function recountBounces(sql: Sql, keys: readonly BounceKey[]): void {
	for (const [scope, type] of keys) {
		sql.write('DELETE FROM bounce_figures WHERE scope = ? AND type = ?', [scope, type]);
		sql.write(
			`INSERT INTO bounce_figures (scope, quarter, domain, type, code, shard, count)
			SELECT ?, quarter, domain, type, code, 0, sum(count)
			FROM (
				${bouncedRows(sql, `f.type = ? AND (? = '${total}' OR s.campaign = ?)`)}
				UNION ALL
				SELECT campaign, quarter, domain, type, code, count
				FROM deleted_bounces
				WHERE type = ? AND (? = '${total}' OR campaign = ?)
			) b
			GROUP BY quarter, domain, type, code`,
			[scope, type, scope, scope, type, scope, scope],
		);
	}
}

/** First bounces by campaign, quarter of an hour, domain, type and code; of some messages, then of those that meet the condition. */
export function bouncedRows({ dialect }: Pick<Sql, 'dialect'>, condition: string, only = ''): string {
	return `SELECT s.campaign, f.first_at / ${quarterHour} AS quarter,
			CASE ${dialect.position}(m.to_key, '@') WHEN 0 THEN ''
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
		${bounced(only)}
		WHERE ${condition}
		GROUP BY s.campaign, quarter, domain, f.type, code`;
}

interface BouncedRange {
	from: Day;
	to: Day;
	campaign: Uuid | null;
	tag: string | null;
	zone: string;
}

/** Messages that bounced within the range, and those of them that were not sent within it. */
export async function countBounced(
	sql: Sql,
	{ campaign, tag, zone, ...days }: BouncedRange,
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

/** Counts of messages by tag, campaign and quarters. `only`: of the column of a message's id, as what follows a WHERE. */
export function bouncedGroups(only = ''): string {
	const quarter = (at: string) => `coalesce(${at} / ${quarterHour}, ${never})`;
	return `SELECT coalesce(s.tag, '') AS tag, coalesce(s.campaign, '') AS campaign,
			${quarter('m.sent_at')} AS sent, ${quarter('b.soft')} AS soft, ${quarter('b.hard')} AS hard, count(*) AS count
		FROM (
			SELECT message_id, min(CASE type WHEN 'SOFTBOUNCED' THEN first_at END) AS soft,
				min(CASE type WHEN 'HARDBOUNCED' THEN first_at END) AS hard
			FROM message_firsts
			WHERE type IN ('SOFTBOUNCED', 'HARDBOUNCED') ${only}
			GROUP BY message_id
		) b
		JOIN messages m ON m.id = b.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY 1, 2, 3, 4, 5`;
}

/** The figures as they should be, those of messages that retention has deleted too. */
const counted = `SELECT tag, campaign, sent, soft, hard, count FROM (${bouncedGroups()}) k
	UNION ALL
	SELECT tag, campaign, sent, soft, hard, count FROM deleted_bounced`;

/** How many figures are not what their messages add up to. */
export async function wrongBounced(sql: Sql): Promise<number> {
	return await sql.number(
		`SELECT count(*)
		FROM (
			SELECT 1
			FROM (
				SELECT tag, campaign, sent, soft, hard, count FROM bounced_figures
				UNION ALL
				SELECT tag, campaign, sent, soft, hard, -count FROM (${counted}) c
			) d
			GROUP BY tag, campaign, sent, soft, hard
			HAVING sum(count) <> 0
		) w`,
	);
}

export function recountBounced(sql: Sql): void {
	sql.write('DELETE FROM bounced_figures');
	sql.write(
		`INSERT INTO bounced_figures (hard, soft, sent, campaign, tag, shard, count)
		SELECT hard, soft, sent, campaign, tag, 0, sum(count)
		FROM (${counted}) c
		GROUP BY hard, soft, sent, campaign, tag`,
	);
}
