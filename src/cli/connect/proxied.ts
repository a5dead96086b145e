/** Whether a deployment is reached through a proxy, by the client's own rule: for `doctor`. */
import { isProxied, type ProxyQuestion } from '../../http/client/proxy.js';

/** `proxy` is `--proxy`; null: the environment decides. */
export function goesThroughProxy(question: ProxyQuestion): boolean {
	return isProxied(question);
}
