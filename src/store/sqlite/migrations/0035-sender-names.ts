/** A sender has a name and a Reply-To (api-decisions 48). */
export const senderNames = {
	version: 35,
	name: 'sender-names',
	sql: `
ALTER TABLE senders ADD COLUMN full_name TEXT NOT NULL DEFAULT '';
ALTER TABLE senders ADD COLUMN reply_to_email TEXT NOT NULL DEFAULT '';
`,
} as const;
