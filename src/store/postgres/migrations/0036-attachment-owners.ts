import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const attachmentOwners: Migration = {
	version: 36,
	name: 'attachment-owners',
	sql: `
CREATE TABLE attachment_owners (
	sha256 TEXT COLLATE "C" NOT NULL REFERENCES attachments (sha256) ON DELETE CASCADE,
	owner TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (sha256, owner)
);
`,
};
