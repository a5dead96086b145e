/** A deployment behind a base URL: the remote client with what the command line settled. */
import { createClient } from '../http/client/client.js';
import type { ConnectDependencies, Connection, Target } from './connection.js';

export function connectRemote(
	target: Extract<Target, { kind: 'remote' }>,
	{ remote, env, trace, warn }: ConnectDependencies,
): Connection {
	const { baseUrl, token } = target;
	const client = createClient({ baseUrl, token, remote, env, trace, warn });
	return { api: client.api, target, exchange: client.exchange, local: null, close: client.close };
}
