/**
 * What waits is counted by state along its index, without a look at the messages. The number of a message stands before its
 * state, so that a lane is read in order. Never edited: what comes later is a later migration.
 */
export const waitingStates = {
	version: 26,
	name: 'waiting-states',
	sql: `
DROP INDEX messages_due;
CREATE INDEX messages_due ON messages (lane, wake_at, id, state) WHERE wake_at IS NOT NULL;
`,
} as const;
