import type { Uuid } from '../../../api/records.js';
import { dropContent } from '../attachments.js';
import type { Sql } from '../sql.js';
import { countMessages } from '../submissions.js';

/** `of`: the campaign of its rows; what is staged waits in the lane of its campaign (messages_due). */
const leavings = [
	{ table: 'messages', key: 'id', of: 'wake_at IS NOT NULL AND lane' },
	{ table: 'campaign_results', key: 'campaign_seq, n', of: 'campaign_seq' },
	{ table: 'campaign_left_out', key: 'id', of: 'campaign_seq' },
];

/** One slice of what a campaign leaves that was canceled before its release; the most rows of one kind. */
export async function dropStaged(
	sql: Sql,
	{ campaign, limit }: { campaign: Uuid; limit: number },
): Promise<number> {
	let most = 0;
	for (const { table, key, of } of leavings) {
		const { changes } = await sql.run(
			`DELETE FROM ${table}
			WHERE (${key}) IN (
				SELECT ${key} FROM ${table}
				WHERE ${of} = (
					SELECT seq FROM campaigns WHERE id = ? AND state = 'canceled' AND released_at IS NULL
				)
				LIMIT ?
			)`,
			[campaign, limit],
		);
		if (table === 'messages') countMessages(sql, -changes);
		most = Math.max(most, changes);
	}
	return most;
}

export async function forget(sql: Sql, id: Uuid): Promise<void> {
	const row = await sql.get<{ seq: number }>(
		"SELECT seq FROM campaigns WHERE id = ? AND state = 'canceled' AND released_at IS NULL",
		[id],
	);
	if (row === undefined) return;
	sql.write('DELETE FROM campaign_lists WHERE campaign_seq = ?', [row.seq]);
	// submissions_of_campaign
	const contents = await sql.all<{ sha256: string }>(
		`SELECT DISTINCT content_sha256 AS sha256
		FROM submissions
		WHERE campaign_seq = ? AND content_sha256 IN (SELECT content_sha256 FROM content_attachments)`,
		[row.seq],
	);
	sql.write('DELETE FROM submissions WHERE campaign_seq = ?', [row.seq]);
	sql.write('DELETE FROM campaigns WHERE seq = ?', [row.seq]);
	// Other contents stay: they are small, and the same may be sent again.
	for (const { sha256 } of contents) await dropContent(sql, sha256, 'at once');
}
