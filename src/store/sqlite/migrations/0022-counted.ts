/** What is asked for often: messages that are over by state, and those who came to a list by quarter of an hour. */
export const counted = {
	version: 22,
	name: 'counted',
	sql: `
CREATE INDEX messages_over ON messages (state) WHERE wake_at IS NULL;
CREATE TABLE list_joined (
	list_id INTEGER NOT NULL,
	quarter INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (list_id, quarter)
) STRICT, WITHOUT ROWID;
INSERT INTO list_joined (list_id, quarter, count)
SELECT list_id, created_at / 900000000 AS quarter, count(*) FROM subscribers GROUP BY list_id, quarter;
`,
} as const;
