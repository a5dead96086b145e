/** Whose a mailing and a submission is, for clients that see no others. Never edited: what comes later is a later migration. */
export const owners = {
	version: 12,
	name: 'owners',
	sql: `
-- The name of the token it came by. NULL: the database's owner, and all that was there before.
ALTER TABLE mailings ADD COLUMN owner TEXT;
ALTER TABLE submissions ADD COLUMN owner TEXT;
`,
} as const;
