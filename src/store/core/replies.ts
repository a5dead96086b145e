import type { CommonReply } from '../../api/campaigns.js';
import type { Sql } from './sql.js';

const mostTexts = 10_000;
const mostReplies = 5;

/** A permanent refusal that is deferred is one of the sender, except a plain 552 (RFC 5321 s.4.5.3.1.10). */
export const isSendersRefusal =
	"(m.last_reply LIKE '5%' AND (m.last_reply NOT LIKE '552 %' OR m.last_reply LIKE '552 5.%'))";

export async function commonReplies(
	sql: Sql,
	condition: string,
	...values: readonly (string | number)[]
): Promise<CommonReply[]> {
	const selected = 'SELECT state, last_reply, to_email, to_key FROM messages';
	const rows = await sql.all<CommonReply>(
		`SELECT state, reply, count(*) AS count
		FROM (
			SELECT state, replace(replace(last_reply, to_email, '…'), to_key, '…') AS reply
			FROM (
				${selected}
				WHERE ${condition} AND wake_at IS NULL AND state <> 'sent' AND state IN ('failed', 'bounced')
				UNION ALL
				${selected}
				WHERE ${condition} AND wake_at IS NOT NULL AND state = 'deferred'
					AND NOT EXISTS (SELECT 1 FROM campaigns g WHERE g.seq = lane AND g.state = 'canceled')
			) m
			WHERE last_reply IS NOT NULL
		) r
		GROUP BY state, reply
		ORDER BY 3 DESC, 2, 1
		LIMIT ${mostTexts}`,
		[...values, ...values],
	);
	const found = new Map<string, CommonReply>();
	for (const { state, reply, count } of rows) {
		const words = reply.split(' ').filter((word) => word.length < 8 || !/\d/.test(word));
		const name = `${state} ${words.join(' ')}`;
		found.set(name, { state, reply, ...found.get(name), count: count + (found.get(name)?.count ?? 0) });
	}
	return [...found.values()].sort((one, other) => other.count - one.count).slice(0, mostReplies);
}
