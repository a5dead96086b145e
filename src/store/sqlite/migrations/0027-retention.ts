/**
 * What stays of rows that retention deletes: their sums, so that figures add up without them, and where the links of
 * old mails lead. used_at: the last submission of a content, exact to a day. dropped_at: when bodies, or the messages
 * of a campaign, began to be deleted. In deleted_bounced −1 stands for a moment that never was.
 */
export const retention = {
	version: 27,
	name: 'retention',
	sql: `
CREATE TABLE deleted_figures (
	tag TEXT NOT NULL,
	campaign TEXT NOT NULL,
	type TEXT NOT NULL,
	audience TEXT NOT NULL,
	quarter INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (tag, campaign, type, audience, quarter)
) STRICT, WITHOUT ROWID;
CREATE TABLE deleted_links (
	campaign TEXT NOT NULL,
	content_sha256 TEXT NOT NULL,
	link INTEGER NOT NULL,
	audience TEXT NOT NULL,
	clicks INTEGER NOT NULL,
	messages INTEGER NOT NULL,
	PRIMARY KEY (campaign, content_sha256, link, audience)
) STRICT, WITHOUT ROWID;
CREATE TABLE deleted_bounces (
	campaign TEXT NOT NULL,
	quarter INTEGER NOT NULL,
	domain TEXT NOT NULL,
	type TEXT NOT NULL,
	code TEXT NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (campaign, quarter, domain, type, code)
) STRICT, WITHOUT ROWID;
CREATE TABLE deleted_bounced (
	tag TEXT NOT NULL,
	campaign TEXT NOT NULL,
	sent INTEGER NOT NULL,
	soft INTEGER NOT NULL,
	hard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (tag, campaign, sent, soft, hard)
) STRICT, WITHOUT ROWID;
CREATE TABLE old_messages (
	uuid BLOB PRIMARY KEY,
	submission_seq INTEGER NOT NULL,
	list_id INTEGER,
	subscriber_id INTEGER,
	to_key TEXT NOT NULL,
	variables TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX old_messages_of_address ON old_messages (to_key);
ALTER TABLE campaigns ADD COLUMN dropped_at INTEGER;
ALTER TABLE contents ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE contents ADD COLUMN dropped_at INTEGER;
UPDATE contents SET used_at = used.at
FROM (SELECT content_sha256, max(created_at) AS at FROM submissions GROUP BY content_sha256) used
WHERE used.content_sha256 = contents.sha256;
CREATE INDEX contents_by_use ON contents (used_at) WHERE dropped_at IS NULL;
`,
} as const;
