/** API tokens: their hashes, never their secrets. */
import type { StoredToken } from '../keys.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

type TokenOperations = Pick<Operations, 'listTokens' | 'findToken' | 'createToken' | 'revokeToken'>;

interface TokenRow extends Omit<StoredToken, 'scopes'> {
	/** Separated by blanks. */
	scopes: string;
}

const columns = 'name, scopes, created_at, revoked_at';

/** Names are unique among the living: a revoked token stays in the list, and its name may be given again. */
export function createTokens(sql: Sql): TokenOperations {
	return {
		listTokens: () =>
			sql.all<TokenRow>(`SELECT ${columns} FROM tokens ORDER BY created_at, sha256`).map(toToken),
		findToken: ({ sha256 }) => {
			const row = sql.get<TokenRow>(
				`SELECT ${columns} FROM tokens WHERE sha256 = ? AND revoked_at IS NULL`,
				sha256,
			);
			return row === undefined ? null : toToken(row);
		},
		createToken: ({ sha256, name, scopes, now }) => {
			const living = sql.number('SELECT count(*) FROM tokens WHERE name = ? AND revoked_at IS NULL', name);
			if (living > 0) return false;
			sql.run(
				'INSERT INTO tokens (sha256, name, scopes, created_at) VALUES (?, ?, ?, ?)',
				sha256,
				name,
				scopes.join(' '),
				now,
			);
			return true;
		},
		revokeToken: ({ name, now }) =>
			sql.run('UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL', now, name).changes >
			0,
	};
}

function toToken(row: TokenRow): StoredToken {
	return { ...row, scopes: row.scopes.split(' ') };
}
