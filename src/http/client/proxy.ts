/** Which proxies a call may meet: `--proxy`, else the environment; loopback is never proxied. */

/** For EnvHttpProxyAgent; an empty text is none. */
export interface ProxyChoice {
	httpProxy: string;
	httpsProxy: string;
	noProxy: string;
}

/** What decides about proxies. */
export interface ProxyQuestion {
	baseUrl: URL;
	proxy: string | null;
	env: Readonly<Record<string, string | undefined>>;
}

/** Null: straight to the deployment. `--proxy` goes over NO_PROXY; lower-case names go over upper-case ones. */
export function proxyFor({ baseUrl, proxy, env }: ProxyQuestion): ProxyChoice | null {
	if (isLoopback(baseUrl.hostname)) return null;
	if (proxy !== null) return { httpProxy: withScheme(proxy), httpsProxy: withScheme(proxy), noProxy: '' };
	const read = (name: string) => env[name.toLowerCase()] ?? env[name] ?? '';
	const httpProxy = withScheme(read('HTTP_PROXY'));
	const httpsProxy = withScheme(read('HTTPS_PROXY'));
	if (httpProxy === '' && httpsProxy === '') return null;
	return { httpProxy, httpsProxy, noProxy: read('NO_PROXY') };
}

/** Whether calls to it meet one of the proxies: what NO_PROXY names goes past them, as EnvHttpProxyAgent reads it. */
export function isProxied(question: ProxyQuestion): boolean {
	const choice = proxyFor(question);
	const { baseUrl } = question;
	if (choice === null || isExempt(baseUrl, choice.noProxy)) return false;
	return choice.httpProxy !== '' || (baseUrl.protocol === 'https:' && choice.httpsProxy !== '');
}

/** By host, or host and port; a name stands for all below it, `*` alone for every one. */
function isExempt({ protocol, hostname, port }: URL, noProxy: string): boolean {
	if (noProxy === '*') return true;
	const own = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
	return noProxy.split(/[,\s]/).some((entry) => {
		const [, named = entry, at = own] = /^(.+):(\d+)$/.exec(entry) ?? [];
		const host = named.replace(/^\*?\./, '').toLowerCase();
		return host !== '' && at === own && (hostname === host || hostname.endsWith(`.${host}`));
	});
}

/** `host:port` is an http proxy, as other programs read these variables. */
function withScheme(proxy: string): string {
	return proxy === '' || proxy.includes('://') ? proxy : `http://${proxy}`;
}

/** Whether it is a URL of a kind that undici can go through. */
export function isProxyUrl(text: string): boolean {
	return URL.canParse(text) && /^(https?|socks5?):$/.test(new URL(text).protocol);
}

/** For messages, without the proxy's password; it does not say which of two proxies, or that NO_PROXY was obeyed. */
export function throughText({ httpProxy, httpsProxy, noProxy }: ProxyChoice): string {
	const url = httpsProxy === '' ? httpProxy : httpsProxy;
	const isOne = noProxy === '' && (httpProxy === '' || httpsProxy === '' || httpProxy === httpsProxy);
	return isOne && URL.canParse(url)
		? ` through the proxy ${new URL(url).host}`
		: ', which may go through a proxy';
}

/** As a URL writes hosts: lower case, IPv4 in four numbers, IPv6 in brackets. */
export function isLoopback(hostname: string): boolean {
	if (hostname === 'localhost' || hostname.endsWith('.localhost')) return true;
	return /^127(\.\d+){3}$/.test(hostname) || /^\[::(1|ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4})\]$/.test(hostname);
}
