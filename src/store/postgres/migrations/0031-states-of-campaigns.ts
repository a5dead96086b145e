import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const statesOfCampaigns: Migration = {
	version: 31,
	name: 'states-of-campaigns',
	sql: `
CREATE INDEX messages_over_of_lane ON messages (lane, state) WHERE wake_at IS NULL AND state <> 'sent';
DROP INDEX messages_uncertain;
ALTER TABLE campaigns ADD COLUMN is_again BIGINT NOT NULL DEFAULT 0;
ALTER TABLE campaigns ADD COLUMN rate TEXT COLLATE "C";
`,
};
