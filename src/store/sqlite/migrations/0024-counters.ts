/**
 * What kept an answer from growing with the database: the number of messages in a counter, and indexes for contents, for
 * the few submissions with copies and for the few rows of a campaign without a message. Never edited: what comes later is
 * a later migration.
 */
export const counters = {
	version: 24,
	name: 'counters',
	sql: `
-- name: 'messages', all of them. shard: always 0 here.
CREATE TABLE counters (
	name TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (name, shard)
) STRICT, WITHOUT ROWID;
INSERT INTO counters (name, shard, count) SELECT 'messages', 0, count(*) FROM messages HAVING count(*) > 0;

-- Nearly all messages were sent, and their number is that of all without the others.
DROP INDEX messages_over;
CREATE INDEX messages_over ON messages (state) WHERE wake_at IS NULL AND state <> 'sent';

CREATE INDEX submissions_of_content ON submissions (content_sha256);
CREATE INDEX submissions_with_copies ON submissions (seq)
WHERE instr(envelope, '"reply_to":[],"cc":[],"bcc":[]') = 0;
CREATE INDEX campaign_results_refused ON campaign_results (campaign_seq, n) WHERE to_email IS NOT NULL;
`,
} as const;
