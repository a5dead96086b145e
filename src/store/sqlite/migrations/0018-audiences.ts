/**
 * To whom a campaign to lists goes, and when it may leave. `counts` of a list says how many of it were left out and why;
 * who that was is kept by name. Before `opens_at` no message of the campaign is leased.
 */
export const audiences = {
	version: 18,
	name: 'audiences',
	sql: `
ALTER TABLE campaigns ADD COLUMN left_out INTEGER NOT NULL DEFAULT 0;
ALTER TABLE campaigns ADD COLUMN audience TEXT;
ALTER TABLE campaigns ADD COLUMN starts_at INTEGER;
ALTER TABLE campaigns ADD COLUMN opens_at INTEGER;
ALTER TABLE campaigns ADD COLUMN send_window TEXT;
ALTER TABLE campaigns ADD COLUMN time_zone TEXT;
ALTER TABLE campaign_lists ADD COLUMN counts TEXT;

CREATE TABLE campaign_left_out (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	campaign_seq INTEGER NOT NULL REFERENCES campaigns (seq),
	list_id INTEGER NOT NULL,
	to_email TEXT NOT NULL,
	to_key TEXT NOT NULL,
	code TEXT NOT NULL,
	detail TEXT
) STRICT;
CREATE INDEX left_out_of_campaign ON campaign_left_out (campaign_seq, id);
CREATE INDEX left_out_of_address ON campaign_left_out (to_key);
`,
} as const;
