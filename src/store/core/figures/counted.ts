import type { Dialect } from '../sql.js';
import { never, quarterHour, total } from './tally.js';

/** Needs a condition on the id of a message, as what follows a WHERE, in each of its parts. */
export type Only = (id: string) => string;
const everything: Only = () => '';

export function countedRows(only = everything): string {
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

export function clickedRows(only = everything): string {
	return `SELECT s.campaign, s.content_sha256, f.link, a.audience, sum(f.count) AS clicks, count(DISTINCT f.message_id) AS messages
		FROM message_firsts f
		JOIN (SELECT 'all' AS audience, 1 AS machine UNION ALL SELECT 'human', 0) a ON f.machine <= a.machine
		JOIN messages m ON m.id = f.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE f.type = 'REDIRECTED' AND f.link >= 0 AND s.campaign IS NOT NULL ${only('f.message_id')}
		GROUP BY s.campaign, s.content_sha256, f.link, a.audience`;
}

const isBounce = "type IN ('SOFTBOUNCED', 'HARDBOUNCED')";

export function bouncedRows({ position }: Dialect, only = everything): string {
	return `SELECT s.campaign, f.first_at / ${quarterHour} AS quarter,
			CASE ${position}(m.to_key, '@') WHEN 0 THEN ''
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
		FROM (
			SELECT message_id, type, min(first_at) AS first_at
			FROM message_firsts
			WHERE ${isBounce} ${only('message_id')}
			GROUP BY message_id, type
		) f
		JOIN messages m ON m.id = f.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY s.campaign, quarter, domain, f.type, code`;
}

export function bouncedGroups(only = everything): string {
	const quarter = (at: string) => `coalesce(${at} / ${quarterHour}, ${never})`;
	return `SELECT coalesce(s.tag, '') AS tag, coalesce(s.campaign, '') AS campaign,
			${quarter('m.sent_at')} AS sent, ${quarter('b.soft')} AS soft, ${quarter('b.hard')} AS hard, count(*) AS count
		FROM (
			SELECT message_id, min(CASE type WHEN 'SOFTBOUNCED' THEN first_at END) AS soft,
				min(CASE type WHEN 'HARDBOUNCED' THEN first_at END) AS hard
			FROM message_firsts
			WHERE ${isBounce} ${only('message_id')}
			GROUP BY message_id
		) b
		JOIN messages m ON m.id = b.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY 1, 2, 3, 4, 5`;
}

/** A table of figures in shards, with what it should hold: messages, and the sums of those that retention has deleted. */
export interface Figure {
	table: string;
	columns: readonly string[];
	/** Sums are compared by these: erasures leave neither content nor address, and late bounces keep their quarter. */
	key: readonly string[];
	sums: readonly string[];
	counted(dialect: Dialect): string;
}

export const sharded: readonly Figure[] = [
	{
		table: 'link_figures',
		columns: ['campaign', 'content_sha256', 'link', 'audience'],
		key: ['campaign', 'link', 'audience'],
		sums: ['clicks', 'messages'],
		counted: () => `${clickedRows()}
			UNION ALL SELECT campaign, content_sha256, link, audience, clicks, messages FROM deleted_links`,
	},
	{
		table: 'bounce_figures',
		columns: ['scope', 'quarter', 'domain', 'type', 'code'],
		key: ['scope', 'type'],
		sums: ['count'],
		counted: (dialect) => {
			const rows = `(${bouncedRows(dialect)}
				UNION ALL SELECT campaign, quarter, domain, type, code, count FROM deleted_bounces)`;
			return `SELECT '${total}' AS scope, quarter, domain, type, code, count FROM ${rows} a
				UNION ALL SELECT campaign, quarter, domain, type, code, count FROM ${rows} b WHERE campaign <> ''`;
		},
	},
	{
		table: 'bounced_figures',
		columns: ['hard', 'soft', 'sent', 'campaign', 'tag'],
		key: ['hard', 'soft', 'sent', 'campaign', 'tag'],
		sums: ['count'],
		counted: () => `${bouncedGroups()}
			UNION ALL SELECT tag, campaign, sent, soft, hard, count FROM deleted_bounced`,
	},
	{
		table: 'list_joined',
		columns: ['list_id', 'quarter'],
		key: ['list_id', 'quarter'],
		sums: ['count'],
		counted: () => `SELECT list_id, created_at / ${quarterHour} AS quarter, count(*) AS count
			FROM subscribers
			GROUP BY list_id, quarter`,
	},
];
