/** The time that the database has seen pass: JSON, NULL before the first look (`core/retention/proven-time.ts`). */
export const provenTime = {
	version: 37,
	name: 'proven-time',
	sql: 'ALTER TABLE clock ADD COLUMN proven TEXT;',
} as const;
