import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const tracking: Migration = {
	version: 34,
	name: 'tracking',
	sql: `
ALTER TABLE submissions ADD COLUMN tracking TEXT COLLATE "C" NOT NULL DEFAULT 'on';
`,
};
