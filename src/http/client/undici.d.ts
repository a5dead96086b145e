/** The two files of undici that are loaded by themselves: its index brings fetch, WebSocket, caches and mocks along. */
declare module 'undici/lib/dispatcher/pool.js' {
	import { Pool } from 'undici';

	export = Pool;
}

declare module 'undici/lib/dispatcher/env-http-proxy-agent.js' {
	import { EnvHttpProxyAgent } from 'undici';

	export = EnvHttpProxyAgent;
}
