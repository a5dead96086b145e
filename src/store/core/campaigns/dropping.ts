import type { Uuid } from '../../../api/records.js';
import { dropContent } from '../attachments.js';
import type { Sql } from '../sql.js';
import { countMessages } from '../submissions.js';

export async function dropStaged(sql: Sql, command: { campaign: Uuid; limit: number }): Promise<number> {
	return Math.max(
		await dropMessages(sql, command),
		await dropResults(sql, command),
		await dropLeftOut(sql, command),
	);
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

const neverReleased =
	"(SELECT seq FROM campaigns WHERE id = ? AND state = 'canceled' AND released_at IS NULL)";

/** By messages_due: what is staged waits in the lane of its campaign. */
async function dropMessages(
	sql: Sql,
	{ campaign, limit }: { campaign: Uuid; limit: number },
): Promise<number> {
	const { changes } = await sql.run(
		`DELETE FROM messages
				WHERE id IN (
					SELECT id FROM messages
					WHERE wake_at IS NOT NULL AND lane = ${neverReleased}
					LIMIT ?
				)`,
		[campaign, limit],
	);
	countMessages(sql, -changes);
	return changes;
}

async function dropResults(
	sql: Sql,
	{ campaign, limit }: { campaign: Uuid; limit: number },
): Promise<number> {
	const { changes } = await sql.run(
		`DELETE FROM campaign_results
		WHERE (campaign_seq, n) IN (
			SELECT campaign_seq, n FROM campaign_results
			WHERE campaign_seq = ${neverReleased}
			LIMIT ?
		)`,
		[campaign, limit],
	);
	return changes;
}

async function dropLeftOut(
	sql: Sql,
	{ campaign, limit }: { campaign: Uuid; limit: number },
): Promise<number> {
	const { changes } = await sql.run(
		`DELETE FROM campaign_left_out
		WHERE id IN (
			SELECT id FROM campaign_left_out
			WHERE campaign_seq = ${neverReleased}
			LIMIT ?
		)`,
		[campaign, limit],
	);
	return changes;
}
