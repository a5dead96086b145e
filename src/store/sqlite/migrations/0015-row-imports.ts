/** Imports row by row, into lists that a service keeps. Never edited. */
export const rowImports = {
	version: 15,
	name: 'row imports',
	sql: `
-- What rows behind the last acknowledged batch were about to do: create or update.
CREATE TABLE import_intents (
	import_seq INTEGER NOT NULL REFERENCES imports (seq),
	row INTEGER NOT NULL,
	intent TEXT NOT NULL,
	PRIMARY KEY (import_seq, row)
) STRICT, WITHOUT ROWID;

-- Addresses that stand in an import, by a part of their hash.
CREATE TABLE import_addresses (
	import_seq INTEGER NOT NULL REFERENCES imports (seq),
	hash TEXT NOT NULL,
	PRIMARY KEY (import_seq, hash)
) STRICT, WITHOUT ROWID;
`,
} as const;
