import { setTimeout } from 'node:timers/promises';
import type { AcceptCounts, ListAck } from '../api/campaigns.js';
import type { Micros } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';
import type { CampaignCanceled } from './campaigns.js';
import type { Core } from './core/core.js';
import type { SliceOfExpired } from './core/retention.js';
import type { Command, Writes } from './operations.js';
import type { Leased } from './queue.js';
import type { Means } from './store.js';

export type Step = <Name extends keyof Core>(
	name: Name,
	command: Parameters<Core[Name]>[0],
) => Promise<Awaited<ReturnType<Core[Name]>>>;

/** A dry run rolls back each slice, so it does all work in one: a second slice would find the same rows. */
export interface Steps {
	step: Step;
	readonly isTrial: boolean;
}

export interface SliceSize {
	rows(): number;
	took(rows: number, heldMs: number): void;
}

const fewestRows = 250;

/** Adapts the size to the time of earlier slices: with a large index on a slow disk, a row takes ten times as long. */
export function createSliceSize(maxMs: () => number): SliceSize {
	let rows = 1_000;
	return {
		rows: () => rows,
		took: (put, heldMs) => {
			// A small slice mostly waits for the disk, so its time says nothing about larger slices.
			if (put < fewestRows) return;
			const fitting = (put * maxMs()) / Math.max(heldMs, 1);
			rows = Math.round(Math.max(fewestRows, put / 2, Math.min(fitting, put * 2)));
		},
	};
}

const sliceSize = 2_000;
const mostStaged = 10_000;

interface StagingSize {
	rows(): number;
	took(rows: number): void;
}

const allRows = Number.MAX_SAFE_INTEGER;

const alwaysAsMany: StagingSize = { rows: () => sliceSize, took: () => undefined };

export function inSlices(steps: Steps, stagingSize = alwaysAsMany) {
	return {
		addListToCampaign: (command, means?: Means) => addInSlices(stoppable(steps, means), command, stagingSize),
		cancelCampaign: (command) => cancelInSlices(steps, command),
		deleteList: (command, means?: Means) => deleteInSlices(stoppable(steps, means), command),
		clearList: (command, means?: Means) => clearInSlices(stoppable(steps, means), command),
		deleteField: (command, means?: Means) => deleteFieldInSlices(stoppable(steps, means), command),
	} satisfies Partial<Writes>;
}

export function stoppable({ step, isTrial }: Steps, { signal }: Means = {}): Steps {
	const wanted: Step = (name, command) => {
		signal?.throwIfAborted();
		return step(name, command);
	};
	return { step: wanted, isTrial };
}

/** Each slice commits its position in the list, so a repeated call continues an interrupted one. */
async function addInSlices(
	{ step, isTrial }: Steps,
	{ for_ms = Infinity, ...command }: { campaign: Uuid; list_id: number; now: Micros; for_ms?: number },
	size: StagingSize,
): Promise<ListAck | null> {
	const began = performance.now();
	const counts: AcceptCounts = { staged: 0, suppressed: 0, rejected: 0 };
	let left_out = 0;
	for (;;) {
		const limit = isTrial ? allRows : Math.min(size.rows(), mostStaged);
		const slice = await step('stageSlice', { ...command, limit });
		if (slice === null) return null;
		size.took(limit);
		counts.staged += slice.counts.staged;
		counts.suppressed += slice.counts.suppressed;
		counts.rejected += slice.counts.rejected;
		left_out += slice.counts.left_out ?? 0;
		if (left_out > 0) counts.left_out = left_out;
		const ack = { position: slice.position, counts, rejects: slice.rejects };
		if (slice.isDone) return ack;
		if (performance.now() - began >= for_ms) return { ...ack, is_partial: true };
	}
}

/** An interruption may leave messages of the campaign, but they show as canceled. */
async function cancelInSlices(
	{ step, isTrial }: Steps,
	command: Command<'cancelCampaign'>,
): Promise<CampaignCanceled> {
	const outcome = await step('cancelCampaign', command);
	const limit = isTrial ? allRows : sliceSize;
	if (outcome.kind === 'not_found') return await cancelCallsInSlices(step, { ...command, limit });
	if (outcome.kind !== 'canceled') return outcome;
	const slice = { campaign: command.campaign, limit };
	while ((await step('dropStaged', slice)) === limit);
	if (command.forget) await step('forgetCampaign', command);
	return outcome;
}

async function cancelCallsInSlices(
	step: Step,
	command: Command<'cancelCampaign'> & { limit: number },
): Promise<CampaignCanceled> {
	for (let after = 0; ; ) {
		const slice = await step('cancelCalls', { ...command, after });
		if (slice.kind !== 'canceled') return slice;
		if (slice.next === null) return { kind: 'canceled' };
		after = slice.next;
	}
}

async function emptyInSlices({ step, isTrial }: Steps, list_id: number, limit: number): Promise<number> {
	let gone = 0;
	for (let slice = limit; !isTrial && slice === limit; gone += slice)
		slice = await step('dropSubscribers', { list_id, limit, isFirst: gone === 0 });
	return gone;
}

export async function deleteInSlices(
	steps: Steps,
	command: Command<'deleteList'>,
	limit = sliceSize,
): Promise<boolean> {
	await emptyInSlices(steps, command.id, limit);
	return await steps.step('deleteList', command);
}

async function clearInSlices(
	steps: Steps,
	command: Command<'clearList'>,
	limit = sliceSize,
): Promise<number | null> {
	const gone = await emptyInSlices(steps, command.id, limit);
	const rest = await steps.step('clearList', command);
	return rest === null ? null : gone + rest;
}

/** Deletes the field itself in the last step, so that a repeated call finishes the work. */
export async function deleteFieldInSlices(
	{ step, isTrial }: Steps,
	command: Command<'deleteField'>,
	limit = sliceSize,
): Promise<boolean> {
	let after = isTrial ? null : 0;
	while (after !== null) after = await step('dropFieldUses', { id: command.id, after, limit });
	return await step('deleteField', command);
}

/** Setting a million messages aside for a limit in one transaction would block other writes for too long. */
export async function leaseInSlices(
	leaseSlice: () => Promise<{ leased: Leased[]; isCut: boolean }>,
): Promise<Leased[]> {
	for (;;) {
		const { leased, isCut } = await leaseSlice();
		if (leased.length > 0 || !isCut) return leased;
	}
}

/** After each slice, rests as long as it took, so that others can write. */
export async function dropInSlices<Drop>(
	parts: readonly { drop: Drop; slice: number }[],
	now: Micros,
	run: (drop: Drop, command: SliceOfExpired) => Promise<{ next: number | null }>,
): Promise<void> {
	const { onlyLinks } = await import('../content/links.js');
	for (const { drop, slice } of parts)
		for (let after: number | null = 0; after !== null; ) {
			const began = performance.now();
			after = (await run(drop, { now, limit: slice, after, onlyLinks })).next;
			if (after !== null) await setTimeout(performance.now() - began);
		}
}
