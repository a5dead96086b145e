/** Why nothing leaves the queue: a person said so, or the mail server takes nothing. Never edited. */
export const queuePauses = {
	version: 4,
	name: 'queue pauses',
	sql: `
-- kind: manual (until somebody resumes) or fault (login, TLS, connection; tried again at retry_at). faults: in a row.
CREATE TABLE queue_pauses (
	kind TEXT PRIMARY KEY,
	reason TEXT,
	since INTEGER NOT NULL,
	retry_at INTEGER,
	faults INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
`,
} as const;
