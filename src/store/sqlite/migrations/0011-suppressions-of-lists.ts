/**
 * An unsubscription may be of one list: the list becomes part of a suppression's key. 0 = of all lists, which is what
 * every suppression was before. A key cannot be added to: the table is written anew with all that was in it. Never
 * edited: what comes later is a later migration.
 */
export const suppressionsOfLists = {
	version: 11,
	name: 'suppressions of lists',
	sql: `
ALTER TABLE suppressions RENAME TO suppressions_of_all_lists;
CREATE TABLE suppressions (
	email_key TEXT NOT NULL,
	reason TEXT NOT NULL,
	list_id INTEGER NOT NULL DEFAULT 0,
	key_version INTEGER NOT NULL DEFAULT 1,
	source TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER,
	PRIMARY KEY (email_key, reason, list_id)
) STRICT, WITHOUT ROWID;
INSERT INTO suppressions (email_key, reason, list_id, key_version, source, created_at, expires_at)
	SELECT email_key, reason, 0, key_version, source, created_at, expires_at FROM suppressions_of_all_lists;
DROP TABLE suppressions_of_all_lists;
-- Few: those of one list, for its deletion.
CREATE INDEX suppressions_of_list ON suppressions (list_id) WHERE list_id > 0;
`,
} as const;
