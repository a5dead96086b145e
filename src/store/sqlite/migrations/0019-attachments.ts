/**
 * Files that go with messages, once for each hash. `expires_at` is null once a content names the file, else it is when
 * an upload goes. The bytes come last: what is before them is read without them.
 */
export const attachments = {
	version: 19,
	name: 'attachments',
	sql: `
CREATE TABLE attachments (
	sha256 TEXT PRIMARY KEY,
	size INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER,
	bytes BLOB NOT NULL
) STRICT;
CREATE INDEX attachments_expiring ON attachments (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE content_attachments (
	content_sha256 TEXT NOT NULL REFERENCES contents (sha256) ON DELETE CASCADE,
	position INTEGER NOT NULL,
	name TEXT NOT NULL,
	type TEXT NOT NULL,
	sha256 TEXT NOT NULL REFERENCES attachments (sha256),
	content_id TEXT,
	PRIMARY KEY (content_sha256, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX contents_of_attachment ON content_attachments (sha256);
`,
} as const;
