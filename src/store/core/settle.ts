import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Reply } from '../../engine/rules/outcomes.js';
import { effectOf, isBounce, type OutcomeEffect, replyLine } from '../../engine/rules/outcomes.js';
import type { Operations } from '../operations.js';
import type { Settlement } from '../queue.js';
import { forgetCompositions, writeAttempts } from './attempts.js';
import { type Counting, noVisit, openCounting } from './events.js';
import type { BouncedMessage, Tally } from './figures/tally.js';
import { readRecipients } from './recipients.js';
import { type Change, flag, type Sql } from './sql.js';

interface LeasedRow {
	uuid: Uuid;
	fence: number;
	id: number;
	to_key: EmailKey;
	tag: string | null;
	campaign: Uuid | null;
	sent_at: Micros | null;
	attempts: number;
	due_at: Micros;
	lease_owner: string | null;
}

export async function settle(sql: Sql, settlements: readonly Settlement[]): Promise<Answer[]> {
	if (settlements.length === 0) return [];
	const sent = settlements.filter(isSent);
	const others = settlements.filter((settlement) => !isSent(settlement));
	const bounces = others.filter(({ outcome }) => isBounce(outcome)).map(({ message }) => message);
	const [softBouncing, rows, leased, bounced, counting] = await sql.together([
		() => hasSoftBouncing(sql, sent),
		() => writeSent(sql, sent),
		() => findLeased(sql, others),
		() => findBounced(sql, sent),
		() => openCounting(sql, bounces),
	]);
	const answers = new Map<Settlement, Answer>(
		sent.map((settlement, at) => [settlement, rows[at] ? 'recorded' : 'lost_lease']),
	);
	const recorded = recordedOf(others, leased);
	for (const { settlement } of recorded) answers.set(settlement, 'recorded');
	countSent({ sql, tally: counting.tally }, rows, { softBouncing, bounced });
	writeOthers(sql, recorded);
	await countBounces(sql, counting, recorded);
	counting.write();
	return settlements.map((settlement) => answers.get(settlement) ?? 'lost_lease');
}

async function hasSoftBouncing(sql: Sql, sent: readonly Sent[]): Promise<boolean> {
	if (sent.length === 0) return false;
	// Without ORDER BY, a database without statistics may not use the small index subscribers_soft_bouncing.
	const select = `SELECT count(*)
		FROM (SELECT email_key FROM subscribers WHERE soft_bounces > 0 ORDER BY email_key LIMIT 1) s`;
	return (await sql.number(select)) === 1;
}

type Answer = 'recorded' | 'lost_lease';
type Sent = Settlement & { outcome: { kind: 'sent' } };

function isSent(settlement: Settlement): settlement is Sent {
	return settlement.outcome.kind === 'sent';
}

interface Recorded {
	settlement: Settlement;
	row: LeasedRow;
	effect: OutcomeEffect;
}

async function findLeased(sql: Sql, settlements: readonly Settlement[]): Promise<LeasedRow[]> {
	if (settlements.length === 0) return [];
	return await sql.allOf<LeasedRow>(
		`SELECT m.uuid, m.fence, m.id, m.to_key, s.tag, s.campaign, m.sent_at, m.attempts, m.due_at, m.lease_owner
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.uuid = ? AND m.fence = ? AND m.state = 'leased'
		${sql.dialect.lockRows('m')}`,
		fenceColumns,
		settlements.toSorted(byMessage).map(({ message, fence }) => [message, fence]),
	);
}

function recordedOf(settlements: readonly Settlement[], leased: readonly LeasedRow[]): Recorded[] {
	const found = new Map(leased.map((row) => [`${row.fence} ${row.uuid}`, row]));
	return settlements.flatMap((settlement) => {
		const name = `${settlement.fence} ${settlement.message}`;
		const row = found.get(name);
		found.delete(name);
		if (row === undefined) return [];
		const effect = effectOf(settlement.outcome, row);
		// A message canceled during its lease does not get a retry.
		if (row.lease_owner === null && effect.due_at !== null)
			Object.assign(effect, { state: 'canceled', due_at: null });
		return [{ settlement, row, effect }];
	});
}

function writeOthers(sql: Sql, recorded: readonly Recorded[]): void {
	if (recorded.length === 0) return;
	sql.writeEach(
		changeState,
		recorded.map(({ row, effect: { state, due_at, reply } }) => [
			...[state, due_at, due_at, flag(reply !== null)],
			...[reply === null ? null : replyLine(reply), row.id],
		]),
	);
	for (const { settlement, row } of recorded)
		if (settlement.outcome.kind === 'released')
			forgetCompositions(sql, { id: row.id, fence: settlement.fence });
	writeAttempts(
		sql,
		recorded.flatMap(({ settlement: { outcome, at }, row: { id, attempts }, effect: { reply } }) =>
			reply === null ? [] : [{ id, number: attempts + 1, kind: outcome.kind, at, reply }],
		),
	);
}

const changeState: Change = {
	update: `UPDATE messages
		SET state = ?, due_at = coalesce(?, due_at), wake_at = ?, lease_owner = NULL,
			attempts = attempts + ?, last_reply = coalesce(?, last_reply)`,
	where: 'id = ?',
	columns: {
		...{ after: 'TEXT', due: 'BIGINT', wake: 'BIGINT', tried: 'BIGINT', reply: 'TEXT', message: 'BIGINT' },
	},
};

/** Counts bounces one at a time, so that the second bounce of an address sees the first. */
async function countBounces(sql: Sql, counting: Counting, recorded: readonly Recorded[]): Promise<void> {
	const counted = recorded.filter(({ effect: { reply, event } }) => event !== null && !isCall(reply));
	if (counted.length === 0) return;
	sql.alone();
	const firsts = counted.map(({ settlement: { at }, row, effect: { event, reply } }) => {
		const type = event === 'HARDBOUNCED' ? 'HARDBOUNCED' : 'SOFTBOUNCED';
		const code = reply?.enhanced ?? reply?.code ?? null;
		const smtp_code = code === null ? null : String(code);
		const diagnostic = reply === null ? null : replyLine(reply);
		return counting.count(row, { ...noVisit, type, at, smtp_code, diagnostic });
	});
	const addresses = counted.map(({ row }) => row.to_key);
	const [recipients] = await sql.together([
		() => readRecipients(sql, addresses),
		() => counting.notices.write(),
	]);
	for (const [at, { settlement, row, effect }] of counted.entries()) {
		const { at: now } = settlement;
		const address = row.to_key;
		if (firsts[at] && effect.event === 'SOFTBOUNCED') recipients.softBounce(address, now);
		if (effect.suppresses)
			recipients.stop({ address, list_id: null, reason: 'HARDBOUNCED', source: 'DELIVERY', now });
	}
	recipients.write();
}

/** A reply of phase `call` comes from a send API, which counts its messages itself. */
function isCall(reply: Reply | null): boolean {
	return reply?.phase === 'call';
}

function countSent(
	{ sql, tally }: { sql: Sql; tally: Tally },
	rows: readonly (SentRow | null)[],
	{ softBouncing, bounced }: { softBouncing: boolean; bounced: ReadonlyMap<number, BouncedMessage> },
): void {
	const counted = rows.filter((row) => row !== null).filter(({ reply }) => !isCall(reply));
	writeAttempts(
		sql,
		counted.map(({ id, number, at, reply }) => ({ id, number, kind: 'sent', at, reply })),
	);
	const ended =
		'UPDATE subscribers SET soft_bounces = 0, soft_bounced_since = NULL WHERE email_key = ? AND soft_bounces > 0';
	if (softBouncing) for (const { address } of counted) sql.write(ended, [address]);
	for (const { id, at, campaign } of counted) {
		tally.add({ at, campaign, type: 'SENT', audience: 'all' });
		const before = bounced.get(id);
		if (before !== undefined) tally.moveBounced(before, { ...before, sent: at });
	}
}

/** Finds messages whose bounce was recorded before the outcome `sent`. The keys are message ids. */
async function findBounced(sql: Sql, sent: readonly Sent[]): Promise<ReadonlyMap<number, BouncedMessage>> {
	if (sent.length === 0) return new Map();
	const rows = await sql.all<Omit<BouncedMessage, 'sent'> & { id: number }>(
		`SELECT m.id, s.tag, s.campaign, min(CASE f.type WHEN 'SOFTBOUNCED' THEN f.first_at END) AS soft,
			min(CASE f.type WHEN 'HARDBOUNCED' THEN f.first_at END) AS hard
		FROM ${sql.dialect.table({ message: 'TEXT' }, 'sent')}
		JOIN messages m ON m.uuid = sent.message
		JOIN message_firsts f ON f.message_id = m.id AND f.type IN ('SOFTBOUNCED', 'HARDBOUNCED')
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY m.id, s.tag, s.campaign`,
		[JSON.stringify(sent.map(({ message }) => ({ message })))],
	);
	return new Map(rows.map((row) => [row.id, { ...row, sent: null }]));
}

interface SentRow {
	id: number;
	number: number;
	campaign: Uuid | null;
	address: EmailKey;
	at: Micros;
	reply: Reply;
}

/** Returns null for each message that another worker has leased since. */
async function writeSent(sql: Sql, settlements: readonly Sent[]): Promise<(SentRow | null)[]> {
	if (settlements.length === 0) return [];
	const columns = { message: 'TEXT', at_fence: 'BIGINT', at: 'BIGINT', reply: 'TEXT' } as const;
	const sets = settlements.map(({ message, fence, at, outcome }) => ({
		...{ message, at_fence: fence, at, reply: replyLine(outcome.reply) },
	}));
	const rows = await sql.tuples<
		[uuid: Uuid, fence: number, id: number, number: number, campaign: Uuid | null, address: EmailKey]
	>(
		`UPDATE messages
		SET state = 'sent', wake_at = NULL, lease_owner = NULL, attempts = attempts + 1, sent_at = sent.at, last_reply = sent.reply
		FROM ${sql.dialect.table(columns, 'sent')}
		WHERE uuid = sent.message AND fence = sent.at_fence AND state = 'leased'
		RETURNING uuid, fence, id, attempts, (SELECT s.campaign FROM submissions s WHERE s.seq = submission_seq), to_key`,
		[JSON.stringify(sets.toSorted(byMessage))],
	);
	const found = new Map(rows.map((row) => [row[0], row]));
	return settlements.map(({ message, fence, at, outcome: { reply } }) => {
		const row = found.get(message);
		if (row === undefined || row[1] !== fence) return null;
		found.delete(message);
		const [, , id, number, campaign, address] = row;
		return { id, number, campaign, address, at, reply };
	});
}

export const fenceColumns = { message: 'TEXT', at_fence: 'BIGINT' } as const;

export function fencesAsJson(fences: readonly { message: Uuid; fence: number }[]): string {
	return JSON.stringify(
		fences.map(({ message, fence }) => ({ message, at_fence: fence })).toSorted(byMessage),
	);
}

function byMessage(one: { message: Uuid }, other: { message: Uuid }): number {
	return one.message < other.message ? -1 : 1;
}

export function createSettling(sql: Sql) {
	return {
		settle: ({ settlements }) => settle(sql, settlements),
		setCalling: async ({ fences, isCalling }) => {
			sql.write(
				`UPDATE messages
				SET called = ${isCalling ? 'fence' : 'NULL'}
				FROM ${sql.dialect.table(fenceColumns, 'held')}
				WHERE uuid = held.message AND fence = held.at_fence AND state = 'leased'`,
				[fencesAsJson(fences)],
			);
		},
		retryUncertain: async ({ campaign, isAgain, now }) => {
			const row = await sql.get<{ seq: number }>('SELECT seq FROM campaigns WHERE id = ?', [campaign]);
			if (row === undefined) return;
			if (!isAgain) {
				sql.write(
					// An interrupted --retry-unknown made these messages due. Uses the index messages_due.
					`UPDATE messages
					SET state = 'uncertain', wake_at = NULL
					WHERE lane = ? AND wake_at IS NOT NULL AND attempts > 0 AND state IN ('queued', 'deferred')`,
					[row.seq],
				);
				return;
			}
			const { changes } = await sql.run(
				// Uses the index messages_over_of_lane.
				`UPDATE messages
				SET state = 'queued', wake_at = ${sql.dialect.least}(due_at, ?)
				WHERE lane = ? AND state = 'uncertain' AND wake_at IS NULL AND state <> 'sent'`,
				[now, row.seq],
			);
			if (changes > 0) sql.write('UPDATE campaigns SET has_open_work = 1 WHERE seq = ?', [row.seq]);
		},
	} satisfies Partial<Operations>;
}
