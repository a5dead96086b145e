/** Whether a deployment is reached through a proxy, as the client decides it: for `doctor`, which looks at the way. */
import { isProxied, type ProxyQuestion } from '../../http/client/proxy.js';

/** `proxy` is `--proxy`; null: what the environment says. */
export function goesThroughProxy(question: ProxyQuestion): boolean {
	return isProxied(question);
}
