import type { Migration } from '../migrations.js';

/** As SQLite has it. */
export const emailOnce: Migration = { version: 29, name: 'email-once', sql: '' };
