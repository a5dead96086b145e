/** Subscribers of a list, counted by what becomes of them in a campaign and why; kept with how far the list was read. */
import type { LeavingOut, ListCounts } from '../../../api/campaigns.js';
import { withoutValueOf, withoutValueText } from '../../../api/refusals.js';
import { parseStored } from '../../errors.js';
import type { Sql } from '../sql.js';
import type { CampaignRow } from './rows.js';
import type { Verdict } from './staging.js';

export type Outcome = Verdict | ({ kind: 'left_out' } & LeavingOut);

/** Why there is no message; null: there is one. */
export function leavingOut(outcome: Outcome): LeavingOut | null {
	switch (outcome.kind) {
		case 'left_out':
			return { code: outcome.code, detail: outcome.detail };
		case 'suppressed':
			return { code: 'suppressed', detail: outcome.reason };
		case 'rejected':
			return { code: outcome.code, detail: outcome.error };
		case 'wanted':
			return null;
	}
}

export interface Counts {
	add(outcome: Outcome): void;
	sum(): ListCounts;
}

/** Begins at zero. */
export function createCounts(list_id: number): Counts {
	const counts = { staged: 0, suppressed: 0, rejected: 0, left_out: 0 };
	const reasons = new Map<string, LeavingOut & { count: number }>();
	return {
		add: (outcome) => {
			counts[outcome.kind === 'wanted' ? 'staged' : outcome.kind] += 1;
			const why = leavingOut(outcome);
			if (why === null) return;
			const detail = outcome.kind === 'rejected' ? sharedBy(outcome.error) : why.detail;
			const key = `${why.code} ${detail}`;
			const known = reasons.get(key);
			if (known === undefined) reasons.set(key, { code: why.code, detail, count: 1 });
			else known.count += 1;
		},
		sum: () => {
			const { left_out, ...rest } = counts;
			return { list_id, ...rest, ...(left_out > 0 && { left_out }), reasons: [...reasons.values()] };
		},
	};
}

/** A finding names the person: what several have in common is the variables. */
function sharedBy(error: string): string | null {
	const names = withoutValueOf(error);
	return names.length === 0 ? null : withoutValueText(names);
}

/** Each set of variables is a reason: in a content of many there may be as many sets as people. */
const mostReasons = 100;

export function sumOf(before: ListCounts | null, counts: ListCounts): ListCounts {
	if (before === null) return counts;
	const reasons = before.reasons.map((one) => ({ ...one }));
	for (const { code, detail, count } of counts.reasons) {
		const isKept = reasons.length < mostReasons || reasons.some((one) => one.detail === detail);
		const shown = isKept ? detail : null;
		const known = reasons.find((one) => one.code === code && one.detail === shown);
		if (known === undefined) reasons.push({ code, detail: shown, count });
		else known.count += count;
	}
	const left_out = (before.left_out ?? 0) + (counts.left_out ?? 0);
	return {
		list_id: before.list_id,
		staged: before.staged + counts.staged,
		suppressed: before.suppressed + counts.suppressed,
		rejected: before.rejected + counts.rejected,
		...(left_out > 0 && { left_out }),
		reasons,
	};
}

/** How far a list was read for a campaign, and its counts so far; null: not begun. */
export async function placeOf(
	sql: Sql,
	campaign_seq: number,
	list_id: number,
): Promise<{ after_id: number; counts: ListCounts | null } | null> {
	const row = await sql.get<{ after_id: number; counts: string | null }>(
		'SELECT after_id, counts FROM campaign_lists WHERE campaign_seq = ? AND list_id = ?',
		campaign_seq,
		list_id,
	);
	return row === undefined ? null : { after_id: row.after_id, counts: readCounts(row.counts) };
}

function readCounts(text: string | null): ListCounts | null {
	// Written by keepPlace and by nothing else.
	return text === null ? null : (parseStored(text) as ListCounts);
}

export function keepPlace(
	sql: Sql,
	campaign_seq: number,
	{ after_id, counts }: { after_id: number; counts: ListCounts },
): void {
	sql.write(
		`INSERT INTO campaign_lists (campaign_seq, list_id, after_id, counts)
		VALUES (?, ?, ?, ?)
		ON CONFLICT (campaign_seq, list_id) DO UPDATE SET after_id = excluded.after_id, counts = excluded.counts`,
		campaign_seq,
		counts.list_id,
		after_id,
		JSON.stringify(counts),
	);
}

/** In the order in which the lists were given; those of before this was kept are missing. */
export async function listCounts(
	sql: Sql,
	{ seq }: Pick<CampaignRow, 'seq'>,
	order: readonly number[],
): Promise<ListCounts[]> {
	const rows = await sql.all<{ counts: string | null }>(
		'SELECT counts FROM campaign_lists WHERE campaign_seq = ? ORDER BY list_id',
		seq,
	);
	return rows
		.flatMap(({ counts }) => readCounts(counts) ?? [])
		.sort((a, b) => order.indexOf(a.list_id) - order.indexOf(b.list_id));
}
