/** Loaded only for a proxy, because its agent loads all of undici. */
import { type Dispatcher, EnvHttpProxyAgent } from 'undici';

/** With all three values, the agent ignores the environment variables. */
export function openProxyAgent(
	options: EnvHttpProxyAgent.Options & { httpProxy: string; httpsProxy: string; noProxy: string },
): Dispatcher {
	// Send http requests in absolute form (RFC 9112 s.3.2.2), because many proxies allow CONNECT to TLS ports only.
	return new EnvHttpProxyAgent({ ...options, proxyTunnel: false });
}
