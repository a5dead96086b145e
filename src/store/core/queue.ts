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
import { cancelMessage } from './messages/actions.js';
import { endTurns, lanesOf, loseLeases, lostCall, type OpenLanes, takeTurns } from './queue-lanes.js';
import { isHeld } from './queue-state.js';
import { parseTexts, parseUsed, readEnvelope } from './rows.js';
import { fenceColumns, fencesAsJson, settle } from './settle.js';
import type { Sql } from './sql.js';
import { lanes, stoppedCopies } from './submissions.js';
import { openSuppressions, type ReasonsAgainst, unwantedBecause } from './suppressions.js';

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
			sql.write(
				`UPDATE messages
				SET wake_at = ?
				FROM ${sql.dialect.table(fenceColumns, 'held')}
				WHERE uuid = held.message AND fence = held.at_fence AND lease_owner = ? AND state = 'leased'`,
				until,
				fencesAsJson(fences),
				owner,
			);
		},
		settle: ({ settlements }) => settle(sql, settlements),
	} satisfies Partial<Operations & Slices>;
}

/** Within the limits. `isCut`: other messages may be due. */
async function leaseWithin(
	sql: Sql,
	{ perSecond, ...command }: Command<'lease'>,
): Promise<{ leased: Leased[]; isCut: boolean }> {
	const [limits, isPaused, open] = await sql.together([
		() => readLimits(sql, perSecond),
		() => isHeld(sql),
		() => lanesOf(sql, command.scope, command.now),
	]);
	if (isPaused) return { leased: [], isCut: false };
	if (limits.length > 0) sql.alone();
	const limiter = limits.length === 0 ? null : await openLimiter(sql, limits, command.now);
	const max = Math.min(command.max, limiter?.room ?? command.max);
	const leased = max > 0 ? await lease(sql, { ...command, max, limiter }, open) : [];
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
	/** Of the subscriber; null: there is none any more. */
	is_active: number | null;
	disable_reason: string | null;
}

const columns = `m.id, m.uuid, m.submission_seq, m.to_email, m.to_key, m.list_id, m.subscriber_id, m.variables,
	m.attempts, m.fence, m.called, m.lease_owner, m.state, m.created_at, p.is_active, p.disable_reason`;

/** Due messages with their subscribers. The limit goes before the join. */
function withSubscribers({ dialect: { skipLocked } }: Sql, messages: string, ...order: string[]): string {
	return `SELECT ${columns}
		FROM (SELECT * FROM messages ${messages} ORDER BY ${order.join(', ')} LIMIT ? ${skipLocked}) m
		LEFT JOIN subscribers p ON p.id = m.subscriber_id
		ORDER BY ${order.map((column) => `m.${column}`).join(', ')}`;
}

async function lease(sql: Sql, command: LeaseCommand, open: OpenLanes): Promise<Leased[]> {
	if (command.scope !== null && 'submission' in command.scope) {
		const ofSubmission = await leaseSubmission(sql, command, command.scope.submission);
		if (ofSubmission !== null) return ofSubmission;
	}
	if (command.alone) for (const { lane } of open.bulk) await loseLeases(sql, { ...command, lane });
	const leased: Leased[] = [];
	const take = async (lane: number, max: number, leave_by: Micros | null = null) => {
		const taken = await leaseLane(sql, { ...command, leave_by }, lane, max);
		leased.push(...taken);
		return taken.length;
	};
	if (open.hasTransactional) await take(lanes.transactional, command.max);
	const served = await takeTurns(open.bulk, command.max - leased.length, take);
	endTurns(sql, { open, served, now: command.now });
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
			withSubscribers(sql, 'WHERE submission_seq = ? AND +wake_at <= ?', 'id'),
			row.seq,
			command.now,
			limit,
		),
	);
}

async function leaseLane(sql: Sql, command: LeaseCommand, lane: number, max: number): Promise<Leased[]> {
	return await takeUntilFull(sql, command, max, (limit) =>
		sql.all<DueRow>(
			// messages_due (lane, wake_at, id): staged rows of other campaigns are never looked at.
			withSubscribers(
				sql,
				`${sql.dialect.using('messages_due')} WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?`,
				'wake_at',
				'id',
			),
			lane,
			command.now,
			limit,
		),
	);
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
	command.limiter?.startLane();
	while (leased.length < max) {
		const rows = await due(max - leased.length);
		if (rows.length === 0) break;
		// The rows first: from here on they are locked, and other transactions do not change them.
		const [compositions, reasonsAgainst] = await sql.together([
			() => openCompositions(sql, command.now),
			() => openSuppressions(sql, command.now),
			() => readShared(sql, shared, rows, command.now),
		]);
		const circumstances = { ...command, shared, compositions, reasonsAgainst };
		const taken = await takeEach(sql, rows, circumstances);
		writeLeases(sql, taken, command);
		leased.push(...taken.map(({ message }) => message));
		if (taken.length === rows.length || command.limiter?.isLaneFull) break;
	}
	return leased;
}

interface Circumstances extends LeaseCommand {
	shared: ReadonlyMap<number, Shared>;
	reasonsAgainst: ReasonsAgainst;
	compositions: Awaited<ReturnType<typeof openCompositions>>;
}

interface Taken {
	id: number;
	message: Leased;
}

/** Those that may go. A limit counts each before the next is looked at, up to the end of the lane's share. */
async function takeEach(sql: Sql, rows: readonly DueRow[], circumstances: Circumstances): Promise<Taken[]> {
	const { limiter } = circumstances;
	if (limiter === null) {
		const each = await sql.together(rows.map((row) => async () => await takeOne(sql, row, circumstances)));
		return each.filter((taken) => taken !== null);
	}
	const taken: Taken[] = [];
	for (const row of rows) {
		if (limiter.isLaneFull) break;
		const one = await takeOne(sql, row, circumstances);
		if (one !== null) taken.push(one);
	}
	return taken;
}

function writeLeases(sql: Sql, taken: readonly Taken[], { owner, until }: LeaseCommand): void {
	if (taken.length === 0) return;
	sql.write(
		`UPDATE messages
		SET state = 'leased', lease_owner = ?, wake_at = ?, fence = fence + 1
		WHERE ${sql.dialect.oneOf('id')}`,
		owner,
		until,
		JSON.stringify(taken.map(({ id }) => id)),
	);
}

/** Null: the message may not go now, or never. */
async function takeOne(sql: Sql, row: DueRow, command: Circumstances): Promise<Taken | null> {
	const { shared, limiter, now } = command;
	const submission = shared.get(row.submission_seq);
	if (submission === undefined) throw new Error(`submission ${row.submission_seq} of a message is missing`);
	if (row.state === 'leased' && row.called === row.fence) return await keepCall(sql, row, command);
	const why = await unwantedBecause(sql, row, submission.type, command.reasonsAgainst);
	if (why !== null) {
		cancelMessage(sql, row.id, why);
		return null;
	}
	const care = await command.compositions.judge(row);
	if (care === 'fatal') await settle(sql, [fatalSettlement(row, now)]);
	if (care === 'fatal' || care === 'waits') return null;
	if (limiter !== null && !(await limiter.admit(row, submission.type))) return null;
	const message = await toLeased(sql, row, submission, command);
	return { id: row.id, message: care === 'careful' ? { ...message, is_suspect: true } : message };
}

/** A call is under way, or was when its worker ended; the lease of a worker that slept goes on. */
async function keepCall(sql: Sql, row: DueRow, { owner, until, now }: LeaseCommand): Promise<null> {
	if (row.lease_owner === owner) sql.write('UPDATE messages SET wake_at = ? WHERE id = ?', until, row.id);
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

/** Reads the submissions of messages that are not known yet. */
async function readShared(
	sql: Sql,
	known: Map<number, Shared>,
	rows: readonly DueRow[],
	now: Micros,
): Promise<void> {
	const seqs = [...new Set(rows.map(({ submission_seq }) => submission_seq))].filter(
		(seq) => !known.has(seq),
	);
	const read = await sql.together(seqs.map((seq) => async () => await readSubmission(sql, seq, now)));
	for (const [at, submission] of read.entries())
		if (submission !== null) known.set(seqs[at] ?? 0, submission);
}

async function readSubmission(sql: Sql, seq: number, now: Micros): Promise<Shared | null> {
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
	if (row === undefined) return null;
	const { id, type, released_at, starts_at, send_window, calls } = row;
	const variables = joinVariables({}, parseUsed(row.variables), parseTexts(row.context));
	const stopped = await stoppedCopies(sql, readEnvelope(row.envelope), now);
	return { id, type, released_at, starts_at, send_window, variables, stopped, calls };
}

async function toLeased(sql: Sql, row: DueRow, submission: Shared, command: LeaseCommand): Promise<Leased> {
	const { leave_by = null } = command;
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
