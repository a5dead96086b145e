/** A restored copy of a database. Its original may have sent what waits in the copy, and erased persons who are in it. */
import type { EmailKey } from '../../api/address.js';
import { restoredReason } from '../../api/pauses.js';
import { erasedHash } from '../../engine/rules/subscription.js';
import type { StoredErasures } from '../maintenance.js';
import type { Command, Operations } from '../operations.js';
import { countStates, waitingLanes } from './campaign-windows.js';
import { erase, erasureKeys } from './erasures.js';
import { insertKey } from './keys.js';
import { createQueueState } from './queue-state.js';
import { settle } from './settle.js';
import { column, insertInto, type Sql } from './sql.js';

export async function settleRestored(
	sql: Sql,
	{ backup, erasures, now }: Command<'settleRestored'>,
): ReturnType<Operations['settleRestored']> {
	const erased = erasures === null ? 0 : await sql.overwriting(() => eraseAgain(sql, erasures, now));
	const leased = await sql.all<{ message: string; fence: number }>(
		"SELECT uuid AS message, fence FROM messages WHERE wake_at IS NOT NULL AND state = 'leased' ORDER BY id",
	);
	const text = 'the database was restored from a backup of the moment when this was being sent';
	const reply = { phase: 'answer', code: null, enhanced: null, text } as const;
	const settlements = leased.map((row) => ({
		...row,
		at: now,
		outcome: { kind: 'uncertain', reply } as const,
	}));
	await settle(sql, settlements);
	// Their worker is one of the original: a delivery that is repeated has the same webhook-id.
	sql.write(
		`UPDATE webhook_deliveries SET due_at = ${sql.dialect.least}(due_at, ?) WHERE due_at IS NOT NULL AND state = ?`,
		[now, 'sending'],
	);
	const states = countStates(await waitingLanes(sql, null));
	const waiting = (states.get('queued') ?? 0) + (states.get('deferred') ?? 0);
	const reason = restoredReason(backup, waiting);
	await createQueueState(sql).pause({ kind: 'manual', reason, retry_at: null, now });
	return { uncertain: leased.length, waiting, erased };
}

export async function storedErasures(sql: Sql): Promise<StoredErasures> {
	const [keys, hashes] = await sql.together([
		() => erasureKeys(sql),
		() => sql.all<StoredErasures['hashes'][number]>('SELECT email_hash, key_id, erased_at FROM erased'),
	]);
	return { keys, hashes };
}

/** Erases who was erased in the original since. Erasures under another key are those of another database. */
async function eraseAgain(sql: Sql, { keys, hashes }: StoredErasures, now: number): Promise<number> {
	const own = new Map((await erasureKeys(sql)).map(({ id, secret }) => [id, secret]));
	const known = keys.filter(({ id, secret }) => (own.get(id) ?? secret) === secret);
	const ids = new Set(known.map(({ id }) => id));
	const there = new Set(await column<string>(sql, 'SELECT email_hash FROM erased'));
	const missing = hashes.filter(({ email_hash, key_id }) => ids.has(key_id) && !there.has(email_hash));
	const [fresh] = known;
	if (missing.length === 0 || fresh === undefined) return 0;
	for (const { id, secret, created_at } of known)
		if (!own.has(id)) insertKey(sql, { purpose: 'erasure', id, secret, now: created_at });
	const wanted = new Set(missing.map(({ email_hash }) => email_hash));
	const found = await addressesWith(sql, (address) =>
		known.some(({ secret }) => wanted.has(erasedHash(secret, address))),
	);
	for (const email_key of found) await erase(sql, { email_key, fresh, now });
	for (const { email_hash, key_id, erased_at } of missing)
		insertInto(sql, 'erased', { email_hash, key_id, erased_at }, 'ON CONFLICT DO NOTHING');
	return found.size;
}

const addressColumns = [
	{ table: 'subscribers', name: 'email_key' },
	{ table: 'messages', name: 'to_key' },
	{ table: 'old_messages', name: 'to_key' },
	{ table: 'suppressions', name: 'email_key' },
	{ table: 'campaign_left_out', name: 'to_key' },
];

async function addressesWith(
	sql: Sql,
	isWanted: (address: EmailKey) => boolean,
): Promise<ReadonlySet<EmailKey>> {
	const found = new Set<EmailKey>();
	for (const { table, name } of addressColumns) {
		const next = `SELECT DISTINCT ${name} FROM ${table} WHERE ${name} > ? ORDER BY ${name} LIMIT 10000`;
		for (let after: string | undefined = ''; after !== undefined; ) {
			const addresses: string[] = await column<string>(sql, next, [after]);
			for (const address of addresses) if (isWanted(address)) found.add(address);
			after = addresses.at(-1);
		}
	}
	return found;
}
