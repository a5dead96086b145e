/** Mailings that go by the send API of a service, in the same queue as those that go by SMTP. Never edited. */
export const couriers = {
	version: 14,
	name: 'couriers',
	sql: `
-- Who carries the messages of a mailing: 'smtp', the mail server of this database, or 'api', the send API of a service.
ALTER TABLE mailings ADD COLUMN courier TEXT NOT NULL DEFAULT 'smtp';

-- The send call as JSON, without recipients and without what differs between them. NULL: it goes by SMTP.
ALTER TABLE submissions ADD COLUMN request TEXT;

-- The fence of the lease under which a call of the API began. The message of a lost lease of that fence may have been sent.
ALTER TABLE messages ADD COLUMN called INTEGER;

CREATE INDEX messages_uncertain ON messages (lane) WHERE state = 'uncertain';
`,
} as const;
