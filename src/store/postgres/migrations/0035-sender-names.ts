import type { Migration } from '../migrations.js';

/** As SQLite has it. */
export const senderNames: Migration = {
	version: 35,
	name: 'sender-names',
	sql: `
ALTER TABLE senders ADD COLUMN full_name TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE senders ADD COLUMN reply_to_email TEXT COLLATE "C" NOT NULL DEFAULT '';
`,
};
