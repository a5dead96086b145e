/**
 * Messages that bounced, counted by the quarters of an hour in which they were sent and first bounced: sums by day cannot
 * tell how many messages bounced, as one may be sent, deferred for good and refused on three days.
 */
import type { Uuid } from '../../../api/records.js';
import type { Day } from '../../store.js';
import type { Sql } from '../sql.js';
import { never, quarterHour, quartersOf } from './tally.js';

interface BouncedRange {
	from: Day;
	to: Day;
	campaign: Uuid | null;
	tag: string | null;
	zone: string;
}

/** Messages that bounced within the range, and those of them that were not sent within it. */
export async function countBounced(
	sql: Sql,
	{ campaign, tag, zone, ...days }: BouncedRange,
): Promise<{ bounced: number; neverSent: number }> {
	const range = quartersOf(days, zone);
	const of = `CAST(? AS TEXT) IS NULL OR`;
	const row = await sql.get<{ bounced: number; neverSent: number }>(
		`SELECT coalesce(sum(count), 0) AS bounced,
			coalesce(sum(CASE WHEN sent BETWEEN ? AND ? THEN 0 ELSE count END), 0) AS "neverSent"
		FROM (
			SELECT sent, campaign, tag, count FROM bounced_figures WHERE hard BETWEEN ? AND ?
			UNION ALL
			-- bounced_figures_soft
			SELECT sent, campaign, tag, count FROM bounced_figures
			WHERE soft BETWEEN ? AND ? AND soft >= 0 AND hard NOT BETWEEN ? AND ?
		) b
		WHERE (${of} campaign = ?) AND (${of} tag = ?)`,
		...[...range, ...range, ...range, ...range],
		...[campaign, campaign, tag, tag],
	);
	return row ?? { bounced: 0, neverSent: 0 };
}

/** Counts of messages by tag, campaign and quarters. `only`: of the column of a message's id, as what follows a WHERE. */
export function bouncedGroups(only = ''): string {
	const quarter = (at: string) => `coalesce(${at} / ${quarterHour}, ${never})`;
	return `SELECT coalesce(s.tag, '') AS tag, coalesce(s.campaign, '') AS campaign,
			${quarter('m.sent_at')} AS sent, ${quarter('b.soft')} AS soft, ${quarter('b.hard')} AS hard, count(*) AS count
		FROM (
			SELECT message_id, min(CASE type WHEN 'SOFTBOUNCED' THEN first_at END) AS soft,
				min(CASE type WHEN 'HARDBOUNCED' THEN first_at END) AS hard
			FROM message_firsts
			WHERE type IN ('SOFTBOUNCED', 'HARDBOUNCED') ${only}
			GROUP BY message_id
		) b
		JOIN messages m ON m.id = b.message_id
		JOIN submissions s ON s.seq = m.submission_seq
		GROUP BY 1, 2, 3, 4, 5`;
}

/** The figures as they should be, those of messages that retention has deleted too. */
const counted = `SELECT tag, campaign, sent, soft, hard, count FROM (${bouncedGroups()}) k
	UNION ALL
	SELECT tag, campaign, sent, soft, hard, count FROM deleted_bounced`;

/** How many figures are not what their messages add up to. */
export async function wrongBounced(sql: Sql): Promise<number> {
	return await sql.number(
		`SELECT count(*)
		FROM (
			SELECT 1
			FROM (
				SELECT tag, campaign, sent, soft, hard, count FROM bounced_figures
				UNION ALL
				SELECT tag, campaign, sent, soft, hard, -count FROM (${counted}) c
			) d
			GROUP BY tag, campaign, sent, soft, hard
			HAVING sum(count) <> 0
		) w`,
	);
}

export function recountBounced(sql: Sql): void {
	sql.write('DELETE FROM bounced_figures');
	sql.write(
		`INSERT INTO bounced_figures (hard, soft, sent, campaign, tag, shard, count)
		SELECT hard, soft, sent, campaign, tag, 0, sum(count)
		FROM (${counted}) c
		GROUP BY hard, soft, sent, campaign, tag`,
	);
}
