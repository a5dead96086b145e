/**
 * What became of each row of a mailing, by its place in the source; mailings of send requests; the submissions of a
 * mailing found by an index. Never edited: what comes later is a later migration.
 */
export const mailingResults = {
	version: 3,
	name: 'mailing results',
	sql: `
-- requests: 1 when its rows are send requests, each with a submission of its own. is_complete: no further row comes.
ALTER TABLE mailings ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mailings ADD COLUMN is_complete INTEGER NOT NULL DEFAULT 0;

CREATE INDEX submissions_of_mailing ON submissions (mailing_seq) WHERE mailing_seq IS NOT NULL;

-- Rows that were put, recipient by recipient, n from 1. message_id, or to_email with why there is no message.
CREATE TABLE mailing_results (
	mailing_seq INTEGER NOT NULL REFERENCES mailings (seq),
	n INTEGER NOT NULL,
	line INTEGER,
	message_id INTEGER,
	to_email TEXT,
	code TEXT,
	error TEXT,
	PRIMARY KEY (mailing_seq, n)
) STRICT, WITHOUT ROWID;
`,
} as const;
