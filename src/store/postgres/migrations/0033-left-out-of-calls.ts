import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const leftOutOfCalls: Migration = {
	version: 33,
	name: 'left-out-of-calls',
	sql: `
ALTER TABLE campaign_left_out ALTER COLUMN campaign_seq DROP NOT NULL;
ALTER TABLE campaign_left_out ALTER COLUMN list_id DROP NOT NULL;
ALTER TABLE campaign_left_out ADD COLUMN submission_seq BIGINT REFERENCES submissions (seq);
ALTER TABLE campaign_left_out ADD COLUMN campaign TEXT COLLATE "C";
CREATE INDEX left_out_of_calls ON campaign_left_out (campaign, id) WHERE campaign IS NOT NULL;
CREATE INDEX left_out_of_submission ON campaign_left_out (submission_seq) WHERE submission_seq IS NOT NULL;
`,
};
