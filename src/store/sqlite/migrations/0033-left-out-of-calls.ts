/**
 * Who is left out of a campaign by a send call is kept by name, too: such a row has the call and the campaign's UUID in
 * place of the campaign's number, and no list where the call has none.
 */
export const leftOutOfCalls = {
	version: 33,
	name: 'left-out-of-calls',
	sql: `
CREATE TABLE campaign_left_out_33 (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	campaign_seq INTEGER REFERENCES campaigns (seq),
	submission_seq INTEGER REFERENCES submissions (seq),
	campaign TEXT,
	list_id INTEGER,
	to_email TEXT NOT NULL,
	to_key TEXT NOT NULL,
	code TEXT NOT NULL,
	detail TEXT
) STRICT;
INSERT INTO campaign_left_out_33 (id, campaign_seq, list_id, to_email, to_key, code, detail)
SELECT id, campaign_seq, list_id, to_email, to_key, code, detail FROM campaign_left_out ORDER BY id;
DROP TABLE campaign_left_out;
ALTER TABLE campaign_left_out_33 RENAME TO campaign_left_out;
CREATE INDEX left_out_of_campaign ON campaign_left_out (campaign_seq, id);
CREATE INDEX left_out_of_calls ON campaign_left_out (campaign, id) WHERE campaign IS NOT NULL;
CREATE INDEX left_out_of_submission ON campaign_left_out (submission_seq) WHERE submission_seq IS NOT NULL;
CREATE INDEX left_out_of_address ON campaign_left_out (to_key);
`,
} as const;
