-- What only several machines need.

-- The process that does upkeep for all.
CREATE TABLE leaders (
	role TEXT PRIMARY KEY,
	holder TEXT NOT NULL,
	until_at INTEGER NOT NULL
);

-- Answers of writes, for the process whose COMMIT got none (`outcomes.ts`).
CREATE TABLE outcomes (
	op TEXT PRIMARY KEY,
	answer BLOB NOT NULL,
	at INTEGER NOT NULL
);
CREATE INDEX outcomes_by_time ON outcomes (at);
