import type { Migration } from '../migrations.js';

/** As SQLite has it, whose indexes all end with the number of the row. */
export const counters: Migration = {
	version: 24,
	name: 'counters',
	sql: `
CREATE TABLE counters (
	name TEXT COLLATE "C" NOT NULL,
	shard BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (name, shard)
);
INSERT INTO counters (name, shard, count) SELECT 'messages', 0, count(*) FROM messages HAVING count(*) > 0;

DROP INDEX messages_over;
CREATE INDEX messages_over ON messages (state, id) WHERE wake_at IS NULL AND state <> 'sent';

CREATE INDEX submissions_of_content ON submissions (content_sha256);
CREATE INDEX submissions_with_copies ON submissions (seq)
WHERE strpos(envelope, '"reply_to":[],"cc":[],"bcc":[]') = 0;
CREATE INDEX campaign_results_refused ON campaign_results (campaign_seq, n) WHERE to_email IS NOT NULL;

DROP INDEX submissions_of_tag;
CREATE INDEX submissions_of_tag ON submissions (tag, seq) WHERE tag IS NOT NULL;
DROP INDEX submissions_of_campaign;
CREATE INDEX submissions_of_campaign ON submissions (campaign, seq) WHERE campaign IS NOT NULL;
`,
};
