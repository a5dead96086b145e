import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const deletedJoined: Migration = {
	version: 32,
	name: 'deleted-joined',
	sql: `
CREATE TABLE deleted_joined (
	campaign TEXT COLLATE "C" NOT NULL,
	state TEXT COLLATE "C" NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (campaign, state)
);
`,
};
