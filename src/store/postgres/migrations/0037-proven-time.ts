import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const provenTime: Migration = {
	version: 37,
	name: 'proven-time',
	sql: 'ALTER TABLE clock ADD COLUMN proven TEXT COLLATE "C";',
};
