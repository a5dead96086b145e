/** The refusal of a change that no other process may live through. */
import type { OtherProcess } from '../../frame/connection.js';
import { UsageError } from '../../frame/errors.js';

/** Names the processes that have the database open. */
export function inUse(by: readonly OtherProcess[], hint: string): UsageError {
	const names = by.map(({ role, host, pid }) => `${role} (pid ${pid} on ${host})`);
	return new UsageError(`the database is in use, and nothing was changed: ${names.join(', ')}`, { hint });
}
