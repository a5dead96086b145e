/** The queue's lease: who may deliver what, for how long. Settling is beside it. */

import type { EmailKey } from '../../api/address.js';
import type { MessageScope } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import { joinVariables } from '../../engine/rules/meta.js';
import type { Leased } from '../queue.js';
import { stoppedCopies } from './copies.js';
import { readLimits } from './limit-turns.js';
import { type Limiter, openLimiter } from './limits.js';
import { isHeld } from './queue-pauses.js';
import { parseNames, parseTexts } from './rows.js';
import { settle } from './settle.js';
import type { Sql } from './sql.js';
import { readEnvelope } from './stored-json.js';
import { lanes } from './submissions.js';
import type { Operations } from './sync.js';
import { unwantedBecause } from './unwanted.js';
import { cancelMessage } from './waiting.js';

interface LeaseCommand extends Omit<Parameters<Operations['lease']>[0], 'perSecond'> {
	/** Null: no limit is set. */
	limiter: Limiter | null;
}

type QueueOperations = Pick<Operations, 'lease' | 'renew' | 'settle'> & {
	/** See `Core`. */
	wasLeaseCut(): boolean;
};

/** One for a connection: `wasLeaseCut` is about the last `lease` made here. Each in one transaction of the caller. */
export function createQueue(sql: Sql): QueueOperations {
	let wasCut = false;
	return {
		wasLeaseCut: () => wasCut,
		lease: ({ perSecond, ...command }) => {
			const limits = readLimits(sql, perSecond);
			const limiter = limits.length === 0 ? null : openLimiter(sql, limits, command.now);
			const max = Math.min(command.max, limiter?.room ?? command.max);
			const leased = max > 0 ? lease(sql, { ...command, max, limiter }) : [];
			limiter?.finish();
			wasCut = limiter?.isCut ?? false;
			return leased;
		},
		renew: ({ owner, fences, until }) => {
			for (const { message, fence } of fences) {
				sql.run(
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
	};
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
	created_at: Micros;
}

const columns =
	'id, uuid, submission_seq, to_email, to_key, list_id, subscriber_id, variables, attempts, fence, created_at';

function lease(sql: Sql, command: LeaseCommand): Leased[] {
	if (isHeld(sql)) return [];
	if (command.scope !== null && 'submission' in command.scope) {
		const ofSubmission = leaseSubmission(sql, command, command.scope.submission);
		if (ofSubmission !== null) return ofSubmission;
	}
	const open = lanesOf(sql, command.scope);
	const leased: Leased[] = [];
	// Transactional first; then every lane its share, and once more for what the others left over.
	if (open.hasTransactional) leased.push(...leaseLane(sql, command, lanes.transactional, command.max));
	for (const round of [1, 2]) {
		let left = open.bulk.length;
		for (const lane of open.bulk) {
			const room = command.max - leased.length;
			if (room <= 0) break;
			const share = round === 1 ? Math.ceil(room / left) : room;
			leased.push(...leaseLane(sql, command, lane, share));
			left -= 1;
		}
	}
	for (const lane of open.canceled) sweepCanceled(sql, lane, command.now);
	for (const lane of [...open.bulk, ...open.canceled]) closeIfDone(sql, lane);
	return leased;
}

interface OpenLanes {
	hasTransactional: boolean;
	bulk: number[];
	canceled: number[];
}

/** Whoever waited longest comes first, so that many lanes and few places still means everybody's turn. */
function lanesOf(sql: Sql, scope: MessageScope | null): OpenLanes {
	if (scope === null) {
		// mailings_open (last_leased_at)
		const open = sql.all<{ seq: number; state: string }>(
			'SELECT seq, state FROM mailings WHERE has_open_work = 1 ORDER BY last_leased_at, seq',
		);
		const ofState = (state: string) => open.filter((each) => each.state === state).map(({ seq }) => seq);
		return {
			hasTransactional: true,
			bulk: [lanes.bulk, ...ofState('released')],
			canceled: ofState('canceled'),
		};
	}
	const lane =
		'mailing' in scope
			? sql.get<{ seq: number }>(
					"SELECT seq FROM mailings WHERE id = ? AND state = 'released'",
					scope.mailing,
				)
			: sql.get<{ seq: number }>(
					`SELECT g.seq
					FROM submissions s
					JOIN mailings g ON g.seq = s.mailing_seq
					WHERE s.id = ? AND g.state = 'released'`,
					scope.submission,
				);
	return { hasTransactional: false, bulk: lane === undefined ? [] : [lane.seq], canceled: [] };
}

/** Messages of one send call, at most a thousand; null when it is a mailing's. */
function leaseSubmission(sql: Sql, command: LeaseCommand, submission: string): Leased[] | null {
	const row = sql.get<{ seq: number; mailing_seq: number | null }>(
		'SELECT seq, mailing_seq FROM submissions WHERE id = ?',
		submission,
	);
	if (row === undefined) return [];
	if (row.mailing_seq !== null) return null;
	return takeUntilFull(sql, command, command.max, (limit) =>
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

function leaseLane(sql: Sql, command: LeaseCommand, lane: number, max: number): Leased[] {
	const taken = takeUntilFull(sql, command, max, (limit) =>
		sql.all<DueRow>(
			// messages_due (lane, wake_at, rowid): staged rows of other mailings are never looked at.
			`SELECT ${columns}
			FROM messages INDEXED BY messages_due
			WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?
			ORDER BY wake_at, id
			LIMIT ?`,
			lane,
			command.now,
			limit,
		),
	);
	if (lane > 0 && taken.length > 0) {
		sql.run('UPDATE mailings SET last_leased_at = ? WHERE seq = ?', command.now, lane);
	}
	return taken;
}

/** Rows that turn out to be unwanted are canceled and replaced by the next ones. */
function takeUntilFull(
	sql: Sql,
	command: LeaseCommand,
	max: number,
	due: (limit: number) => DueRow[],
): Leased[] {
	const leased: Leased[] = [];
	const shared = new Map<number, Shared>();
	command.limiter?.startLane();
	while (leased.length < max) {
		const rows = due(max - leased.length);
		const before = leased.length;
		for (const row of rows) {
			if (command.limiter?.isLaneFull) return leased;
			const submission = shared.get(row.submission_seq) ?? readShared(sql, row.submission_seq, command.now);
			shared.set(row.submission_seq, submission);
			const why = unwantedBecause(sql, row, submission.type, command.now);
			if (why !== null) cancelMessage(sql, row.id, why);
			else if (command.limiter === null || command.limiter.admit(row, submission.type))
				leased.push(take(sql, row, submission, command));
		}
		if (leased.length - before === rows.length) break;
	}
	return leased;
}

interface Shared {
	id: string;
	type: 'TRANSACTIONAL' | 'BULK';
	/** What the context gives to every message of it. */
	variables: Record<string, string>;
	released_at: Micros | null;
	stopped: EmailKey[];
}

function readShared(sql: Sql, seq: number, now: Micros): Shared {
	const row = sql.get<{
		id: string;
		type: 'TRANSACTIONAL' | 'BULK';
		context: string;
		variables: string;
		envelope: string;
		released_at: Micros | null;
	}>(
		`SELECT s.id, s.type, s.context, s.variables, s.envelope, g.released_at
		FROM submissions s
		LEFT JOIN mailings g ON g.seq = s.mailing_seq
		WHERE s.seq = ?`,
		seq,
	);
	if (row === undefined) throw new Error(`submission ${seq} of a message is missing`);
	const { id, type, released_at } = row;
	const variables = joinVariables({}, parseNames(row.variables), parseTexts(row.context));
	const stopped = stoppedCopies(sql, readEnvelope(row.envelope), now);
	return { id, type, released_at, variables, stopped };
}

function take(sql: Sql, row: DueRow, submission: Shared, { owner, until }: LeaseCommand): Leased {
	sql.run(
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
		...(submission.stopped.length > 0 && { stopped_copies: submission.stopped }),
		created_at: submission.released_at ?? row.created_at,
	};
}

const maxSwept = 500;

/**
 * Writes out, a few at each lease, what canceling a mailing said in one row; the leases of a worker that died in the
 * meantime end here too.
 */
function sweepCanceled(sql: Sql, lane: number, now: Micros): void {
	sql.run(
		`UPDATE messages
		SET state = 'canceled', wake_at = NULL, lease_owner = NULL
		WHERE id IN (
			SELECT id
			FROM messages INDEXED BY messages_due
			WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?
			ORDER BY wake_at, id
			LIMIT ${maxSwept}
		)`,
		lane,
		now,
	);
}

/** A mailing with nothing left to wake leaves the index of those that a lease looks at. */
function closeIfDone(sql: Sql, lane: number): void {
	if (lane <= 0) return;
	sql.run(
		`UPDATE mailings
		SET has_open_work = 0
		WHERE seq = ? AND has_open_work = 1
			AND NOT EXISTS (SELECT 1 FROM messages WHERE lane = ? AND wake_at IS NOT NULL)`,
		lane,
		lane,
	);
}
