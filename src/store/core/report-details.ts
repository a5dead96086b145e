/** Figures of reports beyond days: clicks by link. Only reads, and only rows of figures. */
import type { Operations } from '../operations.js';
import type { LinkFigures } from '../reports.js';
import { isCampaign } from './figures.js';
import type { Sql } from './sql.js';

/** A campaign has one content, one of requests has many. */
const maxContents = 200;
const maxLinks = 10_000;

export function createReportDetails(sql: Sql) {
	return {
		linkFigures: ({ campaign }) => (isCampaign(sql, campaign) ? linkFigures(sql, campaign) : null),
	} satisfies Partial<Operations>;
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
