import { type Micros, microsPerDay } from '../../api/datetime.js';
import type { SendResult, Uuid } from '../../api/records.js';
import { parseStored } from '../errors.js';
import type { Acceptance, IdempotencyKey } from '../submissions.js';
import type { Sql } from './sql.js';

interface KeyRow {
	fingerprint: string;
	submission_id: Uuid;
	campaign: Uuid | null;
	answer: string;
}

export async function findEarlier(sql: Sql, key: IdempotencyKey, now: Micros): Promise<Acceptance | null> {
	const row = await findKey(sql, key, now);
	if (row === undefined) return null;
	if (row.fingerprint !== key.fingerprint) return { kind: 'key_conflict' };
	const answer = parseStored(row.answer) as SendResult;
	return { kind: 'replayed', answer, submission: row.submission_id, campaign: row.campaign };
}

export async function findAddedList(
	sql: Sql,
	key: IdempotencyKey,
	now: Micros,
): Promise<{ kind: 'added'; id: number } | { kind: 'key_conflict' } | null> {
	const row = await findKey(sql, key, now);
	if (row === undefined) return null;
	if (row.fingerprint !== key.fingerprint) return { kind: 'key_conflict' };
	const { list } = parseStored(row.answer) as { list: number };
	return { kind: 'added', id: list };
}

export function rememberList(
	sql: Sql,
	key: IdempotencyKey,
	{ list, now }: { list: number; now: Micros },
): void {
	rememberKey(sql, key, { submission: null, campaign: null, answer: { list }, now });
}

/** A key counts by the clock: a machine that was off for a day must send again, and looks like one whose clock is ahead. */
function findKey(sql: Sql, key: IdempotencyKey, now: Micros): Promise<KeyRow | undefined> {
	return sql.get<KeyRow>(
		`SELECT fingerprint, submission_id, campaign, answer
		FROM idempotency_keys
		WHERE scope = ? AND key = ? AND created_at > ?`,
		[key.scope, key.key, now - microsPerDay],
	);
}

export function rememberKey(
	sql: Sql,
	key: IdempotencyKey,
	said: {
		submission: Uuid | null;
		campaign: Uuid | null;
		answer: SendResult | { list: number };
		now: Micros;
	},
): void {
	sql.write(
		`INSERT INTO idempotency_keys (scope, key, fingerprint, submission_id, campaign, answer, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (scope, key) DO UPDATE SET
			fingerprint = excluded.fingerprint,
			submission_id = excluded.submission_id,
			campaign = excluded.campaign,
			answer = excluded.answer,
			created_at = excluded.created_at`,
		[
			key.scope,
			key.key,
			key.fingerprint,
			said.submission ?? '',
			said.campaign,
			JSON.stringify(said.answer),
			said.now,
		],
	);
}
