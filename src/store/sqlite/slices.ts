/** Work of any size without holding the write lock for long: one commit a slice. */

import type { AcceptCounts, Ack } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { limitSettings } from '../../engine/rules/limits.js';
import type { Command } from '../operations.js';
import type { Leased } from '../queue.js';
import type { Core } from './core.js';
import type { Writer } from './writer.js';

/** About a tenth of a second of work. */
const sliceSize = 2_000;
/** Of a trial, see `Writer`. */
const allRows = Number.MAX_SAFE_INTEGER;

/**
 * The place in the list commits with each slice, and nothing is leased before the release: a repeated call continues an
 * interrupted one. Null: no such campaign or list, or it is not staged any more.
 */
export async function addInSlices(
	core: Core,
	writer: Writer,
	command: { campaign: Uuid; list_id: number; now: Micros },
): Promise<Ack<AcceptCounts> | null> {
	const limit = writer.isTrial ? allRows : sliceSize;
	const counts: AcceptCounts = { staged: 0, suppressed: 0, rejected: 0 };
	let left_out = 0;
	for (;;) {
		const slice = await writer.write(() => core.stageSlice({ ...command, limit }));
		if (slice === null) return null;
		counts.staged += slice.counts.staged;
		counts.suppressed += slice.counts.suppressed;
		counts.rejected += slice.counts.rejected;
		left_out += slice.counts.left_out ?? 0;
		if (left_out > 0) counts.left_out = left_out;
		// Each slice includes the rejects of the slices before it.
		if (slice.isDone) return { position: slice.position, counts, rejects: slice.rejects };
	}
}

/**
 * Cancels in one step, then removes messages that were only staged and would never be sent. After an interruption the
 * rest reads as canceled. With `forget` the campaign goes then, too, unless it was released.
 */
export async function cancelInSlices(
	core: Core,
	writer: Writer,
	command: { campaign: Uuid; forget?: boolean; now: Micros },
): Promise<boolean> {
	const isKnown = await writer.write(() => core.cancelCampaign(command));
	const limit = writer.isTrial ? allRows : sliceSize;
	const slice = { campaign: command.campaign, limit };
	while (isKnown && (await writer.write(() => core.dropStaged(slice))) === limit);
	if (isKnown && command.forget) await writer.write(() => core.forgetCampaign(command));
	return isKnown;
}

/** Cheap rows: about a twentieth of a second of work. */
const wakingSliceSize = 10_000;

/** New limits apply at once. The next lease continues waking the messages that waited for the old ones. */
export async function putSettingsInSlices(
	core: Core,
	writer: Writer,
	command: Command<'putSettings'>,
	limit = wakingSliceSize,
): Promise<void> {
	await writer.write(() => core.putSettings(command));
	if (writer.isTrial) return;
	if (!Object.keys(command.values).some((name) => Object.hasOwn(limitSettings, name))) return;
	while (await writer.write(() => core.wakeHeldSlice({ limit })));
}

/** In transactions of their own: waking a million messages that wait for a limit must not hold up all other writes. */
export async function leaseInSlices(
	core: Core,
	writer: Writer,
	/** With the time of the transaction that runs it. */
	command: () => Command<'lease'>,
	limit = wakingSliceSize,
): Promise<Leased[]> {
	for (;;) {
		const { leased, isCut } = await writer.write(() =>
			core.wakeHeldSlice({ limit })
				? { leased: [], isCut: true }
				: { leased: core.lease(command()), isCut: core.wasLeaseCut() },
		);
		if (leased.length > 0 || !isCut) return leased;
	}
}

/** How many rows of an import fit into the time for which the lock may be held. */
export interface SliceSize {
	rows(): number;
	/** Records that a number of rows held the lock for this time, the wait for the disk included. */
	took(rows: number, heldMs: number): void;
}

const fewestRows = 250;

/** Learns from the time of earlier slices: a row costs ten times as much where the index is large and the disk slow. */
export function createSliceSize(maxMs: () => number): SliceSize {
	let rows = 1_000;
	return {
		rows: () => rows,
		took: (put, heldMs) => {
			// With few rows most of the time is the wait for the disk, which says nothing about larger slices.
			if (put < fewestRows) return;
			const fitting = (put * maxMs()) / Math.max(heldMs, 1);
			rows = Math.round(Math.max(fewestRows, put / 2, Math.min(fitting, put * 2)));
		},
	};
}
