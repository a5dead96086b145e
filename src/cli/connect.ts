/** The composition root: the one place that knows every part. Loads only what the target needs. */
import type { ConnectDependencies, Connection, Target } from './connection.js';
import { UsageError } from './errors.js';

/** Opens the target. `UsageError` for a database that must exist and does not, and for deployments. */
export async function connect(target: Target, dependencies: ConnectDependencies): Promise<Connection> {
	if (target.kind === 'remote') {
		throw new UsageError(`${target.baseUrl}: this version works on a database of its own machine only`, {
			hint: 'use --db PATH, or leave --base-url and the profile out',
		});
	}
	const { connectLocal } = await import('./connect-local.js');
	return connectLocal(target, dependencies);
}
