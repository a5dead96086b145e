/** Who asks, as far as a request shows it. */
import type { Visitor } from '../../delivery/tracking/events.js';
import type { PublicRequest } from '../messages.js';

export function visitorOf({ ip, headers }: PublicRequest): Visitor {
	return { ip, userAgent: headers['user-agent'] ?? null };
}
