import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const senderNames: Migration = {
	version: 35,
	name: 'sender-names',
	sql: `
ALTER TABLE senders ADD COLUMN full_name TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE senders ADD COLUMN reply_to_email TEXT COLLATE "C" NOT NULL DEFAULT '';
`,
};
