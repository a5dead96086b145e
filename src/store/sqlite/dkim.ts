/** Keys that sign what leaves. What they are called is in a table of theirs, their secrets are in the keyring. */
import type { StoredDkimKey } from '../keys.js';
import { overwritingDeleted } from './overwriting.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

type DkimOperations = Pick<Operations, 'listDkimKeys' | 'addDkimKey' | 'removeDkimKey'>;

/** A row and its secret come and go in one transaction of the caller; a secret that goes is overwritten with zeros. */
export function createDkimKeys(sql: Sql): DkimOperations {
	return {
		listDkimKeys: () =>
			sql.all<StoredDkimKey>(
				`SELECT d.domain, d.selector, d.type, k.secret, d.created_at
				FROM dkim_keys d
				JOIN keyring k ON k.purpose = 'dkim' AND k.id = d.id
				ORDER BY d.domain, d.id`,
			),
		addDkimKey: ({ domain, selector, type, secret, now }) => {
			const [added] = sql.tuples<[id: number]>(
				`INSERT INTO dkim_keys (domain, selector, type, created_at)
				VALUES (?, ?, ?, ?)
				ON CONFLICT (domain, selector) DO NOTHING
				RETURNING id`,
				domain,
				selector,
				type,
				now,
			);
			if (added === undefined) return false;
			sql.run(
				"INSERT INTO keyring (purpose, id, secret, created_at) VALUES ('dkim', ?, ?, ?)",
				added[0],
				secret,
				now,
			);
			return true;
		},
		removeDkimKey: ({ domain, selector }) => {
			const [removed] = sql.tuples<[id: number]>(
				'DELETE FROM dkim_keys WHERE domain = ? AND selector = ? RETURNING id',
				domain,
				selector,
			);
			if (removed === undefined) return false;
			overwritingDeleted(sql, () =>
				sql.run("DELETE FROM keyring WHERE purpose = 'dkim' AND id = ?", removed[0]),
			);
			return true;
		},
	};
}
