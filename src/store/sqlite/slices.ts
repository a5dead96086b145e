/** Expanding a list of any size without holding the write lock for long: slices, each its own commit. */
import type { AcceptCounts, Ack, Reject } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Core } from './core.js';
import { maxListedRejects } from './mailing-rows.js';
import type { Writer } from './writer.js';

/** About a tenth of a second of work. */
const sliceSize = 2_000;

/**
 * The place in the list commits with each slice, and nothing is leased before the release: broken off in the middle
 * and called again, it goes on. Null: no such mailing or list, or it is staged no longer.
 */
export async function addInSlices(
	core: Core,
	writer: Writer,
	command: { mailing: Uuid; list_id: number; now: Micros },
): Promise<Ack<AcceptCounts> | null> {
	const counts: AcceptCounts = { staged: 0, suppressed: 0, rejected: 0 };
	const rejects: Reject[] = [];
	for (;;) {
		const slice = await writer.write(() => core.stageSlice({ ...command, limit: sliceSize }));
		if (slice === null) return null;
		counts.staged += slice.counts.staged;
		counts.suppressed += slice.counts.suppressed;
		counts.rejected += slice.counts.rejected;
		rejects.push(...slice.rejects.slice(0, maxListedRejects - rejects.length));
		if (slice.isDone) return { position: slice.position, counts, rejects };
	}
}
