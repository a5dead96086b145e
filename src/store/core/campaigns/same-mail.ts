/** The same mail to the same recipients, sent lately. */

import { mailIdentity, specIdentity } from '../../../api/campaign-identity.js';
import type { SameMail } from '../../../api/campaigns.js';
import type { Micros } from '../../../api/datetime.js';
import type { OpenCampaign } from '../../campaigns.js';
import type { Seen } from '../../store.js';
import type { Sql } from '../sql.js';
import { type CampaignRow, campaignColumns, isSeen, isSending, specOf } from './rows.js';

/** So long after a release the same mail is taken for a repetition. */
const repetition: Micros = 24 * 3_600_000_000;

/**
 * A campaign of the same mail that is staged or sending, or was released a short while ago and not canceled before it
 * reached a recipient. Unfinished ones first, then the newest. A repetition was begun as one, or beside such a one before it.
 */
export async function findSame(
	sql: Sql,
	spec: OpenCampaign['spec'],
	{ unless, now, ...seen }: Seen & { unless: SameMail; now: Micros },
): Promise<CampaignRow | undefined> {
	const rows = await sql.all<CampaignRow & { created_at: Micros; is_open: number }>(
		`SELECT ${campaignColumns}, created_at,
			CASE WHEN state = 'staged' OR ${isSending} THEN 1 ELSE 0 END AS is_open
		FROM campaigns g
		WHERE state = 'staged' OR ${isSending}
			OR (released_at > ? AND EXISTS (
				SELECT 1
				FROM submissions s
				JOIN messages m ON m.submission_seq = s.seq
				WHERE s.campaign_seq = g.seq AND (g.state = 'released' OR m.attempts > 0)
			))
		ORDER BY is_open DESC, seq DESC`,
		[(unless === 'sent' ? now : await oldestOpen(sql, now)) - repetition],
	);
	const wanted = { mail: mailIdentity(spec), hash: specIdentity(spec).mail };
	const same = rows.filter((row) => {
		const stored = specOf(row);
		const isSameMail =
			stored.identity === undefined
				? mailIdentity(stored) === wanted.mail
				: stored.identity.mail === wanted.hash;
		return isSeen(row, seen) && isSameMail;
	});
	if (unless === 'sent') return same[0];
	const isWithin = ({ is_open, released_at }: (typeof same)[number], at: Micros) =>
		is_open === 1 || (released_at ?? 0) > at - repetition;
	return same.find(
		(row) =>
			(unless === 'repeated' ? isWithin(row, now) : row.is_open === 1) &&
			(row.is_again === 1 || same.some((other) => other.seq < row.seq && isWithin(other, row.created_at))),
	);
}

async function oldestOpen(sql: Sql, now: Micros): Promise<Micros> {
	const [[at] = [null]] = await sql.tuples<[Micros | null]>(
		`SELECT min(created_at) FROM campaigns g WHERE state = 'staged' OR ${isSending}`,
	);
	return at ?? now;
}
