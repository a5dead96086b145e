import { createClient } from '../../http/client/client.js';
import { type ProxyQuestion, proxyFor } from '../../http/client/transport.js';
import type { ConnectDependencies, Connection, Target } from '../frame/connection.js';

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
	const composer = lazyComposer();
	return {
		api: client.api,
		target,
		exchange: client.exchange,
		compose: async (request) => (await composer.load()).compose(request, clock),
		render: async (content, variables) => (await composer.load()).render(content, variables),
		local: null,
		close: async () => {
			await composer.close();
			await client.close();
		},
	};
}

/** Loads the composer on demand, because most commands do not compose mail. */
function lazyComposer() {
	let loading: Promise<import('./compose.js').RemoteComposer> | null = null;
	return {
		load: () => {
			loading ??= import('./compose.js').then(({ createRemoteComposer }) => createRemoteComposer());
			return loading;
		},
		close: async () => (await loading)?.close(),
	};
}

export function goesThroughProxy(question: ProxyQuestion): boolean {
	return proxyFor(question) !== null;
}
