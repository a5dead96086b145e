/** What a run starts from. */
import type { DeliveryCounts } from '../api/delivery-counts.js';

/** A new object each time: a run counts in it. */
export function noCounts(): DeliveryCounts {
	return { sent: 0, deferred: 0, bounced: 0, failed: 0, uncertain: 0, canceled: 0 };
}
