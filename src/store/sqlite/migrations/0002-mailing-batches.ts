/**
 * Mailings take recipients in numbered batches: how many rows were acknowledged, and with which answers. Never edited:
 * what comes later is a later migration.
 */
export const mailingBatches = {
	version: 2,
	name: 'mailing batches',
	sql: `
-- Rows of batches alone: those that came from lists are counted in staged, suppressed and rejected only.
ALTER TABLE mailings ADD COLUMN position INTEGER NOT NULL DEFAULT 0;

-- Answers kept while the mailing is staged, so that a lost one can be given again.
CREATE TABLE mailing_acks (
	mailing_seq INTEGER NOT NULL REFERENCES mailings (seq),
	first INTEGER NOT NULL,
	ack TEXT NOT NULL,
	PRIMARY KEY (mailing_seq, first)
) STRICT;
`,
} as const;
