/**
 * The states of messages that retention deletes and that joined a campaign: of send calls with its UUID. Those deleted
 * before are in its figures alone.
 */
export const deletedJoined = {
	version: 32,
	name: 'deleted-joined',
	sql: `
CREATE TABLE deleted_joined (
	campaign TEXT NOT NULL,
	state TEXT NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (campaign, state)
) STRICT, WITHOUT ROWID;
`,
} as const;
