/** Whether messages have a pixel and counted links; those of before have. */
export const tracking = {
	version: 34,
	name: 'tracking',
	sql: `
ALTER TABLE submissions ADD COLUMN tracking TEXT NOT NULL DEFAULT 'on';
`,
} as const;
