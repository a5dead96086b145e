import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const deletedStates: Migration = {
	version: 28,
	name: 'deleted-states',
	sql: `
CREATE TABLE deleted_states (
	campaign TEXT COLLATE "C" NOT NULL,
	state TEXT COLLATE "C" NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (campaign, state)
);
INSERT INTO deleted_states (campaign, state, count)
SELECT id, state, CASE state WHEN 'sent' THEN sent - sent_first WHEN 'bounced' THEN bounced WHEN 'failed' THEN failed
	ELSE gone - sent + sent_first - bounced - failed END
FROM (
	SELECT g.id, coalesce(f.sent, 0) AS sent, coalesce(b.sent_first, 0) AS sent_first,
		coalesce(b.bounced, 0) AS bounced, coalesce(b.failed, 0) AS failed,
		g.staged - (SELECT count(*) FROM submissions s JOIN messages m ON m.submission_seq = s.seq WHERE s.campaign_seq = g.seq) AS gone
	FROM campaigns g
	LEFT JOIN (
		SELECT campaign, sum(count) AS sent FROM deleted_figures WHERE type = 'SENT' GROUP BY campaign
	) f ON f.campaign = g.id
	LEFT JOIN (
		SELECT campaign, sum(CASE WHEN sent >= 0 THEN count ELSE 0 END) AS sent_first,
			sum(CASE WHEN hard >= 0 THEN count ELSE 0 END) AS bounced, sum(CASE WHEN hard < 0 THEN count ELSE 0 END) AS failed
		FROM deleted_bounced
		GROUP BY campaign
	) b ON b.campaign = g.id
	WHERE g.dropped_at IS NOT NULL AND g.released_at IS NOT NULL AND g.courier = 'smtp'
) t
CROSS JOIN (SELECT 'sent' AS state UNION ALL SELECT 'bounced' UNION ALL SELECT 'failed' UNION ALL SELECT 'canceled') k
WHERE CASE state WHEN 'sent' THEN sent - sent_first WHEN 'bounced' THEN bounced WHEN 'failed' THEN failed
	ELSE gone - sent + sent_first - bounced - failed END > 0;
`,
};
