/** The way through a proxy: only loaded where there is one, for its agent needs all of undici. */
import { type Dispatcher, EnvHttpProxyAgent } from 'undici';

/** All three of `httpProxy`, `httpsProxy`, `noProxy` are given: the environment of the process is ignored. */
export function openProxyAgent(
	options: EnvHttpProxyAgent.Options & { httpProxy: string; httpsProxy: string; noProxy: string },
): Dispatcher {
	// A plain http request goes to the proxy in absolute form (RFC 9112 s.3.2.2): many allow CONNECT to TLS ports only.
	return new EnvHttpProxyAgent({ ...options, proxyTunnel: false });
}
