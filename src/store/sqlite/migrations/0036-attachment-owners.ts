/** Clients that uploaded a file: another one has to, before it can name the file by its hash alone. */
export const attachmentOwners = {
	version: 36,
	name: 'attachment-owners',
	sql: `
CREATE TABLE attachment_owners (
	sha256 TEXT NOT NULL REFERENCES attachments (sha256) ON DELETE CASCADE,
	owner TEXT NOT NULL,
	PRIMARY KEY (sha256, owner)
) STRICT, WITHOUT ROWID;
`,
} as const;
