/** The composition root. Dynamic imports load only the parts that the target needs. */
import type { ConnectDependencies, Connection, Target } from './frame/connection.js';

export async function connect(target: Target, dependencies: ConnectDependencies): Promise<Connection> {
	if (target.kind === 'remote') {
		const { connectRemote } = await import('./connect/remote.js');
		return connectRemote(target, dependencies);
	}
	const { connectLocal } = await import('./connect/local.js');
	return connectLocal(target, dependencies);
}
