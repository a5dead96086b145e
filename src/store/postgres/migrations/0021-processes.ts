import type { Migration } from '../migrations.js';

/** Of several machines alone, so that SQLite has no such tables: who does upkeep, and what became of writes. */
export const processes: Migration = {
	version: 21,
	name: 'processes',
	sql: `
CREATE TABLE leaders (
	role TEXT COLLATE "C" PRIMARY KEY,
	holder TEXT COLLATE "C" NOT NULL,
	until_at BIGINT NOT NULL
);
CREATE TABLE outcomes (
	op TEXT COLLATE "C" PRIMARY KEY,
	answer BYTEA NOT NULL,
	at BIGINT NOT NULL
);
CREATE INDEX outcomes_by_time ON outcomes (at);
`,
};
