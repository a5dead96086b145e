/**
 * Figures that reports show beside those of days, so that none of them counts events: by quarter of an hour, clicks by
 * link, bounces by domain and code. Never edited: what comes later is a later migration.
 */
export const reportFigures = {
	version: 17,
	name: 'report figures',
	sql: `
-- scope, type and audience as in daily_figures, and the type COMPLAINED. quarter: quarters of an hour since 1970 in UTC,
-- of which the hours of every time zone are made. shard: always 0 here, as everywhere.
CREATE TABLE quarter_figures (
	scope TEXT NOT NULL,
	quarter INTEGER NOT NULL,
	type TEXT NOT NULL,
	audience TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (scope, quarter, type, audience, shard)
) STRICT, WITHOUT ROWID;

-- link: its position in the content. messages: distinct ones with a click.
CREATE TABLE link_figures (
	campaign TEXT NOT NULL,
	content_sha256 TEXT NOT NULL,
	link INTEGER NOT NULL,
	audience TEXT NOT NULL,
	shard INTEGER NOT NULL,
	clicks INTEGER NOT NULL,
	messages INTEGER NOT NULL,
	PRIMARY KEY (campaign, content_sha256, link, audience, shard)
) STRICT, WITHOUT ROWID;

-- The first bounce of each type of a message. domain: of its recipient. code: enhanced, or that of the reply; empty
-- without one.
CREATE TABLE bounce_figures (
	scope TEXT NOT NULL,
	quarter INTEGER NOT NULL,
	domain TEXT NOT NULL,
	type TEXT NOT NULL,
	code TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (scope, quarter, domain, type, code, shard)
) STRICT, WITHOUT ROWID;

-- What was counted until now.
CREATE TEMP TABLE counted AS
	SELECT s.campaign, 'CREATED' AS type, 'all' AS audience,
		coalesce(g.released_at, m.created_at) / 900000000 AS quarter, count(*) AS count
	FROM messages m
	JOIN submissions s ON s.seq = m.submission_seq
	LEFT JOIN campaigns g ON g.seq = s.campaign_seq
	WHERE s.campaign_seq IS NULL OR g.released_at IS NOT NULL
	GROUP BY 1, 4
	UNION ALL
	SELECT s.campaign, 'SENT', 'all', m.sent_at / 900000000, count(*)
	FROM messages m
	JOIN submissions s ON s.seq = m.submission_seq
	WHERE m.sent_at IS NOT NULL
	GROUP BY 1, 4
	UNION ALL
	SELECT s.campaign, f.type, f.audience, f.first_at / 900000000, count(*)
	FROM (
		SELECT message_id, type, 'all' AS audience, min(first_at) AS first_at
		FROM message_firsts
		GROUP BY message_id, type
		UNION ALL
		SELECT message_id, type, 'human', min(first_at)
		FROM message_firsts
		WHERE machine = 0
		GROUP BY message_id, type
	) f
	JOIN messages m ON m.id = f.message_id
	JOIN submissions s ON s.seq = m.submission_seq
	GROUP BY 1, 2, 3, 4
	UNION ALL
	SELECT s.campaign, 'COMPLAINED', 'all', b.at / 900000000, count(*)
	FROM bounce_reports b
	JOIN messages m ON m.id = b.message_id
	JOIN submissions s ON s.seq = m.submission_seq
	WHERE b.kind = 'complaint'
	GROUP BY 1, 4;
INSERT INTO quarter_figures (scope, quarter, type, audience, shard, count)
	SELECT '', quarter, type, audience, 0, sum(count) FROM counted GROUP BY quarter, type, audience;
INSERT INTO quarter_figures (scope, quarter, type, audience, shard, count)
	SELECT campaign, quarter, type, audience, 0, sum(count)
	FROM counted
	WHERE campaign IS NOT NULL
	GROUP BY campaign, quarter, type, audience;
DROP TABLE counted;

INSERT INTO link_figures (campaign, content_sha256, link, audience, shard, clicks, messages)
	SELECT s.campaign, s.content_sha256, f.link, a.audience, 0, sum(f.count), count(DISTINCT f.message_id)
	FROM message_firsts f
	JOIN (SELECT 'all' AS audience, 1 AS machine UNION ALL SELECT 'human', 0) a ON f.machine <= a.machine
	JOIN messages m ON m.id = f.message_id
	JOIN submissions s ON s.seq = m.submission_seq
	WHERE f.type = 'REDIRECTED' AND f.link >= 0 AND s.campaign IS NOT NULL
	GROUP BY s.campaign, s.content_sha256, f.link, a.audience;

CREATE TEMP TABLE bounced AS
	SELECT s.campaign, f.first_at / 900000000 AS quarter, f.type,
		CASE instr(m.to_key, '@') WHEN 0 THEN '' ELSE replace(m.to_key, rtrim(m.to_key, replace(m.to_key, '@', '')), '') END
			AS domain,
		coalesce(
			(SELECT e.smtp_code FROM events e WHERE e.message_id = f.message_id AND e.type = f.type ORDER BY e.id LIMIT 1),
			(SELECT coalesce(t.enhanced, CAST(t.code AS TEXT)) FROM attempts t
				WHERE t.message_id = f.message_id AND t.outcome IN ('bounced', 'failed') ORDER BY t.number DESC LIMIT 1),
			'') AS code
	FROM message_firsts f
	JOIN messages m ON m.id = f.message_id
	JOIN submissions s ON s.seq = m.submission_seq
	WHERE f.type IN ('SOFTBOUNCED', 'HARDBOUNCED');
INSERT INTO bounce_figures (scope, quarter, domain, type, code, shard, count)
	SELECT '', quarter, domain, type, code, 0, count(*) FROM bounced GROUP BY quarter, domain, type, code;
INSERT INTO bounce_figures (scope, quarter, domain, type, code, shard, count)
	SELECT campaign, quarter, domain, type, code, 0, count(*)
	FROM bounced
	WHERE campaign IS NOT NULL
	GROUP BY campaign, quarter, domain, type, code;
DROP TABLE bounced;
`,
} as const;
