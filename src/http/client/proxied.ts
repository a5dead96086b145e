/** Import this module only for a proxy, because `ProxyAgent` loads all of undici. */
import { type Dispatcher, ProxyAgent } from 'undici';

export function openProxyAgent(options: ProxyAgent.Options): Dispatcher {
	// Send http requests in absolute form (RFC 9112 s.3.2.2), because many proxies allow CONNECT to TLS ports only.
	return new ProxyAgent({ ...options, proxyTunnel: false });
}
