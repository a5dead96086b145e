/** Through a proxy: only loaded where there is one. */
import type { Dispatcher, EnvHttpProxyAgent as EnvHttpProxyAgentType } from 'undici';
import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js';

/** All three of `httpProxy`, `httpsProxy`, `noProxy` are given: the process's own environment is not looked at. */
export function openProxyAgent(
	options: EnvHttpProxyAgentType.Options & { httpProxy: string; httpsProxy: string; noProxy: string },
): Dispatcher {
	return new EnvHttpProxyAgent(options);
}
