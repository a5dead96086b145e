/** The secrets that sign notifications, in the keyring: one signs, and beside it, for a time, the one before. */
import type { Micros } from '../../api/datetime.js';
import type { StoredSecret } from '../notifications.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

/** Both answer with what is to sign at `now`: the current one, then the one before while it lasts. */
export function createWebhookSecrets(
	sql: Sql,
): Pick<Operations, 'ensureWebhookSecret' | 'rotateWebhookSecret'> {
	return {
		ensureWebhookSecret: ({ fresh, now }) => {
			const known = living(sql, now);
			if (known.length > 0) return known;
			insert(sql, fresh, now);
			return living(sql, now);
		},
		rotateWebhookSecret: ({ fresh, now, retire_at }) => {
			// Two at most: receivers are given one at a time.
			sql.run("UPDATE keyring SET retired_at = ? WHERE purpose = 'webhooks' AND retired_at > ?", now, now);
			sql.run(
				"UPDATE keyring SET retired_at = ? WHERE purpose = 'webhooks' AND retired_at IS NULL",
				retire_at,
			);
			insert(sql, fresh, now);
			return living(sql, now);
		},
	};
}

/** base64url, newest first. */
export function signingSecrets(sql: Sql, now: Micros): string[] {
	return living(sql, now).map(({ secret }) => secret);
}

function living(sql: Sql, now: Micros): StoredSecret[] {
	return sql.all<StoredSecret>(
		`SELECT id, secret, created_at, retired_at AS retires_at
		FROM keyring
		WHERE purpose = 'webhooks' AND (retired_at IS NULL OR retired_at > ?)
		ORDER BY retired_at IS NOT NULL, created_at DESC, id DESC`,
		now,
	);
}

function insert(sql: Sql, { id, secret }: Pick<StoredSecret, 'id' | 'secret'>, now: Micros): void {
	sql.run(
		"INSERT INTO keyring (purpose, id, secret, created_at) VALUES ('webhooks', ?, ?, ?)",
		id,
		secret,
		now,
	);
}
