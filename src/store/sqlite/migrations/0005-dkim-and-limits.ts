/**
 * Keys that sign what leaves, and what limits on sending have to remember.
 *
 * dkim_keys: the private half of a key is in the keyring (purpose 'dkim', the same id), with the other secrets.
 *
 * limit_holds: messages in a worker's hands that were counted against limits when they were leased, with the fence of
 * that lease. limit_uses: what was sent, a row for each limit and slice of time; `until` is when the slice has left
 * the limit's window. limit_lines: when the next of those that wait for a limit gets its turn.
 */
export const dkimAndLimits = {
	version: 5,
	name: 'dkim-and-limits',
	sql: `
CREATE TABLE dkim_keys (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	domain TEXT NOT NULL,
	selector TEXT NOT NULL,
	type TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	UNIQUE (domain, selector)
) STRICT;

CREATE TABLE limit_holds (
	message_id INTEGER PRIMARY KEY,
	fence INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	limits TEXT NOT NULL
) STRICT;

CREATE TABLE limit_uses (
	limit_key TEXT NOT NULL,
	until INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (limit_key, until)
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_uses_by_end ON limit_uses (until);

CREATE TABLE limit_lines (
	limit_key TEXT NOT NULL,
	line INTEGER NOT NULL,
	next_turn INTEGER NOT NULL,
	PRIMARY KEY (limit_key, line)
) STRICT, WITHOUT ROWID;
`,
} as const;
