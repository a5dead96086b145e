/** Subscribers of a list, counted by what becomes of them in a campaign and why. */
import type { LeavingOut, ListCounts } from '../../../api/campaigns.js';
import type { Verdict } from './staging.js';

/** Of one subscriber. */
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
			// A finding names the person: of those the code is counted.
			const detail = outcome.kind === 'rejected' ? null : why.detail;
			const key = `${why.code} ${detail}`;
			const before = reasons.get(key)?.count ?? 0;
			reasons.set(key, { code: why.code, detail, count: before + 1 });
		},
		sum: () => {
			const { left_out, ...rest } = counts;
			return { list_id, ...rest, ...(left_out > 0 && { left_out }), reasons: [...reasons.values()] };
		},
	};
}

/** Of two slices of one list. */
export function sumOf(before: ListCounts | null, counts: ListCounts): ListCounts {
	if (before === null) return counts;
	const reasons = before.reasons.map((one) => ({ ...one }));
	for (const { code, detail, count } of counts.reasons) {
		const known = reasons.find((one) => one.code === code && one.detail === detail);
		if (known === undefined) reasons.push({ code, detail, count });
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
