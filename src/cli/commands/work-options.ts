/** How fast whoever sends on this database does so. */
import { sendOptions } from './send/options.js';

export const workOptions = {
	connections: sendOptions.connections,
	rate: {
		kind: 'text',
		placeholder: 'N/s',
		summary: 'at most so many messages a second (10/s), minute (600/m) or hour (100/h)',
	},
} as const;

/** What a line of help has no room for. */
export const aboutRate =
	'Whoever sends with a --rate counts what the others with one send, too: two workers with --rate 10/s send 10 a second together. The setting send_limit holds for all of them, with a rate or without.';
