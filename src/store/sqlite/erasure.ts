/** Erasing a person: all rows of an address in one operation, and the keyed hash that stays. */
import type { EmailKey } from '../../api/address.js';
import { erasedHash } from '../../engine/rules/erasure.js';
import { eraseMessages } from './erase-messages.js';
import { eraseTraces } from './erase-traces.js';
import { erasureKeys } from './erased.js';
import { counterMove, moveCounters } from './lists.js';
import { overwritingDeleted } from './overwriting.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

type EraseCommand = Parameters<Operations['erasePerson']>[0];

/** Each in one transaction of the caller. What an erasure deletes is overwritten with zeros. */
export function createErasures(sql: Sql): Pick<Operations, 'erasePerson' | 'liftErasure'> {
	return {
		erasePerson: (command) => overwritingDeleted(sql, () => erase(sql, command)),
		liftErasure: ({ email_key }) => {
			const lifted = erasureKeys(sql).map(
				({ secret }) =>
					sql.run('DELETE FROM erased WHERE email_hash = ?', erasedHash(secret, email_key)).changes,
			);
			return lifted.some((changes) => changes > 0);
		},
	};
}

function erase(sql: Sql, { email_key, fresh, now }: EraseCommand): ReturnType<Operations['erasePerson']> {
	const addresses = writtenForms(sql, email_key);
	const { messages, canceled } = eraseMessages(sql, email_key);
	eraseTraces(sql, email_key, addresses);
	const subscribers = deleteSubscribers(sql, email_key);
	const suppressions = sql.run('DELETE FROM suppressions WHERE email_key = ?', email_key).changes;
	remember(sql, { email_key, fresh, now });
	return { subscribers, messages, canceled, suppressions };
}

/** The address as it is compared, and as it was typed: texts of answers and replies quote the one or the other. */
function writtenForms(sql: Sql, email_key: EmailKey): string[] {
	const typed = sql.all<{ email: string }>(
		`SELECT email FROM subscribers WHERE email_key = ?
		UNION
		SELECT to_email FROM messages WHERE to_key = ?`,
		email_key,
		email_key,
	);
	return [...new Set([email_key, ...typed.map(({ email }) => email)])];
}

function deleteSubscribers(sql: Sql, email_key: EmailKey): number {
	const rows = sql.all<{ list_id: number; is_active: number }>(
		// subscribers_by_key (email_key, list_id)
		'DELETE FROM subscribers WHERE email_key = ? RETURNING list_id, is_active',
		email_key,
	);
	for (const { list_id, is_active } of rows) {
		moveCounters(sql, list_id, counterMove(is_active === 1, null));
	}
	return rows.length;
}

function remember(sql: Sql, { email_key, fresh, now }: EraseCommand): void {
	if (erasureKeys(sql).length === 0) {
		sql.run(
			"INSERT INTO keyring (purpose, id, secret, created_at) VALUES ('erasure', ?, ?, ?)",
			fresh.id,
			fresh.secret,
			now,
		);
	}
	const [key] = erasureKeys(sql);
	if (key === undefined) throw new Error('the key of erasures is missing');
	sql.run(
		'INSERT INTO erased (email_hash, key_id, erased_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
		erasedHash(key.secret, email_key),
		key.id,
		now,
	);
}
