import type { Migration } from '../migrations.js';

/** As SQLite has it. */
export const provenTime: Migration = {
	version: 37,
	name: 'proven-time',
	sql: 'ALTER TABLE clock ADD COLUMN proven TEXT COLLATE "C";',
};
