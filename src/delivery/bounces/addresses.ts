/** Addresses in the text of strangers. */
import { parseAddress } from '../../api/address.js';

/** One address as regular expression source; bounded, so that a line of any kind is read in linear time. */
export const addressSource = String.raw`[^\s<>@"'(),;:\[\]]{1,64}@(?:[^\s<>@"'(),;:\[\]]{1,255}|\[[0-9a-f.:]{3,45}\])`;

const anyAddress = new RegExp(addressSource, 'gi');

/** Every address in a text, at most 50, each once (without regard to case), as written. */
export function addressesIn(text: string): string[] {
	const found = new Map<string, string>();
	for (const [match] of text.matchAll(anyAddress)) {
		const address = checked(match);
		if (address !== null && !found.has(address.toLowerCase())) found.set(address.toLowerCase(), address);
		if (found.size >= 50) break;
	}
	return [...found.values()];
}

/** The one address that a text holds (`<a@b>`, `Name <a@b>`, `a@b (comment)`); null when it holds none. */
export function addressIn(text: string): string | null {
	const angled = /<([^<>]{3,254})>/.exec(text)?.[1];
	const quoted = angled === undefined ? null : parseAddress(angled);
	return quoted?.address ?? addressesIn(text)[0] ?? null;
}

/** Whether two addresses are the same without regard to case. */
export function isSame(one: string, other: string): boolean {
	return one.toLowerCase() === other.toLowerCase();
}

// Beside what is an address by the book: dots in a row, hosts without one, local parts in UTF-8 (RFC 6531).
const inUse = /^[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_`{|}~-]+@[\p{L}\p{M}\p{N}.-]+$/u;

function checked(text: string): string | null {
	const address = text.replace(/[.…!?]+$/, '').replace(/^[.…*>=]+/, '');
	return parseAddress(address) !== null || inUse.test(address) ? address : null;
}
