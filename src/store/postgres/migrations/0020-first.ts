import type { Migration } from '../migrations.js';
import { indexes } from './0020-indexes.js';
import { lists } from './0020-lists.js';
import { messages } from './0020-messages.js';

/**
 * The whole schema, as SQLite has it after its twentieth migration: times, flags and counts are BIGINT, texts are compared
 * by their octets, and indexes end with the id that SQLite appends by itself.
 */
export const first: Migration = {
	version: 20,
	name: 'first',
	sql: `${lists}${messages}${indexes}
INSERT INTO id_sequences VALUES ('subscribers', 0);
`,
};
