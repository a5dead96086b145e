/**
 * Reports on messages that came back. Never edited: what comes later is a later migration.
 *
 * By the hash of the whole mail: what is read twice counts once. No address is kept here. ends_run: 1 where this soft
 * bounce was the one too many, so that the next row of them begins behind it.
 */
export const bounceReports = {
	version: 6,
	name: 'bounce reports',
	sql: `
CREATE TABLE bounce_reports (
	sha256 TEXT PRIMARY KEY,
	message_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	at INTEGER NOT NULL,
	ends_run INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX bounce_reports_of_message ON bounce_reports (message_id);
`,
} as const;
