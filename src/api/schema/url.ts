import { isIPv6 } from 'node:net';

export const maxUrlLength = 2048;

const maxHostLength = 253;

const ipv4 = String.raw`(?:0|25[0-5]|2[0-4]\d|1\d?\d?|[1-9]\d?)(?:\.(?:0|25[0-5]|2[0-4]\d|1\d?\d?|[1-9]\d?)){3}`;
const ipv6 = String.raw`\[[0-9a-f:.]+\]`;
const letter = String.raw`a-z\u00a1-\uffff`;
const label = `[${letter}0-9](?:[${letter}0-9-]{0,61}[${letter}0-9])?`;
const topLevel = String.raw`\.(?!-)(?:[${letter}-]{2,63}|xn--[a-z0-9]{1,59})(?<!-)\.?`;
const name = String.raw`${label}(?:\.(?!-)[${letter}0-9-]{1,63}(?<!-))*${topLevel}`;
const webUrl = String.raw`^https?://(?:[^\s:@/]+(?::[^\s:@/]*)?@)?(${ipv4}|${ipv6}|${name}|localhost)(?::\d{2,5})?(?:[/?#]\S*)?$`;

// Compiled at first use, because compiling takes 2 ms: `letter` has 65,000 characters, each in upper and lower case.
let webUrlPattern: RegExp | null = null;

// Many clients read a backslash as a slash, so they would disagree about the host of `http://a\@b/`.
const ambiguous = /[\x01-\x1f\x7f-\x9f\\]/;

export function isWebUrl(text: string): boolean {
	if (text.length > maxUrlLength || ambiguous.test(text)) return false;
	webUrlPattern ??= new RegExp(webUrl, 'i');
	const host = webUrlPattern.exec(text)?.[1];
	if (host === undefined || host.length > maxHostLength) return false;
	if (host.startsWith('[') && !isIPv6(host.slice(1, -1))) return false;
	return canParseUrl(text);
}

const beyondAscii = /[^\x00-\x7f]/;

/** In Node 20, `URL.canParse` rejects `https://bücher.example/` once V8 has optimized the call. */
export function canParseUrl(text: string, base?: string): boolean {
	if (!beyondAscii.test(text) && !beyondAscii.test(base ?? ''))
		return base === undefined ? URL.canParse(text) : URL.canParse(text, base);
	try {
		new URL(text, base);
		return true;
	} catch {
		return false;
	}
}

export function isLoopbackUrl(url: string | null): boolean {
	return url !== null && canParseUrl(url) && isLoopback(new URL(url).hostname.toLowerCase());
}

/** RFC 6761 s.6.3. Expects the hostname of a URL, in lower case. */
export function isLoopback(hostname: string): boolean {
	if (hostname === 'localhost' || hostname.endsWith('.localhost')) return true;
	return (
		/^127(\.\d{1,3}){3}$/.test(hostname) || /^\[?::(1|ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4})\]?$/.test(hostname)
	);
}
