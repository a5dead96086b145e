/** Blocks webhook calls to private networks, because clients of the API choose the URLs (SSRF). */

import { lookup as systemLookup } from 'node:dns/promises';
import ipaddr from 'ipaddr.js';
import type { RefusalCode } from '../../api/refusals.js';

export type Resolve = (hostname: string) => Promise<readonly string[]>;

const systemResolve: Resolve = async (hostname) =>
	(await systemLookup(hostname, { all: true, verbatim: true })).map(({ address }) => address);

/** Accepts a name that does not resolve, because each call checks it again. `URL` turns `0x7f.1` into 127.0.0.1. */
export async function refuseTarget(
	url: string,
	resolve: Resolve = systemResolve,
): Promise<RefusalCode | null> {
	const literal = refuseLiteral(url);
	if (literal !== null) return literal;
	const addresses = await resolve(hostOf(url)).catch(() => []);
	return addresses.some((address) => !isPublicAddress(address)) ? 'private_target' : null;
}

/** Checks a URL without a look-up: a literal address, or a name that always means this machine (RFC 6761 s.6.3). */
export function refuseLiteral(url: string): RefusalCode | null {
	const host = hostOf(url).replace(/\.$/, '');
	if (ipaddr.isValid(host)) return isPublicAddress(host) ? null : 'private_target';
	return /(^|\.)localhost$/.test(host) ? 'private_target' : null;
}

function hostOf(url: string): string {
	return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

/** Azure's internal services use this address, which looks public. */
const wireServer = '168.63.129.16';

/** Only 2000::/3 of IPv6 is assigned for public use. An IPv4 address inside an IPv6 address is checked as IPv4. */
export function isPublicAddress(address: string): boolean {
	if (!ipaddr.isValid(address)) return false;
	const parsed = ipaddr.parse(address);
	if (parsed.kind() === 'ipv4') return parsed.range() === 'unicast' && parsed.toString() !== wireServer;
	const bytes = parsed.toByteArray();
	const inner = embeddedIPv4(bytes);
	if (inner !== null) return isPublicAddress(inner);
	return parsed.range() === 'unicast' && (bytes[0] ?? 0) >> 5 === 1;
}

/** IPv4 inside IPv6: mapped and compatible (RFC 4291 s.2.5.5), NAT64 (RFC 6052), 6to4 (RFC 3056), ISATAP (RFC 5214). */
function embeddedIPv4(bytes: readonly number[]): string | null {
	const prefix = Buffer.from(bytes.slice(0, 12)).toString('hex');
	const last = bytes.slice(12).join('.');
	if (prefix === '00000000000000000000ffff') return last;
	if (prefix === '000000000000000000000000') return last;
	if (prefix === '0064ff9b0000000000000000') return last;
	if (prefix.startsWith('2002')) return bytes.slice(2, 6).join('.');
	if (/0[02]005efe$/.test(prefix)) return last;
	return null;
}
