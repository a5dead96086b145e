/** Through a proxy: only loaded where there is one, for its agent needs all of undici. */
import { type Dispatcher, EnvHttpProxyAgent } from 'undici';

/** All three of `httpProxy`, `httpsProxy`, `noProxy` are given: the process's own environment is not looked at. */
export function openProxyAgent(
	options: EnvHttpProxyAgent.Options & { httpProxy: string; httpsProxy: string; noProxy: string },
): Dispatcher {
	return new EnvHttpProxyAgent(options);
}
