/**
 * messages_over_of_lane: what a campaign has besides messages that wait and messages that were sent, so that its states
 * are counted without its messages; uncertain ones of before among them. is_again: the campaign was begun in spite of
 * the same mail, so that the same command typed twice begins one. rate: how fast a command has sent it, for the next one.
 */
export const statesOfCampaigns = {
	version: 31,
	name: 'states-of-campaigns',
	sql: `
CREATE INDEX messages_over_of_lane ON messages (lane, state) WHERE wake_at IS NULL AND state <> 'sent';
DROP INDEX messages_uncertain;
ALTER TABLE campaigns ADD COLUMN is_again INTEGER NOT NULL DEFAULT 0;
ALTER TABLE campaigns ADD COLUMN rate TEXT;
`,
} as const;
