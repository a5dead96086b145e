/** What `mailctl help` has texts on, without loading them. */

/** In the order they are listed. */
export const topicNames = [
	'exit-codes',
	'output',
	'environment',
	'sending',
	'importing',
	'states',
	'bounces',
	'notifications',
] as const;

/** A word behind `mailctl help` that is no command. */
export type Topic = (typeof topicNames)[number];
