import { domainOf, type EmailKey } from '../../api/address.js';
import type { MessageScope } from '../../api/capabilities.js';
import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { MessageState, Uuid } from '../../api/records.js';
import { withOwn } from '../../api/variables.js';
import { joinVariables } from '../../engine/rules/subscribers.js';
import type { Command, Operations } from '../operations.js';
import type { Leased, Settlement } from '../queue.js';
import { fatalSettlement, type Judge, openCompositions } from './attempts.js';
import { enterWindow, type WindowRow, windowColumns } from './campaigns/rows.js';
import { type Candidate, Limiter, mostAtOnce, readLimits, readStanding } from './limits.js';
import { cancelMessage } from './messages/actions.js';
import { provenTime } from './processes.js';
import { fenceColumns, fencesAsJson, settle } from './settle.js';
import { column, each, exists, parseTexts, parseUsed, readEnvelope, type Sql, type SqlValue } from './sql.js';
import { lanes, stoppedCopies } from './submissions.js';
import { openSuppressions, type ReasonsAgainst, unwantedBecause } from './suppressions.js';

interface LeaseCommand extends Omit<Command<'lease'>, 'perSecond'> {
	limiter: Limiter | null;
	leave_by?: Micros | null;
}

export function createQueue(sql: Sql) {
	// If the last lease had limits, the next lease reads how full the limits are in its first round trip.
	let isLimited = false;
	const leaseSlice = async ({ perSecond, ...command }: Command<'lease'>) => {
		const { scope, now } = command;
		const wasLimited = isLimited;
		const [{ limits, isWaiting }, standing, isPaused, open] = await sql.together([
			() => readLimits(sql, perSecond),
			async () => (wasLimited ? await readStanding(sql, now) : null),
			() => exists(sql, "SELECT 1 FROM queue_pauses WHERE kind = 'manual'"),
			() => lanesOf(sql, scope, now),
		]);
		isLimited = limits.length > 0 || isWaiting;
		if (isPaused) return { leased: [], isCut: false };
		if (!isLimited) return { leased: await lease(sql, { ...command, limiter: null }, open), isCut: false };
		sql.alone();
		const limiter = new Limiter(sql, limits, standing ?? (await readStanding(sql, now)), now);
		const max = Math.min(command.max, limiter.room);
		const lanes = max > 0 && (await limiter.wake(max)) ? await lanesOf(sql, scope, now) : open;
		const leased = max > 0 ? await lease(sql, { ...command, max, limiter }, lanes) : [];
		limiter.finish();
		return { leased, isCut: limiter.isCut };
	};
	return {
		leaseSlice,
		renew: async ({ owner, fences, until }) => {
			sql.write(
				`UPDATE messages
				SET wake_at = ?
				FROM ${sql.dialect.table(fenceColumns, 'held')}
				WHERE uuid = held.message AND fence = held.at_fence AND coalesce(lease_owner, ?) = ? AND state = 'leased'`,
				[until, fencesAsJson(fences), owner, owner],
			);
		},
		revokedLeases: ({ fences }) =>
			column<Uuid>(
				sql,
				`SELECT m.uuid
				FROM ${sql.dialect.table(fenceColumns, 'held')}
				JOIN messages m ON m.uuid = held.message
				LEFT JOIN campaigns g ON g.seq = m.lane
				WHERE m.fence <> held.at_fence OR m.state <> 'leased' OR m.lease_owner IS NULL OR g.state = 'canceled'`,
				[fencesAsJson(fences)],
			),
	} satisfies Partial<Operations>;
}

async function lease(sql: Sql, command: LeaseCommand, open: OpenLanes): Promise<Leased[]> {
	if (command.scope !== null && 'submission' in command.scope) {
		const ofSubmission = await leaseSubmission(sql, command, command.scope.submission);
		if (ofSubmission !== null) return ofSubmission;
	}
	if (command.alone) for (const { lane } of open.bulk) await loseLeases(sql, { ...command, lane });
	const leased: Leased[] = [];
	const take = async (lane: number, max: number, leave_by: Micros | null = null) => {
		const messages = `${sql.dialect.using('messages_due')} WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?`;
		const due = { messages, values: [lane, command.now], order: ['wake_at', 'id'] };
		const taken = await takeUntilFull(sql, { ...command, leave_by }, max, due);
		leased.push(...taken);
		return taken.length;
	};
	if (open.hasTransactional) await take(lanes.transactional, command.max);
	const served = await takeTurns(open.bulk, command.max - leased.length, take);
	endTurns(sql, { open, served, now: command.now });
	return leased;
}

async function leaseSubmission(
	sql: Sql,
	command: LeaseCommand,
	submission: string,
): Promise<Leased[] | null> {
	const row = await sql.get<{ seq: number; campaign_seq: number | null }>(
		'SELECT seq, campaign_seq FROM submissions WHERE id = ?',
		[submission],
	);
	if (row === undefined) return [];
	if (row.campaign_seq !== null) return null;
	const messages = 'WHERE submission_seq = ? AND +wake_at <= ?';
	const values = [row.seq, command.now];
	return await takeUntilFull(sql, command, command.max, { messages, values, order: ['id'] });
}

async function takeUntilFull(sql: Sql, command: LeaseCommand, max: number, due: Due): Promise<Leased[]> {
	const { limiter, now } = command;
	const leased: Leased[] = [];
	const shared = new Map<number, Shared>();
	limiter?.startLane();
	for (let spare = 1; leased.length < max; spare *= 4) {
		const room = max - leased.length;
		// Read more rows in each round, because a limit may set aside nearly all of them.
		const limit = limiter === null ? room : Math.min(room * spare, Math.max(room, mostAtOnce));
		const { messages, order, values } = due;
		const rows = await sql.all<DueRow>(
			`SELECT ${columns}
			FROM (SELECT * FROM messages ${messages} ORDER BY ${order.join(', ')} LIMIT ? ${sql.dialect.skipLocked}) m
			LEFT JOIN subscribers p ON p.id = m.subscriber_id
			ORDER BY ${order.map((column) => `m.${column}`).join(', ')}`,
			[...values, limit],
		);
		if (rows.length === 0) break;
		// Check suppressions only after the query above has locked the rows against other transactions.
		const [judge, reasonsAgainst] = await sql.together([
			() => openCompositions(sql, now),
			() => openSuppressions(sql, now),
			async () => {
				const all = new Set(rows.map(({ submission_seq }) => submission_seq));
				const seqs = [...all].filter((seq) => !shared.has(seq));
				for (const one of await each(sql, seqs, (seq) => readSubmission(sql, seq, now)))
					if (one !== null) shared.set(one.seq, one);
			},
		]);
		const taken = await takeEach(sql, rows, { ...command, shared, judge, reasonsAgainst }, room);
		if (taken.length > 0)
			sql.write(
				`UPDATE messages
				SET state = 'leased', lease_owner = ?, wake_at = ?, fence = fence + 1
				WHERE ${sql.dialect.oneOf('id')}`,
				[command.owner, command.until, JSON.stringify(taken.map(({ id }) => id))],
			);
		leased.push(...taken.map(({ message }) => message));
		if (taken.length === rows.length || rows.length < limit || limiter?.isLaneFull) break;
	}
	return leased;
}

interface Circumstances extends LeaseCommand {
	shared: ReadonlyMap<number, Shared>;
	reasonsAgainst: ReasonsAgainst;
	judge: Judge;
}

interface Taken extends Candidate {
	message: Leased;
}

/** Takes at most `max` messages that may be sent. Each counts against its limits before the next one is checked. */
async function takeEach(
	sql: Sql,
	rows: readonly DueRow[],
	command: Circumstances,
	max: number,
): Promise<readonly Taken[]> {
	const { limiter, now } = command;
	const ends: Settlement[] = [];
	const looked = await each(sql, rows, async (row): Promise<Taken | null> => {
		const submission = command.shared.get(row.submission_seq);
		if (submission === undefined) throw new Error(`submission ${row.submission_seq} of a message is missing`);
		if (row.state === 'leased' && row.called === row.fence) {
			// The lease ended during a call to a send API. If the call is this worker's own, the machine was suspended:
			// extend the lease.
			if (row.lease_owner !== command.owner) ends.push(lostCall(row, now));
			else sql.write('UPDATE messages SET wake_at = ? WHERE id = ?', [command.until, row.id]);
			return null;
		}
		const why = await unwantedBecause(sql, row, submission.type, command.reasonsAgainst);
		// The message was canceled during its lease, and its worker did not return it.
		if (why !== null || (row.state === 'leased' && row.lease_owner === null)) {
			cancelMessage(sql, row.id, why);
			return null;
		}
		const care = await command.judge(row);
		if (care === 'fatal') ends.push(fatalSettlement(row, now));
		if (care === 'fatal' || care === 'waits') return null;
		const message = await toLeased(sql, row, submission, command);
		const { id, to_key, fence, attempts } = row;
		const { type, sender } = submission;
		const leased: Leased = care === 'careful' ? { ...message, is_suspect: true } : message;
		return { id, to_key, fence, attempts, type, sender, message: leased };
	});
	await settle(sql, ends);
	const taken = looked.filter((one) => one !== null);
	return limiter === null ? taken : await limiter.admit(taken, max);
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
	is_active: number | null;
	disable_reason: string | null;
}

const columns = `m.id, m.uuid, m.submission_seq, m.to_email, m.to_key, m.list_id, m.subscriber_id, m.variables,
	m.attempts, m.fence, m.called, m.lease_owner, m.state, m.created_at, p.is_active, p.disable_reason`;

interface Due {
	messages: string;
	values: readonly SqlValue[];
	order: readonly string[];
}

interface Shared {
	seq: number;
	id: string;
	type: 'TRANSACTIONAL' | 'BULK';
	sender: string;
	variables: Record<string, string>;
	released_at: Micros | null;
	starts_at: Micros | null;
	send_window: string | null;
	stopped: EmailKey[];
	/**
	 * `own`: all messages of the submission share calls of the send API. `shared`: only messages without variables share
	 * calls. Null: SMTP.
	 */
	calls: 'shared' | 'own' | null;
}

async function readSubmission(sql: Sql, seq: number, now: Micros): Promise<Shared | null> {
	const row = await sql.get<
		Omit<Shared, 'sender' | 'variables' | 'stopped'> & {
			context: string;
			used: string;
			envelope: string;
		}
	>(
		`SELECT s.seq, s.id, s.type, s.context, s.variables AS used, s.envelope, g.released_at,
			g.starts_at, g.send_window,
			CASE WHEN s.request IS NULL THEN NULL WHEN g.requests = 1 THEN 'own' ELSE 'shared' END AS calls
		FROM submissions s
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE s.seq = ?`,
		[seq],
	);
	if (row === undefined) return null;
	const { context, used, envelope: text, ...submission } = row;
	const envelope = readEnvelope(text);
	return {
		...submission,
		sender: domainOf(envelope.from.replace(/>\s*$/, '')),
		variables: joinVariables({}, parseUsed(used), parseTexts(context)),
		stopped: await stoppedCopies(sql, envelope, now),
	};
}

async function toLeased(
	sql: Sql,
	row: DueRow,
	submission: Shared,
	{ now, leave_by = null }: Circumstances,
): Promise<Leased> {
	const isShared = submission.calls === 'own' || (submission.calls === 'shared' && row.variables === '{}');
	return {
		message: row.uuid,
		fence: row.fence + 1,
		submission: submission.id,
		to: row.to_email,
		list_id: row.list_id,
		variables: withOwn(submission.variables, parseTexts(row.variables)),
		attempts: row.attempts,
		...(isShared && { call: submission.id }),
		...(submission.stopped.length > 0 && { stopped_copies: submission.stopped }),
		...(leave_by !== null && { leave_by }),
		created_at: await beganAt(sql, row, submission, now),
	};
}

/**
 * Returns the date of the mail; retries are timed from this date. It is the release or the planned start, whichever is
 * later. Without a release, the creation counts. With a send window, it is the first attempt. If a message is sent
 * again after a final outcome, it is the first attempt since that outcome.
 */
async function beganAt(
	sql: Sql,
	{ id, created_at, attempts }: DueRow,
	{ released_at, starts_at, send_window }: Shared,
	now: Micros,
): Promise<Micros> {
	const select = 'SELECT at, outcome FROM attempts WHERE message_id = ? ORDER BY number';
	const tries = attempts === 0 ? [] : await sql.all<{ at: Micros; outcome: string }>(select, [id]);
	const final = tries.findLastIndex(({ outcome }) => outcome !== 'deferred');
	if (send_window === null && final === -1) return Math.max(released_at ?? created_at, starts_at ?? 0);
	return tries[final + 1]?.at ?? now;
}

interface OpenLanes {
	hasTransactional: boolean;
	/** Excludes campaigns whose window is closed. `leave_by`: the end of the window. `isDue`: a message is due. */
	bulk: { lane: number; leave_by: Micros | null; isDue: boolean }[];
	canceled: number[];
}

interface LaneRow extends WindowRow {
	is_due: number;
}

function isDue({ dialect }: Sql, lane: string): string {
	return `EXISTS (
		SELECT 1 FROM messages ${dialect.using('messages_due')}
		WHERE lane = ${lane} AND wake_at IS NOT NULL AND wake_at <= ?
	)`;
}

/** How long a machine may be off. If the clock is more than this ahead of the proven time, planned campaigns wait. */
const longestOff: Micros = 31 * microsPerDay;

async function withOpenWindow(
	sql: Sql,
	rows: readonly (LaneRow & { last_leased_at?: Micros })[],
	now: Micros,
): Promise<OpenLanes['bulk']> {
	const open: OpenLanes['bulk'] = [];
	for (const row of rows) {
		const { starts_at, last_leased_at } = row;
		const begins = starts_at !== null && starts_at <= now && last_leased_at === 0;
		if (begins && starts_at > (await provenTime(sql, now, longestOff))) continue;
		const { isOpen, leave_by } = await enterWindow(sql, row, now);
		if (isOpen) open.push({ lane: row.seq, leave_by, isDue: row.is_due === 1 });
	}
	return open;
}

/** Sorts campaigns by their last lease, so that each campaign gets a turn even among many. */
async function lanesOf(sql: Sql, scope: MessageScope | null, now: Micros): Promise<OpenLanes> {
	if (scope !== null) {
		const [from, condition, id] =
			'campaign' in scope
				? ['campaigns g', 'g.id = ?', scope.campaign]
				: ['submissions s JOIN campaigns g ON g.seq = s.campaign_seq', 's.id = ?', scope.submission];
		const rows = await sql.all<LaneRow>(
			`SELECT g.seq, ${windowColumns}, 1 AS is_due FROM ${from} WHERE ${condition} AND g.state = 'released'`,
			[id],
		);
		return { hasTransactional: false, bulk: await withOpenWindow(sql, rows, now), canceled: [] };
	}
	const [[[transactional, bulk] = [0, 0]], open] = await sql.together([
		() =>
			sql.tuples<[number, number]>(
				`SELECT ${isDue(sql, String(lanes.transactional))}, ${isDue(sql, String(lanes.bulk))}`,
				[now, now],
			),
		// Uses the index campaigns_open (last_leased_at).
		() =>
			sql.all<LaneRow & { state: string; last_leased_at: Micros }>(
				`SELECT seq, state, last_leased_at, ${windowColumns}, ${isDue(sql, 'campaigns.seq')} AS is_due
				FROM campaigns
				WHERE has_open_work = 1
				ORDER BY last_leased_at, seq`,
				[now],
			),
	]);
	const ofState = (state: string) => open.filter((each) => each.state === state);
	return {
		hasTransactional: transactional === 1,
		bulk: [
			{ lane: lanes.bulk, leave_by: null, isDue: bulk === 1 },
			...(await withOpenWindow(sql, ofState('released'), now)),
		],
		canceled: ofState('canceled').map(({ seq }) => seq),
	};
}

/** Call it last: it locks campaigns until the lease commits. It writes in lane order, so leases cannot deadlock. */
function endTurns(
	sql: Sql,
	{ open, served, now }: { open: OpenLanes; served: readonly number[]; now: Micros },
): void {
	const campaigns = [...open.bulk.map(({ lane }) => lane), ...open.canceled].filter((lane) => lane > 0);
	for (const lane of campaigns.toSorted((one, other) => one - other)) {
		if (open.canceled.includes(lane))
			sql.write(
				`UPDATE messages
				SET state = 'canceled', wake_at = NULL, lease_owner = NULL
				WHERE id IN (
					SELECT id
					FROM messages ${sql.dialect.using('messages_due')}
					WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?
					ORDER BY wake_at, id
					LIMIT 500
					${sql.dialect.skipLocked}
				)`,
				[lane, now],
			);
		// `last_leased_at` decides which of several campaigns has the next turn. Update a single campaign at most once a
		// second.
		const since = campaigns.length > 1 ? now : now - microsPerSecond;
		if (served.includes(lane))
			sql.write(
				'UPDATE campaigns SET last_leased_at = ? WHERE seq = ? AND last_leased_at NOT BETWEEN ? AND ?',
				[now, lane, since, now],
			);
		// If no message of the campaign waits, remove the campaign from the index campaigns_open.
		sql.write(
			`UPDATE campaigns
			SET has_open_work = 0
			WHERE seq = ? AND has_open_work = 1
				AND NOT EXISTS (SELECT 1 FROM messages WHERE lane = ? AND wake_at IS NOT NULL)`,
			[lane, lane],
		);
	}
}

/** Gives each lane its share, then distributes the unused rest. Returns the lanes that had messages. */
async function takeTurns(
	bulk: OpenLanes['bulk'],
	max: number,
	take: (lane: number, max: number, leave_by: Micros | null) => Promise<number>,
): Promise<number[]> {
	const served: number[] = [];
	let room = max;
	let left = bulk.filter(({ isDue }) => isDue);
	for (const round of [1, 2]) {
		const full: typeof left = [];
		for (const [at, one] of left.entries()) {
			if (room <= 0) return served;
			const share = round === 1 ? Math.ceil(room / (left.length - at)) : room;
			const taken = await take(one.lane, share, one.leave_by);
			if (taken > 0) served.push(one.lane);
			if (taken === share) full.push(one);
			room -= taken;
		}
		left = full;
	}
	return served;
}

function lostCall({ uuid, fence }: { uuid: string; fence: number }, at: Micros): Settlement {
	const text = 'the command was ended before the service answered';
	const reply = { phase: 'call', code: null, enhanced: 'interrupted', text } as const;
	return { message: uuid, fence, at, outcome: { kind: 'uncertain', reply } };
}

/** Ends leases of other workers in a lane. Their messages become due, or uncertain if a call to an API had begun. */
export async function loseLeases(
	sql: Sql,
	{ lane, owner, now }: { lane: number; owner: string | null; now: Micros },
): Promise<void> {
	const leased = await sql.all<{ id: number; uuid: string; fence: number; called: number | null }>(
		// Messages whose lease has ended are due already.
		`SELECT id, uuid, fence, called
		FROM messages ${sql.dialect.using('messages_due')}
		WHERE lane = ? AND wake_at IS NOT NULL AND wake_at > ? AND state = 'leased' AND lease_owner IS DISTINCT FROM ?`,
		[lane, now, owner],
	);
	await settle(
		sql,
		leased.filter(({ called, fence }) => called === fence).map((row) => lostCall(row, now)),
	);
	for (const { id, called, fence } of leased)
		if (called !== fence) sql.write('UPDATE messages SET wake_at = ? WHERE id = ?', [now, id]);
}
