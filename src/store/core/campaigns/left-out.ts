import type { LeftOutPerson } from '../../../api/campaigns.js';
import type { Uuid } from '../../../api/records.js';
import type { SuppressionReason } from '../../../api/suppressions.js';
import type { Command, Operations } from '../../operations.js';
import type { Insertion, Sql } from '../sql.js';
import { seenRows } from './rows.js';

const intoLeftOut: Insertion = {
	table: 'campaign_left_out',
	columns: {
		...{ submission_seq: 'BIGINT', campaign: 'TEXT', list_id: 'BIGINT', to_email: 'TEXT', to_key: 'TEXT' },
		...{ code: 'TEXT', detail: 'TEXT' },
	},
	key: 'to_key',
	id: 'id',
	conflict: '',
};

export interface UnwantedRecipient {
	to: string;
	to_key: string;
	list_id: number | null;
	/** Null: the subscriber is inactive without a suppression. */
	reason: SuppressionReason | null;
	disable_reason: string | null;
}

export function keepLeftOut(
	sql: Sql,
	call: { submission_seq: number; campaign: Uuid },
	people: readonly UnwantedRecipient[],
): void {
	sql.writeAll(
		intoLeftOut,
		people.map(({ to, to_key, list_id, reason, disable_reason }) => [
			...[call.submission_seq, call.campaign, list_id, to, to_key],
			...(reason === null ? ['inactive', disable_reason] : ['suppressed', reason]),
		]),
	);
}

type LeftOutRow = LeftOutPerson & { id: number };

/** Rows after `after`. `seq`: the number of the campaign that the caller sees; null: send calls alone have its UUID. */
export async function sliceLeftOut(
	sql: Sql,
	seq: number | null,
	{ id, after, limit, ...seen }: Command<'sliceLeftOut'>,
): ReturnType<Operations['sliceLeftOut']> {
	const slice = { after, limit: limit + 1 };
	const parts = await sql.together([
		async () => (seq === null ? [] : await ofLists(sql, seq, slice)),
		() => ofCalls(sql, { id, ...slice, ...seen }),
	]);
	const rows = parts.flat().sort((one, other) => one.id - other.id);
	const shown = rows.slice(0, limit);
	return {
		results: shown.map(({ to, list_id, code, detail }) => ({ to, list_id, code, detail })),
		next: rows.length > limit ? (shown.at(-1)?.id ?? null) : null,
	};
}

/** An address that got its message by another list was not left out. */
async function ofLists(
	sql: Sql,
	campaign_seq: number,
	{ after, limit }: { after: number; limit: number },
): Promise<LeftOutRow[]> {
	return await sql.all<LeftOutRow>(
		// left_out_of_campaign (campaign_seq, id), messages_of_address
		`SELECT o.id, o.to_email AS "to", o.list_id, o.code, o.detail
		FROM campaign_left_out o
		WHERE o.campaign_seq = ? AND o.id > ?
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.to_key = o.to_key AND m.lane = o.campaign_seq)
		ORDER BY o.id
		LIMIT ?`,
		[campaign_seq, after, limit],
	);
}

async function ofCalls(
	sql: Sql,
	{ id, after, limit, ...seen }: Command<'sliceLeftOut'>,
): Promise<LeftOutRow[]> {
	const own = seenRows('s.owner', seen);
	return await sql.all<LeftOutRow>(
		// left_out_of_calls (campaign, id)
		`SELECT o.id, o.to_email AS "to", o.list_id, o.code, o.detail
		FROM campaign_left_out o
		JOIN submissions s ON s.seq = o.submission_seq
		WHERE o.campaign = ? AND o.id > ? AND ${own.where}
		ORDER BY o.id
		LIMIT ?`,
		[id, after, ...own.values, limit],
	);
}
