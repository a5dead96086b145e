/**
 * Counters of lists in rows of their own, each in shards, so that many writers of one list do not wait for one row. shard:
 * always 0 here.
 */
export const listCounters = {
	version: 23,
	name: 'list-counters',
	sql: `
CREATE TABLE list_counters (
	list_id INTEGER NOT NULL,
	shard INTEGER NOT NULL,
	active INTEGER NOT NULL,
	inactive INTEGER NOT NULL,
	PRIMARY KEY (list_id, shard)
) STRICT, WITHOUT ROWID;
INSERT INTO list_counters (list_id, shard, active, inactive)
SELECT id, 0, active_count, inactive_count FROM lists WHERE active_count <> 0 OR inactive_count <> 0;
ALTER TABLE lists DROP COLUMN active_count;
ALTER TABLE lists DROP COLUMN inactive_count;
ALTER TABLE list_joined RENAME TO list_joined_before;
CREATE TABLE list_joined (
	list_id INTEGER NOT NULL,
	quarter INTEGER NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (list_id, quarter, shard)
) STRICT, WITHOUT ROWID;
INSERT INTO list_joined (list_id, quarter, shard, count)
SELECT list_id, quarter, 0, count FROM list_joined_before;
DROP TABLE list_joined_before;
`,
} as const;
