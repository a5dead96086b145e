import type { MessageState, Uuid } from '../../../api/records.js';
import type { Seen } from '../../store.js';
import { seenState } from '../campaign-windows.js';
import { seenRows } from '../campaigns/rows.js';
import { countedRows } from '../figures/daily.js';
import { bouncedGroups, bouncedRows, clickedRows } from '../figures/detail.js';
import type { Sql } from '../sql.js';

/** A campaign's own messages, and those of send calls with a UUID, whether a campaign has it or not. */
const sumsOfStates = [
	{ table: 'deleted_states', campaign: 'g.id', where: 'g.id IS NOT NULL' },
	{ table: 'deleted_joined', campaign: 's.campaign', where: 's.campaign IS NOT NULL AND g.id IS NULL' },
] as const;

export function addToSums(sql: Sql, ids: string): void {
	const only = (id: string) => `AND ${sql.dialect.oneOf(id)}`;
	sql.write(
		`INSERT INTO deleted_figures (tag, campaign, type, audience, quarter, count)
		SELECT coalesce(tag, ''), coalesce(campaign, ''), type, audience, quarter, sum(count)
		FROM (${countedRows(only)}) d
		WHERE TRUE
		GROUP BY 1, 2, 3, 4, 5
		ON CONFLICT (tag, campaign, type, audience, quarter) DO UPDATE SET count = deleted_figures.count + excluded.count`,
		[ids, ids, ids, ids],
	);
	sql.write(
		`INSERT INTO deleted_links (campaign, content_sha256, link, audience, clicks, messages)
		SELECT campaign, content_sha256, link, audience, clicks, messages
		FROM (${clickedRows(sql.dialect.oneOf('f.message_id'))}) d
		WHERE TRUE
		ON CONFLICT (campaign, content_sha256, link, audience) DO UPDATE
		SET clicks = deleted_links.clicks + excluded.clicks, messages = deleted_links.messages + excluded.messages`,
		[ids],
	);
	sql.write(
		`INSERT INTO deleted_bounces (campaign, quarter, domain, type, code, count)
		SELECT coalesce(campaign, ''), quarter, domain, type, code, sum(count)
		FROM (${bouncedRows(sql, 'TRUE', only('message_id'))}) d
		WHERE TRUE
		GROUP BY 1, 2, 3, 4, 5
		ON CONFLICT (campaign, quarter, domain, type, code) DO UPDATE SET count = deleted_bounces.count + excluded.count`,
		[ids],
	);
	sql.write(
		`INSERT INTO deleted_bounced (tag, campaign, sent, soft, hard, count)
		SELECT tag, campaign, sent, soft, hard, count
		FROM (${bouncedGroups(only('message_id'))}) d
		WHERE TRUE
		ON CONFLICT (tag, campaign, sent, soft, hard) DO UPDATE SET count = deleted_bounced.count + excluded.count`,
		[ids],
	);
	for (const { table, campaign, where } of sumsOfStates)
		sql.write(
			`INSERT INTO ${table} (campaign, state, count)
			SELECT ${campaign}, ${seenState}, count(*)
			FROM messages m
			JOIN submissions s ON s.seq = m.submission_seq
			LEFT JOIN campaigns g ON g.seq = s.campaign_seq
			WHERE ${sql.dialect.oneOf('m.id')} AND ${where}
			GROUP BY 1, 2
			ON CONFLICT (campaign, state) DO UPDATE SET count = ${table}.count + excluded.count`,
			[ids],
		);
}

export async function deletedStates(
	sql: Sql,
	campaign: Uuid,
	seen: Seen,
): Promise<{ state: MessageState; count: number }[]> {
	const own = seenRows('g.owner', seen);
	return await sql.all(
		`SELECT d.state, d.count
		FROM deleted_states d
		JOIN campaigns g ON g.id = d.campaign
		WHERE d.campaign = ? AND ${own.where}
		ORDER BY d.state`,
		[campaign, ...own.values],
	);
}

/** As `deletedStates`, of send calls with the UUID: they have no owner any more, so a client sees those of its own campaign alone. */
export async function deletedJoined(
	sql: Sql,
	campaign: Uuid,
	seen: Seen = {},
): Promise<{ state: MessageState; count: number }[]> {
	const client = seen.only_of ?? null;
	return await sql.all(
		`SELECT state, count
		FROM deleted_joined
		WHERE campaign = ? AND (CAST(? AS TEXT) IS NULL OR NOT EXISTS (
			SELECT 1 FROM submissions WHERE campaign = ? AND owner IS DISTINCT FROM ?
		))
		ORDER BY state`,
		[campaign, client, campaign, client],
	);
}

const gone = `(g.staged - (
	SELECT count(*) FROM submissions s JOIN messages m ON m.submission_seq = s.seq WHERE s.campaign_seq = g.seq
))`;

const hasLost = "g.dropped_at IS NOT NULL AND g.released_at IS NOT NULL AND g.courier = 'smtp'";

export async function wrongStates(sql: Sql): Promise<Uuid[]> {
	const rows = await sql.all<{ id: Uuid }>(
		`SELECT g.id
		FROM campaigns g
		LEFT JOIN (SELECT campaign, sum(count) AS count FROM deleted_states GROUP BY campaign) d ON d.campaign = g.id
		WHERE ${hasLost} AND coalesce(d.count, 0) <> ${gone}
		ORDER BY g.seq`,
	);
	return rows.map(({ id }) => id);
}

interface Told {
	gone: number;
	sent: number;
	returned: number;
	bounced: number;
	failed: number;
}

/** From the figures: sent, bounced, failed. The rest of a campaign that is over was nearly always canceled. */
export async function recountStates(sql: Sql, campaigns: readonly Uuid[]): Promise<void> {
	for (const campaign of campaigns) {
		const told = await sql.get<Told>(
			`SELECT ${gone} AS gone,
				(SELECT coalesce(sum(count), 0) FROM deleted_figures WHERE campaign = g.id AND type = 'SENT') AS sent,
				coalesce(b.returned, 0) AS returned, coalesce(b.bounced, 0) AS bounced, coalesce(b.failed, 0) AS failed
			FROM campaigns g
			LEFT JOIN (
				SELECT campaign, sum(CASE WHEN sent >= 0 THEN count ELSE 0 END) AS returned,
					sum(CASE WHEN hard >= 0 THEN count ELSE 0 END) AS bounced,
					sum(CASE WHEN hard < 0 THEN count ELSE 0 END) AS failed
				FROM deleted_bounced
				GROUP BY campaign
			) b ON b.campaign = g.id
			WHERE g.id = ?`,
			[campaign],
		);
		if (told === undefined) continue;
		// The figures are those of what joined it, too.
		const joined = new Map((await deletedJoined(sql, campaign)).map(({ state, count }) => [state, count]));
		const own = (state: MessageState, count: number) => count - (joined.get(state) ?? 0);
		const sent = own('sent', told.sent - told.returned);
		const [bounced, failed] = [own('bounced', told.bounced), own('failed', told.failed)];
		const states = { sent, bounced, failed, canceled: told.gone - sent - bounced - failed };
		sql.write('DELETE FROM deleted_states WHERE campaign = ?', [campaign]);
		for (const [state, count] of Object.entries(states))
			if (count > 0)
				sql.write('INSERT INTO deleted_states (campaign, state, count) VALUES (?, ?, ?)', [
					campaign,
					state,
					count,
				]);
	}
}
