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

export type Topic = (typeof topicNames)[number];
