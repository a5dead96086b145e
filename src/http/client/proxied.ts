/** Loaded only with a proxy: its agent needs all of undici. */
import { type Dispatcher, EnvHttpProxyAgent } from 'undici';

/** Three given values make the agent ignore the environment of the process. */
export function openProxyAgent(
	options: EnvHttpProxyAgent.Options & { httpProxy: string; httpsProxy: string; noProxy: string },
): Dispatcher {
	// Plain http goes to the proxy in absolute form (RFC 9112 s.3.2.2): many allow CONNECT to TLS ports only.
	return new EnvHttpProxyAgent({ ...options, proxyTunnel: false });
}
