/** Texts and files sent last before `keep_bodies`. The links of the HTML stay; a later send of the content brings it back. */
import { specIdentity } from '../../../api/campaign-identity.js';
import { canonicalJson } from '../../../api/json.js';
import { dropUnnamed } from '../attachments.js';
import { type CampaignRow, isSending, specOf } from '../campaigns/rows.js';
import type { SliceOfExpired } from '../expired.js';
import { column, type Sql } from '../sql.js';
import { cutoffs } from './room.js';

const isNeeded = `EXISTS (
	SELECT 1
	FROM submissions s
	LEFT JOIN campaigns g ON g.seq = s.campaign_seq
	WHERE s.content_sha256 = c.sha256 AND (
		g.state = 'staged' OR ${isSending}
		OR (s.campaign_seq IS NULL AND EXISTS (
			SELECT 1 FROM messages m WHERE m.submission_seq = s.seq AND m.wake_at IS NOT NULL
		))
	)
)`;

/** Bodies that are needed stay in the index before the rest: the next slice begins behind as many. */
export async function dropBodies(
	sql: Sql,
	{ now, limit, after, onlyLinks }: SliceOfExpired,
): Promise<{ next: number | null }> {
	const { bodies: before } = await cutoffs(sql, now);
	if (before === null) return { next: null };
	const found = await sql.all<{ sha256: string; html: string | null; is_needed: number }>(
		`SELECT sha256, html, CASE WHEN ${isNeeded} THEN 1 ELSE 0 END AS is_needed
		FROM contents c
		WHERE dropped_at IS NULL AND used_at <= ? AND sha256 <> 'erased'
		ORDER BY used_at, sha256
		LIMIT ? OFFSET ?`,
		[before, limit, after],
	);
	const leaving = found.filter(({ is_needed }) => is_needed === 0);
	for (const { sha256, html } of leaving) {
		const { changes } = await sql.run(
			'UPDATE contents SET text = NULL, html = ?, dropped_at = ? WHERE sha256 = ? AND used_at <= ?',
			[html === null ? null : onlyLinks(html), now, sha256, before],
		);
		if (changes === 0) continue;
		const files = 'DELETE FROM content_attachments WHERE content_sha256 = ? RETURNING sha256';
		for (const file of await column<string>(sql, files, [sha256])) dropUnnamed(sql, file, now);
		await dropSpecs(sql, sha256);
	}
	return { next: found.length < limit ? null : after + found.length - leaving.length };
}

/** The same bodies in the specs of its campaigns: hashes are enough to know the same campaign again. */
async function dropSpecs(sql: Sql, content_sha256: string): Promise<void> {
	const rows = await sql.all<Pick<CampaignRow, 'seq' | 'spec'>>(
		`SELECT seq, spec
		FROM campaigns
		WHERE seq IN (SELECT campaign_seq FROM submissions WHERE content_sha256 = ?)`,
		[content_sha256],
	);
	for (const row of rows) {
		const spec = specOf(row);
		if ('requests' in spec || spec.identity !== undefined) continue;
		const { text_body: _text, html_body: _html, ...kept } = spec;
		sql.write('UPDATE campaigns SET spec = ? WHERE seq = ?', [
			canonicalJson({ ...kept, identity: specIdentity(spec) }),
			row.seq,
		]);
	}
}
