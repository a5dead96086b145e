/** What a slice of messages adds to the sums that stay when it is deleted: figures outlive their messages. */
import { bouncedRows, clickedRows } from '../detail-figures.js';
import { bouncedGroups, countedRows } from '../figures.js';
import type { Sql } from '../sql.js';

/** Before the messages go, in the same transaction. `ids`: a JSON array of theirs. */
export function addToSums(sql: Sql, ids: string): void {
	const only = (id: string) => `AND ${sql.dialect.oneOf(id)}`;
	sql.write(
		`INSERT INTO deleted_figures (tag, campaign, type, audience, quarter, count)
		SELECT coalesce(tag, ''), coalesce(campaign, ''), type, audience, quarter, sum(count)
		FROM (${countedRows(only)}) d
		WHERE TRUE
		GROUP BY 1, 2, 3, 4, 5
		ON CONFLICT (tag, campaign, type, audience, quarter) DO UPDATE SET count = deleted_figures.count + excluded.count`,
		...[ids, ids, ids, ids],
	);
	sql.write(
		`INSERT INTO deleted_links (campaign, content_sha256, link, audience, clicks, messages)
		SELECT campaign, content_sha256, link, audience, clicks, messages
		FROM (${clickedRows(sql.dialect.oneOf('f.message_id'))}) d
		WHERE TRUE
		ON CONFLICT (campaign, content_sha256, link, audience) DO UPDATE
		SET clicks = deleted_links.clicks + excluded.clicks, messages = deleted_links.messages + excluded.messages`,
		ids,
	);
	sql.write(
		`INSERT INTO deleted_bounces (campaign, quarter, domain, type, code, count)
		SELECT coalesce(campaign, ''), quarter, domain, type, code, sum(count)
		FROM (${bouncedRows(sql, 'TRUE', only('message_id'))}) d
		WHERE TRUE
		GROUP BY 1, 2, 3, 4, 5
		ON CONFLICT (campaign, quarter, domain, type, code) DO UPDATE SET count = deleted_bounces.count + excluded.count`,
		ids,
	);
	sql.write(
		`INSERT INTO deleted_bounced (tag, campaign, sent, soft, hard, count)
		SELECT tag, campaign, coalesce(sent, -1), coalesce(soft, -1), coalesce(hard, -1), sum(count)
		FROM (${bouncedGroups(
			`SELECT DISTINCT message_id
			FROM message_firsts
			WHERE type IN ('SOFTBOUNCED', 'HARDBOUNCED') AND ${sql.dialect.oneOf('message_id')}`,
			"coalesce(s.tag, '') AS tag, coalesce(s.campaign, '') AS campaign,",
		)} JOIN submissions s ON s.seq = m.submission_seq GROUP BY 1, 2, 3, 4, 5) d
		WHERE TRUE
		GROUP BY 1, 2, 3, 4, 5
		ON CONFLICT (tag, campaign, sent, soft, hard) DO UPDATE SET count = deleted_bounced.count + excluded.count`,
		ids,
	);
}
