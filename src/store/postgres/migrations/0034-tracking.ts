import type { Migration } from '../migrations.js';

/** As SQLite has it. */
export const tracking: Migration = {
	version: 34,
	name: 'tracking',
	sql: `
ALTER TABLE submissions ADD COLUMN tracking TEXT COLLATE "C" NOT NULL DEFAULT 'on';
`,
};
