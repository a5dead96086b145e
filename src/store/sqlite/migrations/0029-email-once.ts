/**
 * From here on a subscriber's `email` is '' where it equals `email_key`. Rows that have it twice stay as they are and are
 * read alike; an older program would show no address, so it must not open the database.
 */
export const emailOnce = {
	version: 29,
	name: 'email-once',
	sql: '',
} as const;
