import { canParseUrl, isLoopback } from '../../api/schema/url.js';

export interface ProxyChoice {
	httpProxy: string;
	httpsProxy: string;
	noProxy: string;
}

export interface ProxyQuestion {
	baseUrl: URL;
	proxy: string | null;
	env: Readonly<Record<string, string | undefined>>;
}

/** Null: directly. `--proxy` overrides NO_PROXY; lower-case names override upper-case ones. */
export function proxyFor({ baseUrl, proxy, env }: ProxyQuestion): ProxyChoice | null {
	if (isLoopback(baseUrl.hostname)) return null;
	if (proxy !== null) return { httpProxy: withScheme(proxy), httpsProxy: withScheme(proxy), noProxy: '' };
	const read = (name: string) => env[name.toLowerCase()] ?? env[name] ?? '';
	const httpProxy = withScheme(read('HTTP_PROXY'));
	const httpsProxy = withScheme(read('HTTPS_PROXY'));
	if (httpProxy === '' && httpsProxy === '') return null;
	return { httpProxy, httpsProxy, noProxy: read('NO_PROXY') };
}

/** Reads NO_PROXY as EnvHttpProxyAgent does. */
export function isProxied(question: ProxyQuestion): boolean {
	const choice = proxyFor(question);
	const { baseUrl } = question;
	if (choice === null || isExempt(baseUrl, choice.noProxy)) return false;
	return choice.httpProxy !== '' || (baseUrl.protocol === 'https:' && choice.httpsProxy !== '');
}

function isExempt({ protocol, hostname, port }: URL, noProxy: string): boolean {
	if (noProxy === '*') return true;
	const own = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
	return noProxy.split(/[,\s]/).some((entry) => {
		const [, named = entry, at = own] = /^(.+):(\d+)$/.exec(entry) ?? [];
		const host = named.replace(/^\*?\./, '').toLowerCase();
		return host !== '' && at === own && (hostname === host || hostname.endsWith(`.${host}`));
	});
}

function withScheme(proxy: string): string {
	return proxy === '' || proxy.includes('://') ? proxy : `http://${proxy}`;
}

export function isProxyUrl(text: string): boolean {
	return canParseUrl(text) && /^(https?|socks5?):$/.test(new URL(text).protocol);
}

export function throughText({ httpProxy, httpsProxy, noProxy }: ProxyChoice): string {
	const url = httpsProxy === '' ? httpProxy : httpsProxy;
	const isOne = noProxy === '' && (httpProxy === '' || httpsProxy === '' || httpProxy === httpsProxy);
	return isOne && canParseUrl(url)
		? ` through the proxy ${new URL(url).host}`
		: ', which may go through a proxy';
}
