/** What is staged and released to many is a campaign, in the schema too. Never edited: what comes later is a later migration. */
export const campaigns = {
	version: 16,
	name: 'campaigns',
	sql: `
ALTER TABLE mailings RENAME TO campaigns;
ALTER TABLE mailing_lists RENAME TO campaign_lists;
ALTER TABLE mailing_acks RENAME TO campaign_acks;
ALTER TABLE mailing_results RENAME TO campaign_results;
ALTER TABLE campaign_lists RENAME COLUMN mailing_seq TO campaign_seq;
ALTER TABLE campaign_acks RENAME COLUMN mailing_seq TO campaign_seq;
ALTER TABLE campaign_results RENAME COLUMN mailing_seq TO campaign_seq;
ALTER TABLE submissions RENAME COLUMN mailing_seq TO campaign_seq;

DROP INDEX mailings_open;
CREATE INDEX campaigns_open ON campaigns (last_leased_at) WHERE has_open_work = 1;
DROP INDEX submissions_of_mailing;
CREATE INDEX submissions_of_campaign_seq ON submissions (campaign_seq) WHERE campaign_seq IS NOT NULL;
`,
} as const;
