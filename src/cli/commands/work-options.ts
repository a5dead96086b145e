/** The pace of a process that sends on this database. */
import { answer } from '../render/columns.js';
import { sendOptions } from './send/options.js';

export const workOptions = {
	connections: sendOptions.connections,
	rate: {
		kind: 'text',
		placeholder: 'N/s',
		summary: 'at most so many messages a second (10/s), minute (600/m) or hour (100/h)',
	},
} as const;

/** The keys of the answer. */
export const workedOff = answer('sent', 'deferred', 'bounced', 'failed', 'uncertain', 'canceled', 'queued');

/** Details without room in a line of help. */
export const aboutRate =
	'A process with a --rate also counts the messages of others with one: two workers with --rate 10/s send 10 a second together. The setting send_limit holds for all of them, with a rate or without.';
