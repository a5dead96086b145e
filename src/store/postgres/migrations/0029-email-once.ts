import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const emailOnce: Migration = { version: 29, name: 'email-once', sql: '' };
