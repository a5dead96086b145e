/** Messages whose worker may end while it composes them. Never edited: what comes later is a later migration. */
export const compositions = {
	version: 13,
	name: 'compositions',
	sql: `
-- A row stands while a worker composes a message that may end it, under the lease of that fence. One whose lease was
-- lost is of a worker that ended there: two of them, and the message has failed. Nearly always empty.
CREATE TABLE compositions (
	message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
	fence INTEGER NOT NULL,
	PRIMARY KEY (message_id, fence)
) STRICT, WITHOUT ROWID;
`,
} as const;
