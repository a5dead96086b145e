/** The topics of `mailctl help`, without their texts. */

export const topicNames = [
	'options',
	'exit-codes',
	'output',
	'environment',
	'sending',
	'importing',
	'states',
	'bounces',
	'notifications',
] as const;

/** A topic of `mailctl help`. */
export type Topic = (typeof topicNames)[number];
