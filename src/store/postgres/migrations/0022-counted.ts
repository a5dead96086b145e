import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const counted: Migration = {
	version: 22,
	name: 'counted',
	sql: `
CREATE INDEX messages_over ON messages (state) WHERE wake_at IS NULL;
CREATE TABLE list_joined (
	list_id BIGINT NOT NULL,
	quarter BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (list_id, quarter)
);
INSERT INTO list_joined (list_id, quarter, count)
SELECT list_id, created_at / 900000000 AS quarter, count(*) FROM subscribers GROUP BY list_id, created_at / 900000000;
`,
};
