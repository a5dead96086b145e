import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const retention: Migration = {
	version: 27,
	name: 'retention',
	sql: `
CREATE TABLE deleted_figures (
	tag TEXT COLLATE "C" NOT NULL,
	campaign TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	audience TEXT COLLATE "C" NOT NULL,
	quarter BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (tag, campaign, type, audience, quarter)
);
CREATE TABLE deleted_links (
	campaign TEXT COLLATE "C" NOT NULL,
	content_sha256 TEXT COLLATE "C" NOT NULL,
	link BIGINT NOT NULL,
	audience TEXT COLLATE "C" NOT NULL,
	clicks BIGINT NOT NULL,
	messages BIGINT NOT NULL,
	PRIMARY KEY (campaign, content_sha256, link, audience)
);
CREATE TABLE deleted_bounces (
	campaign TEXT COLLATE "C" NOT NULL,
	quarter BIGINT NOT NULL,
	domain TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	code TEXT COLLATE "C" NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (campaign, quarter, domain, type, code)
);
CREATE TABLE deleted_bounced (
	tag TEXT COLLATE "C" NOT NULL,
	campaign TEXT COLLATE "C" NOT NULL,
	sent BIGINT NOT NULL,
	soft BIGINT NOT NULL,
	hard BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (tag, campaign, sent, soft, hard)
);
CREATE TABLE old_messages (
	uuid BYTEA PRIMARY KEY,
	submission_seq BIGINT NOT NULL,
	list_id BIGINT,
	subscriber_id BIGINT,
	to_key TEXT COLLATE "C" NOT NULL,
	variables TEXT COLLATE "C"
);
CREATE INDEX old_messages_of_address ON old_messages (to_key);
ALTER TABLE campaigns ADD COLUMN dropped_at BIGINT;
ALTER TABLE contents ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE contents ADD COLUMN dropped_at BIGINT;
UPDATE contents SET used_at = used.at
FROM (SELECT content_sha256, max(created_at) AS at FROM submissions GROUP BY content_sha256) used
WHERE used.content_sha256 = contents.sha256;
CREATE INDEX contents_by_use ON contents (used_at) WHERE dropped_at IS NULL;
`,
};
