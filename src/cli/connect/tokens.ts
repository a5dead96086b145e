/** API tokens of the embedded engine: made here, kept as hashes. */
import { createHash, randomBytes } from 'node:crypto';
import { type Clock, formatDateTime } from '../../api/datetime.js';
import type { Scope } from '../../api/operations.js';
import type { StoredToken } from '../../store/keys.js';
import type { Store } from '../../store/store.js';
import type { ApiToken, LocalEngine } from '../frame/connection.js';

/** 256 bits behind a prefix that identifies a token to people and to scanners of repositories. */
export function newToken(): { secret: string; sha256: string } {
	const secret = `mctl_${randomBytes(32).toString('base64url')}`;
	return { secret, sha256: createHash('sha256').update(secret).digest('hex') };
}

/** A secret is in the answer of `create` and nowhere else: the store is given its SHA-256. */
export function localTokens({ store, clock }: { store: Store; clock: Clock }): LocalEngine['tokens'] {
	return {
		list: async () => (await store.reads.listTokens()).map(toApiToken),
		create: async ({ name, scopes }) => {
			const granted: readonly Scope[] = scopes;
			const { secret, sha256 } = newToken();
			const now = clock.now();
			if (!(await store.writes.createToken({ sha256, name, scopes: granted, now }))) return null;
			return { name, scopes: [...granted], date_created: formatDateTime(now), token: secret };
		},
		revoke: (name) => store.writes.revokeToken({ name, now: clock.now() }),
	};
}

function toApiToken({ name, scopes, created_at, revoked_at }: StoredToken): ApiToken {
	const date_revoked = revoked_at === null ? null : formatDateTime(revoked_at);
	return { name, scopes, date_created: formatDateTime(created_at), date_revoked };
}
