/**
 * Bounces by time: the report asks how many of a range's were of messages never sent, and bounces are few among the
 * firsts. Never edited: what comes later is a later migration.
 */
export const bouncedMessages = {
	version: 9,
	name: 'bounced messages',
	sql: `
CREATE INDEX message_firsts_bounced ON message_firsts (first_at) WHERE type IN ('SOFTBOUNCED', 'HARDBOUNCED');
`,
} as const;
