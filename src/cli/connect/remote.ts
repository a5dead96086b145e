import { createClient } from '../../http/client/client.js';
import { type ProxyQuestion, proxyFor } from '../../http/client/transport.js';
import type { ConnectDependencies, Connection, Target } from '../frame/connection.js';
import type { RemoteComposer } from './compose.js';

export function connectRemote(
	target: Extract<Target, { kind: 'remote' }>,
	{ remote, env, trace, onWait, warn, clock, signal }: ConnectDependencies,
): Connection {
	const { baseUrl, token } = target;
	const client = createClient({
		baseUrl,
		token,
		remote,
		env,
		trace,
		onWait,
		warn,
		...(signal !== undefined && { signal }),
	});
	let composer: Promise<RemoteComposer> | null = null;
	const load = () => {
		composer ??= import('./compose.js').then(({ createRemoteComposer }) => createRemoteComposer());
		return composer;
	};
	return {
		api: client.api,
		target,
		exchange: client.exchange,
		compose: async (request) => (await load()).compose(request, clock),
		render: async (content, variables) => (await load()).render(content, variables),
		local: null,
		close: async () => {
			await (await composer)?.close();
			await client.close();
		},
	};
}

export function goesThroughProxy(question: ProxyQuestion): boolean {
	return proxyFor(question) !== null;
}
