/** What recipients read in place of a list's name; NULL: the name itself. */
export const listPublicNames = {
	version: 20,
	name: 'list-public-names',
	sql: `
ALTER TABLE lists ADD COLUMN public_name TEXT;
`,
} as const;
