/** Deleting for good. */
import type { Sql } from './sql.js';

/**
 * What SQLite deletes stays readable in the file until its page is used again, unless it is told to write zeros: what
 * `operate` deletes is overwritten. Within a transaction of the caller.
 */
export function overwritingDeleted<T>(sql: Sql, operate: () => T): T {
	sql.db.pragma('secure_delete = ON');
	try {
		return operate();
	} finally {
		sql.db.pragma('secure_delete = OFF');
	}
}
