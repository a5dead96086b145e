import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const bouncedFigures: Migration = {
	version: 30,
	name: 'bounced-figures',
	sql: `
CREATE TABLE bounced_figures (
	hard BIGINT NOT NULL,
	soft BIGINT NOT NULL,
	sent BIGINT NOT NULL,
	campaign TEXT COLLATE "C" NOT NULL,
	tag TEXT COLLATE "C" NOT NULL,
	shard BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (hard, soft, sent, campaign, tag, shard)
);
CREATE INDEX bounced_figures_soft ON bounced_figures (soft) WHERE soft >= 0;
INSERT INTO bounced_figures (hard, soft, sent, campaign, tag, shard, count)
SELECT hard, soft, sent, campaign, tag, 0, sum(count)
FROM (
	SELECT coalesce(b.hard / 900000000, -1) AS hard, coalesce(b.soft / 900000000, -1) AS soft,
		coalesce(m.sent_at / 900000000, -1) AS sent, coalesce(s.campaign, '') AS campaign, coalesce(s.tag, '') AS tag,
		count(*) AS count
	FROM (
		SELECT message_id, min(CASE type WHEN 'SOFTBOUNCED' THEN first_at END) AS soft,
			min(CASE type WHEN 'HARDBOUNCED' THEN first_at END) AS hard
		FROM message_firsts
		WHERE type IN ('SOFTBOUNCED', 'HARDBOUNCED')
		GROUP BY message_id
	) b
	JOIN messages m ON m.id = b.message_id
	JOIN submissions s ON s.seq = m.submission_seq
	GROUP BY 1, 2, 3, 4, 5
	UNION ALL
	SELECT hard, soft, sent, campaign, tag, count FROM deleted_bounced
) c
GROUP BY hard, soft, sent, campaign, tag;
DROP INDEX message_firsts_bounced;
`,
};
