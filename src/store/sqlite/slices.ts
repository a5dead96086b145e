/** Work of any size without holding the write lock for long: a commit a slice. */
import type { AcceptCounts, Ack } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { limitSettings } from '../../engine/rules/limits.js';
import type { Leased } from '../queue.js';
import type { Core } from './core.js';
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
	for (;;) {
		const slice = await writer.write(() => core.stageSlice({ ...command, limit: sliceSize }));
		if (slice === null) return null;
		counts.staged += slice.counts.staged;
		counts.suppressed += slice.counts.suppressed;
		counts.rejected += slice.counts.rejected;
		// Each slice has those of the slices before it as well.
		if (slice.isDone) return { position: slice.position, counts, rejects: slice.rejects };
	}
}

/**
 * Canceled in one stroke; what was only staged is then removed, for nobody was ever to get it. Broken off in the
 * middle, what is left reads as canceled.
 */
export async function cancelInSlices(
	core: Core,
	writer: Writer,
	command: { mailing: Uuid; now: Micros },
): Promise<boolean> {
	const isKnown = await writer.write(() => core.cancelMailing(command));
	const slice = { mailing: command.mailing, limit: sliceSize };
	while (isKnown && (await writer.write(() => core.dropStaged(slice))) === sliceSize);
	return isKnown;
}

/** Cheap ones: about a twentieth of a second of work. */
const wakingSliceSize = 10_000;

/** Other limits hold at once; that those who waited for the old ones are woken is gone on with by whoever leases next. */
export async function putSettingsInSlices(
	core: Core,
	writer: Writer,
	command: Parameters<Core['putSettings']>[0],
	limit = wakingSliceSize,
): Promise<void> {
	await writer.write(() => core.putSettings(command));
	if (!Object.keys(command.values).some((name) => Object.hasOwn(limitSettings, name))) return;
	while (await writer.write(() => core.wakeHeldSlice({ limit })));
}

/** In transactions of their own: a million that wait for a limit must not hold up every other write. */
export async function leaseInSlices(
	core: Core,
	writer: Writer,
	command: Parameters<Core['lease']>[0],
	limit = wakingSliceSize,
): Promise<Leased[]> {
	for (;;) {
		const { leased, isCut } = await writer.write(() =>
			core.wakeHeldSlice({ limit })
				? { leased: [], isCut: true }
				: { leased: core.lease(command), isCut: core.wasLeaseCut() },
		);
		if (leased.length > 0 || !isCut) return leased;
	}
}

/** How many rows of an import fit into the time that the lock may be held for. */
export interface SliceSize {
	rows(): number;
	/** So many rows held the lock for so long, the wait for the disk included. */
	took(rows: number, heldMs: number): void;
}

const fewestRows = 250;

/** Learns from what slices took: a row costs ten times as much where the index is large and the disk slow. */
export function createSliceSize(maxMs: () => number): SliceSize {
	let rows = 1_000;
	return {
		rows: () => rows,
		took: (put, heldMs) => {
			// Of a few rows most is the wait for the disk, which says nothing about more of them.
			if (put < fewestRows) return;
			const fitting = (put * maxMs()) / Math.max(heldMs, 1);
			rows = Math.round(Math.max(fewestRows, put / 2, Math.min(fitting, put * 2)));
		},
	};
}
