import type { Migration } from '../migrations.js';

/** The same change as on SQLite. */
export const waitingStates: Migration = {
	version: 26,
	name: 'waiting-states',
	sql: `
DROP INDEX messages_due;
CREATE INDEX messages_due ON messages (lane, wake_at, id, state) WHERE wake_at IS NOT NULL;
`,
};
