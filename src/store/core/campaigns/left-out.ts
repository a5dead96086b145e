/** Who of its lists a campaign left out, by name. */
import type { LeftOutPerson } from '../../../api/campaigns.js';
import type { Command, Operations } from '../../operations.js';
import type { Sql } from '../sql.js';
import { isSeen } from './rows.js';

/** Rows after `after`; null: no such campaign. An address that got its message by another list was not left out. */
export async function sliceLeftOut(
	sql: Sql,
	{ id, after, limit, ...seen }: Command<'sliceLeftOut'>,
): ReturnType<Operations['sliceLeftOut']> {
	const campaign = await sql.get<{ seq: number; owner: string | null }>(
		'SELECT seq, owner FROM campaigns WHERE id = ?',
		id,
	);
	if (campaign === undefined || !isSeen(campaign, seen)) return null;
	const rows = await sql.all<LeftOutPerson & { id: number; to_key: string }>(
		// left_out_of_campaign (campaign_seq, id), messages_of_address
		`SELECT o.id, o.to_email AS "to", o.to_key, o.list_id, o.code, o.detail
		FROM campaign_left_out o
		WHERE o.campaign_seq = ? AND o.id > ?
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.to_key = o.to_key AND m.lane = o.campaign_seq)
		ORDER BY o.id
		LIMIT ?`,
		campaign.seq,
		after,
		limit + 1,
	);
	const shown = rows.slice(0, limit);
	return {
		results: shown.map(({ to, list_id, code, detail }) => ({ to, list_id, code, detail })),
		next: rows.length > limit ? (shown.at(-1)?.id ?? null) : null,
	};
}
