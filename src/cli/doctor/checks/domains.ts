/** Domains of addresses, as DNS has them. */
import { domainOf } from '../../../api/address.js';

export function domainsOf(addresses: readonly string[], more: readonly string[] = []): string[] {
	return [...new Set([...addresses.map(domainOf), ...more])].filter((domain) => domain !== '');
}

/** Those above it, the nearest first; never a top-level domain. */
export function parentsOf(domain: string): string[] {
	const labels = domain.split('.');
	return labels.slice(1, -1).map((_, at) => labels.slice(at + 1).join('.'));
}
