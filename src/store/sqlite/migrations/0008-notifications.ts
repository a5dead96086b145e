/**
 * Notifications on their way: who is due by webhook, what each attempt came to, and which webhooks said that they are
 * gone. Never edited: what comes later is a later migration.
 */
export const notifications = {
	version: 8,
	name: 'notifications',
	sql: `
-- due_at is when a sender may take the row: while it waits, and the end of the lease while it is leased; NULL once
-- it is final. So expired leases come back through the same index as everything else.
ALTER TABLE webhook_deliveries ADD COLUMN type TEXT NOT NULL DEFAULT '';
ALTER TABLE webhook_deliveries ADD COLUMN error TEXT;
ALTER TABLE webhook_deliveries ADD COLUMN attempted_at INTEGER;
-- Attempts of earlier rounds: a replay begins the schedule anew.
ALTER TABLE webhook_deliveries ADD COLUMN attempts_before INTEGER NOT NULL DEFAULT 0;

-- By webhook, so that one with a million rows due keeps no other waiting.
CREATE INDEX webhook_deliveries_turn ON webhook_deliveries (webhook_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries (message_id);
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (created_at);

-- One row a call; status_code is NULL where there was no answer, and error says why.
CREATE TABLE webhook_attempts (
	delivery_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	at INTEGER NOT NULL,
	status_code INTEGER,
	error TEXT,
	duration_ms INTEGER NOT NULL,
	PRIMARY KEY (delivery_id, number)
) STRICT, WITHOUT ROWID;

-- When its target answered 410: nothing is sent to it until somebody changes the webhook or replays deliveries.
ALTER TABLE webhooks ADD COLUMN stopped_at INTEGER;
`,
} as const;
