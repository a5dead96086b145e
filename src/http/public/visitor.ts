/** Who asks, as far as a request shows it. */
import type { Visitor } from '../../delivery/tracking/events.js';
import type { PublicRequest } from '../messages.js';

/** A User-Agent that is missing is null; one that is there is a stranger’s text. */
export function visitorOf({ ip, headers }: PublicRequest): Visitor {
	return { ip, userAgent: headers['user-agent'] ?? null };
}
