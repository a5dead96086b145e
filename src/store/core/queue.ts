/** The queue's lease: which messages a worker may deliver, and for how long. `settle.ts` records the outcomes. */

import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { MessageState } from '../../api/records.js';
import { joinVariables } from '../../engine/rules/meta.js';
import type { Command, Operations } from '../operations.js';
import type { Leased } from '../queue.js';
import type { Slices } from './campaigns/rows.js';
import { fatalSettlement, openCompositions } from './compositions.js';
import { type Limiter, openLimiter } from './limits/limits.js';
import { createWaking, readLimits } from './limits/turns.js';
import { cancelMessage } from './message-actions.js';
import { closeIfDone, lanesOf, sweepCanceled } from './queue-lanes.js';
import { isHeld } from './queue-state.js';
import { parseTexts, parseUsed, readEnvelope } from './rows.js';
import { loseLeases, lostCall, settle } from './settle.js';
import type { Sql } from './sql.js';
import { lanes, stoppedCopies } from './submissions.js';
import { unwantedBecause } from './suppressions.js';

interface LeaseCommand extends Omit<Command<'lease'>, 'perSecond'> {
	/** Null: no limit is set. */
	limiter: Limiter | null;
	/** The end of the lane's window. */
	leave_by?: Micros | null;
}

/** Each runs in one transaction of the caller. */
export function createQueue(sql: Sql) {
	const { wakeHeldSlice } = createWaking(sql);
	return {
		lease: async (command) => (await leaseWithin(sql, command)).leased,
		leaseSlice: async ({ limit, ...command }) =>
			(await wakeHeldSlice({ limit })) ? { leased: [], isCut: true } : await leaseWithin(sql, command),
		renew: async ({ owner, fences, until }) => {
			for (const { message, fence } of fences) {
				await sql.run(
					`UPDATE messages
					SET wake_at = ?
					WHERE uuid = ? AND fence = ? AND lease_owner = ? AND state = 'leased'`,
					until,
					message,
					fence,
					owner,
				);
			}
		},
		settle: ({ settlements }) => settle(sql, settlements),
	} satisfies Partial<Operations & Slices>;
}

/** Within the limits. `isCut`: other messages may be due. */
async function leaseWithin(
	sql: Sql,
	{ perSecond, ...command }: Command<'lease'>,
): Promise<{ leased: Leased[]; isCut: boolean }> {
	const limits = await readLimits(sql, perSecond);
	const limiter = limits.length === 0 ? null : await openLimiter(sql, limits, command.now);
	const max = Math.min(command.max, limiter?.room ?? command.max);
	const leased = max > 0 ? await lease(sql, { ...command, max, limiter }) : [];
	await limiter?.finish();
	return { leased, isCut: limiter?.isCut ?? false };
}

interface DueRow {
	id: number;
	uuid: string;
	submission_seq: number;
	to_email: string;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	variables: string;
	attempts: number;
	fence: number;
	called: number | null;
	lease_owner: string | null;
	state: MessageState;
	created_at: Micros;
}

const columns =
	'id, uuid, submission_seq, to_email, to_key, list_id, subscriber_id, variables, attempts, fence, called, lease_owner, state, created_at';

async function lease(sql: Sql, command: LeaseCommand): Promise<Leased[]> {
	if (await isHeld(sql)) return [];
	if (command.scope !== null && 'submission' in command.scope) {
		const ofSubmission = await leaseSubmission(sql, command, command.scope.submission);
		if (ofSubmission !== null) return ofSubmission;
	}
	const open = await lanesOf(sql, command.scope, command.now);
	if (command.alone) for (const { lane } of open.bulk) await loseLeases(sql, { ...command, lane });
	const leased: Leased[] = [];
	// Transactional first; then every lane its share, then once more what the others left over.
	if (open.hasTransactional)
		leased.push(...(await leaseLane(sql, command, lanes.transactional, command.max)));
	for (const round of [1, 2]) {
		let left = open.bulk.length;
		for (const { lane, leave_by } of open.bulk) {
			const room = command.max - leased.length;
			if (room <= 0) break;
			const share = round === 1 ? Math.ceil(room / left) : room;
			leased.push(...(await leaseLane(sql, { ...command, leave_by }, lane, share)));
			left -= 1;
		}
	}
	for (const lane of open.canceled) await sweepCanceled(sql, lane, command.now);
	for (const lane of [...open.bulk.map(({ lane }) => lane), ...open.canceled]) await closeIfDone(sql, lane);
	return leased;
}

/** Messages of one send call, at most a thousand; null when it is a campaign's. */
async function leaseSubmission(
	sql: Sql,
	command: LeaseCommand,
	submission: string,
): Promise<Leased[] | null> {
	const row = await sql.get<{ seq: number; campaign_seq: number | null }>(
		'SELECT seq, campaign_seq FROM submissions WHERE id = ?',
		submission,
	);
	if (row === undefined) return [];
	if (row.campaign_seq !== null) return null;
	return await takeUntilFull(sql, command, command.max, (limit) =>
		sql.all<DueRow>(
			// messages_of_submission
			`SELECT ${columns}
			FROM messages
			WHERE submission_seq = ? AND +wake_at <= ?
			ORDER BY id
			LIMIT ?`,
			row.seq,
			command.now,
			limit,
		),
	);
}

async function leaseLane(sql: Sql, command: LeaseCommand, lane: number, max: number): Promise<Leased[]> {
	const taken = await takeUntilFull(sql, command, max, (limit) =>
		sql.all<DueRow>(
			// messages_due (lane, wake_at, id): staged rows of other campaigns are never looked at.
			`SELECT ${columns}
			FROM messages ${sql.dialect.using('messages_due')}
			WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?
			ORDER BY wake_at, id
			LIMIT ?`,
			lane,
			command.now,
			limit,
		),
	);
	if (lane > 0 && taken.length > 0) {
		await sql.run('UPDATE campaigns SET last_leased_at = ? WHERE seq = ?', command.now, lane);
	}
	return taken;
}

/** Unwanted rows are canceled and replaced by the next ones. */
async function takeUntilFull(
	sql: Sql,
	command: LeaseCommand,
	max: number,
	due: (limit: number) => Promise<DueRow[]>,
): Promise<Leased[]> {
	const leased: Leased[] = [];
	const shared = new Map<number, Shared>();
	const compositions = await openCompositions(sql, command.now);
	command.limiter?.startLane();
	while (leased.length < max) {
		const rows = await due(max - leased.length);
		const before = leased.length;
		for (const row of rows) {
			if (command.limiter?.isLaneFull) return leased;
			const submission =
				shared.get(row.submission_seq) ?? (await readShared(sql, row.submission_seq, command.now));
			shared.set(row.submission_seq, submission);
			const message = await takeOne(sql, row, { ...command, submission, compositions });
			if (message !== null) leased.push(message);
		}
		if (leased.length - before === rows.length) break;
	}
	return leased;
}

/** Null: the message may not go now, or never. */
async function takeOne(
	sql: Sql,
	row: DueRow,
	command: LeaseCommand & { submission: Shared; compositions: Awaited<ReturnType<typeof openCompositions>> },
): Promise<Leased | null> {
	const { submission, limiter, now } = command;
	if (row.state === 'leased' && row.called === row.fence) return await keepCall(sql, row, command);
	const why = await unwantedBecause(sql, row, submission.type, now);
	if (why !== null) {
		await cancelMessage(sql, row.id, why);
		return null;
	}
	const care = await command.compositions.judge(row);
	if (care === 'fatal') await settle(sql, [fatalSettlement(row, now)]);
	if (care === 'fatal' || care === 'waits') return null;
	if (limiter !== null && !(await limiter.admit(row, submission.type))) return null;
	const message = await take(sql, row, submission, command);
	return care === 'careful' ? { ...message, is_suspect: true } : message;
}

/** A call is under way, or was when its worker ended; the lease of a worker that slept goes on. */
async function keepCall(sql: Sql, row: DueRow, { owner, until, now }: LeaseCommand): Promise<null> {
	if (row.lease_owner === owner) await sql.run('UPDATE messages SET wake_at = ? WHERE id = ?', until, row.id);
	else await settle(sql, [lostCall(row, now)]);
	return null;
}

interface Shared {
	id: string;
	type: 'TRANSACTIONAL' | 'BULK';
	/** The variables that the context gives to every message of the submission. */
	variables: Record<string, string>;
	released_at: Micros | null;
	starts_at: Micros | null;
	send_window: string | null;
	stopped: EmailKey[];
	/**
	 * Goes by an API, in calls of all messages without variables of their own (`shared`), or a request for each (`own`).
	 */
	calls: 'shared' | 'own' | null;
}

async function readShared(sql: Sql, seq: number, now: Micros): Promise<Shared> {
	const row = await sql.get<{
		id: string;
		type: 'TRANSACTIONAL' | 'BULK';
		context: string;
		variables: string;
		envelope: string;
		released_at: Micros | null;
		starts_at: Micros | null;
		send_window: string | null;
		calls: Shared['calls'];
	}>(
		`SELECT s.id, s.type, s.context, s.variables, s.envelope, g.released_at,
			g.starts_at, g.send_window,
			CASE WHEN s.request IS NULL THEN NULL WHEN g.requests = 1 THEN 'own' ELSE 'shared' END AS calls
		FROM submissions s
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE s.seq = ?`,
		seq,
	);
	if (row === undefined) throw new Error(`submission ${seq} of a message is missing`);
	const { id, type, released_at, starts_at, send_window, calls } = row;
	const variables = joinVariables({}, parseUsed(row.variables), parseTexts(row.context));
	const stopped = await stoppedCopies(sql, readEnvelope(row.envelope), now);
	return { id, type, released_at, starts_at, send_window, variables, stopped, calls };
}

async function take(sql: Sql, row: DueRow, submission: Shared, command: LeaseCommand): Promise<Leased> {
	const { owner, until, leave_by = null } = command;
	await sql.run(
		`UPDATE messages
		SET state = 'leased', lease_owner = ?, wake_at = ?, fence = fence + 1
		WHERE id = ?`,
		owner,
		until,
		row.id,
	);
	return {
		message: row.uuid,
		fence: row.fence + 1,
		submission: submission.id,
		to: row.to_email,
		list_id: row.list_id,
		variables: { ...submission.variables, ...parseTexts(row.variables) },
		attempts: row.attempts,
		...(mayShare(row, submission) && { call: submission.id }),
		...(submission.stopped.length > 0 && { stopped_copies: submission.stopped }),
		...(leave_by !== null && { leave_by }),
		created_at: await beganAt(sql, row, submission, command),
	};
}

/**
 * The time from which tries are counted, and the date of the mail: the release. Where a window holds messages back for
 * days, it is their first try.
 */
async function beganAt(
	sql: Sql,
	{ id, created_at }: DueRow,
	{ released_at, starts_at, send_window }: Shared,
	{ now }: LeaseCommand,
): Promise<Micros> {
	if (send_window === null) return Math.max(released_at ?? created_at, starts_at ?? 0);
	const first = await sql.get<{ at: Micros }>(
		'SELECT at FROM attempts WHERE message_id = ? AND number = 1',
		id,
	);
	return first?.at ?? now;
}

function mayShare({ variables }: DueRow, { calls }: Shared): boolean {
	return calls === 'own' || (calls === 'shared' && variables === '{}');
}
