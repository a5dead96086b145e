import type { LeftOutPerson } from '../../../api/campaigns.js';
import type { Uuid } from '../../../api/records.js';
import type { SuppressionReason } from '../../../api/suppressions.js';
import type { Command, Operations } from '../../operations.js';
import { sliceOf } from '../rows.js';
import type { Insertion, Sql } from '../sql.js';
import { seenRows } from './rows.js';

export const intoLeftOut: Insertion = {
	table: 'campaign_left_out',
	columns: {
		...{ campaign_seq: 'BIGINT', submission_seq: 'BIGINT', campaign: 'TEXT', list_id: 'BIGINT' },
		...{ to_email: 'TEXT', to_key: 'TEXT', code: 'TEXT', detail: 'TEXT' },
	},
	conflict: '',
};

export interface UnwantedRecipient {
	to: string;
	to_key: string;
	list_id: number | null;
	reason: SuppressionReason | null;
	disable_reason: string | null;
}

export function keepLeftOut(
	sql: Sql,
	{ submission_seq, campaign }: { submission_seq: number; campaign: Uuid },
	people: readonly UnwantedRecipient[],
): void {
	const rows = people.map(({ to, to_key, list_id, reason, disable_reason }) => [
		...[null, submission_seq, campaign, list_id, to, to_key],
		...(reason === null ? ['inactive', disable_reason] : ['suppressed', reason]),
	]);
	sql.writeAll(intoLeftOut, rows);
}

export async function sliceLeftOut(
	sql: Sql,
	seq: number | null,
	{ id, after, limit, ...seen }: Command<'sliceLeftOut'>,
): ReturnType<Operations['sliceLeftOut']> {
	const own = seenRows('s.owner', seen);
	const select = 'SELECT o.id, o.to_email AS "to", o.list_id, o.code, o.detail FROM campaign_left_out o';
	const parts = await sql.together([
		async () =>
			seq === null
				? []
				: await sql.all<LeftOutPerson & { id: number }>(
						// left_out_of_campaign (campaign_seq, id), messages_of_address. One with a message by another list was not left out.
						`${select}
						WHERE o.campaign_seq = ? AND o.id > ?
							AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.to_key = o.to_key AND m.lane = o.campaign_seq)
						ORDER BY o.id
						LIMIT ?`,
						[seq, after, limit + 1],
					),
		() =>
			sql.all<LeftOutPerson & { id: number }>(
				`${select}
				JOIN submissions s ON s.seq = o.submission_seq
				WHERE o.campaign = ? AND o.id > ? AND ${own.where}
				ORDER BY o.id
				LIMIT ?`,
				[id, after, ...own.values, limit + 1],
			),
	]);
	const rows = parts.flat().sort((one, other) => one.id - other.id);
	const { shown, next } = sliceOf(rows, limit, (row) => row.id);
	return { results: shown.map(({ id: _, ...person }) => person), next };
}
