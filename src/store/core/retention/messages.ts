import type { Micros } from '../../../api/datetime.js';
import { dropContent } from '../attachments.js';
import { isSending } from '../campaigns/rows.js';
import { onlyFrom } from '../erasures.js';
import type { SliceOfExpired } from '../expired.js';
import { column, exists, type Sql } from '../sql.js';
import { countMessages } from '../submissions.js';
import { keepLinks, type LeavingRow } from './old-messages.js';
import { cutoffs } from './room.js';
import { addToSums } from './sums.js';

type Dropped = Promise<{ next: number | null }>;

export async function dropEvents(sql: Sql, { now, limit, after }: SliceOfExpired): Dropped {
	const { events: before } = await cutoffs(sql, now);
	if (before === null) return { next: null };
	const end = await sql.get<{ at: Micros }>(
		'SELECT at FROM events WHERE at >= ? AND at <= ? ORDER BY at LIMIT 1 OFFSET ?',
		[after, before, limit - 1],
	);
	const last = end?.at ?? before;
	const ids = await column<number>(
		sql,
		"SELECT id FROM events WHERE at >= ? AND at <= ? AND type NOT LIKE '%BOUNCED' ORDER BY at LIMIT ?",
		[after, last, limit],
	);
	sql.write(`DELETE FROM events WHERE ${sql.dialect.oneOf('id')}`, [JSON.stringify(ids)]);
	if (ids.length === limit) return { next: after };
	return { next: end === undefined ? null : last + 1 };
}

/** Marks finished campaigns that are old enough. Their results, and who was left out, go before their messages. */
export async function dropOfCampaigns(sql: Sql, { now, limit }: SliceOfExpired): Dropped {
	const { messages: before } = await cutoffs(sql, now);
	if (before === null) return { next: null };
	sql.write(
		`UPDATE campaigns AS g
		SET dropped_at = ?
		WHERE dropped_at IS NULL AND state IN ('released', 'canceled') AND coalesce(released_at, created_at) <= ?
			AND NOT ${isSending}
			AND NOT EXISTS (SELECT 1 FROM messages WHERE lane = g.seq AND wake_at IS NOT NULL)`,
		[now, before],
	);
	for (const [table, key] of [
		['campaign_results', 'campaign_seq, n'],
		['campaign_left_out', 'id'],
	]) {
		const { changes } = await sql.run(
			`DELETE FROM ${table}
			WHERE (${key}) IN (
				SELECT ${key} FROM ${table}
				WHERE campaign_seq IN (SELECT seq FROM campaigns WHERE dropped_at IS NOT NULL)
				LIMIT ?
			)`,
			[limit],
		);
		if (changes > 0) return { next: 0 };
	}
	return { next: null };
}

/** Who was left out by send calls, in the order of the calls: theirs go by age, as their messages do. */
export async function dropLeftOut(
	sql: Sql,
	{ now, limit }: { now: Micros; limit: number },
): Promise<{ changes: number }> {
	const { messages: before } = await cutoffs(sql, now);
	if (before === null) return { changes: 0 };
	return await sql.run(
		`DELETE FROM campaign_left_out
		WHERE id IN (
			SELECT o.id
			FROM (
				SELECT id, submission_seq
				FROM campaign_left_out
				WHERE submission_seq IS NOT NULL
				ORDER BY submission_seq
				LIMIT ?
			) o
			JOIN submissions s ON s.seq = o.submission_seq
			WHERE s.created_at <= ?
		)`,
		[limit, before],
	);
}

/** Ends where a whole slice is too young: ids follow the time, but for a clock that was set. */
export async function dropMessages(sql: Sql, command: SliceOfExpired): Dropped {
	const { now, limit, after } = command;
	const { messages: before } = await cutoffs(sql, now);
	if (before === null) return { next: null };
	const range = await sql.tuples<[id: number, created_at: Micros]>(
		'SELECT id, created_at FROM messages WHERE id > ? ORDER BY id LIMIT ?',
		[after, limit],
	);
	const last = range.at(-1)?.[0] ?? after;
	if (!range.some(([, created_at]) => created_at <= before)) return { next: null };
	const leaving = await sql.all<LeavingRow>(
		`SELECT m.id, m.uuid, m.to_key, m.fence, m.variables AS own, s.seq, s.type, s.envelope, s.campaign, s.campaign_seq,
			s.content_sha256, s.variables AS used, s.context, coalesce(g.courier, 'smtp') AS courier
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE m.id > ? AND m.id <= ? AND m.wake_at IS NULL
			AND ((s.campaign_seq IS NULL AND m.created_at <= ?) OR g.dropped_at IS NOT NULL)
		ORDER BY m.id`,
		[after, last, before],
	);
	if (leaving.length > 0) await drop(sql, leaving, command);
	return { next: range.length < limit ? null : last };
}

const ofMessage = ['message_firsts', 'events', 'attempts', 'bounce_reports', 'limit_holds', 'limit_waiting'];

async function drop(sql: Sql, leaving: readonly LeavingRow[], command: SliceOfExpired): Promise<void> {
	const ids = JSON.stringify(leaving.map(({ id }) => id));
	addToSums(sql, ids);
	const without = await keepLinks(sql, leaving, command);
	for (const table of ofMessage)
		sql.write(`DELETE FROM ${table} WHERE ${sql.dialect.oneOf('message_id')}`, [ids]);
	sql.write(`DELETE FROM messages WHERE ${sql.dialect.oneOf('id')}`, [ids]);
	countMessages(sql, -leaving.length);
	const submissions = new Map(leaving.map((row) => [row.seq, row]));
	for (const row of submissions.values()) await dropSubmission(sql, row, { without, now: command.now });
}

/** Keeps of a submission without messages what the links of its mails need. */
async function dropSubmission(
	sql: Sql,
	{ seq, campaign, campaign_seq, content_sha256, envelope }: LeavingRow,
	{ without, now }: { without: ReadonlySet<number>; now: Micros },
): Promise<void> {
	if (await exists(sql, 'SELECT 1 FROM messages WHERE submission_seq = ?', [seq])) return;
	if (campaign === null && campaign_seq === null && without.has(seq)) {
		sql.write('DELETE FROM submissions WHERE seq = ?', [seq]);
		await dropContent(sql, content_sha256, now);
		return;
	}
	const emptied = "UPDATE submissions SET envelope = ?, context = '{}', request = NULL WHERE seq = ?";
	sql.write(emptied, [onlyFrom(envelope), seq]);
}
