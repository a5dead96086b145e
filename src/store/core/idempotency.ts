import { type Micros, microsPerDay } from '../../api/datetime.js';
import type { SendResult, Uuid } from '../../api/records.js';
import type { IdempotencyKey } from '../campaigns.js';
import { insertInto, parseStored, type Sql } from './sql.js';

/** A clock that was set ahead may expire keys early. */
export async function findKey<Answer>(sql: Sql, { scope, key, fingerprint }: IdempotencyKey, now: Micros) {
	const row = await sql.get<{ fingerprint: string; submission: Uuid; campaign: Uuid | null; answer: string }>(
		`SELECT fingerprint, submission_id AS submission, campaign, answer
		FROM idempotency_keys
		WHERE scope = ? AND key = ? AND created_at > ?`,
		[scope, key, now - microsPerDay],
	);
	if (row === undefined) return null;
	if (row.fingerprint !== fingerprint) return { kind: 'key_conflict' } as const;
	const { submission, campaign } = row;
	return { kind: 'answered', answer: parseStored(row.answer) as Answer, submission, campaign } as const;
}

export function rememberKey(
	sql: Sql,
	{ scope, key, fingerprint }: IdempotencyKey,
	said: { submission?: Uuid; campaign?: Uuid | null; answer: SendResult | { list: number }; now: Micros },
): void {
	const { submission = '', campaign = null, now } = said;
	const answer = JSON.stringify(said.answer);
	insertInto(
		sql,
		'idempotency_keys',
		{ scope, key, fingerprint, submission_id: submission, campaign, answer, created_at: now },
		`ON CONFLICT (scope, key) DO UPDATE
		SET fingerprint = excluded.fingerprint, submission_id = excluded.submission_id, campaign = excluded.campaign,
			answer = excluded.answer, created_at = excluded.created_at`,
	);
}
