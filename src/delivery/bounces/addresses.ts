import { parseAddress } from '../../api/address.js';

export interface FoundAddress {
	address: string;
	start: number;
	end: number;
}

/** RFC 5321 s.4.5.3.1 allows 64 octets, but X.400 gateways write a whole name as the local part. */
const maxLocal = 128;
const maxDomain = 255;
const maxFound = 50;

/** Searching outwards from each `@` takes linear time even for hostile text. */
export function findAddresses(text: string): FoundAddress[] {
	const found: FoundAddress[] = [];
	let floor = 0;
	for (let at = text.indexOf('@'); at !== -1 && found.length < maxFound; at = text.indexOf('@', at + 1)) {
		const start = Math.max(localStart(text, at), floor);
		const end = domainEnd(text, at);
		const address = checked(text.slice(start, end), text.slice(start, at).startsWith('"'));
		if (address === null) continue;
		found.push({ address, start: start + text.slice(start, end).indexOf(address), end });
		floor = end;
	}
	return found;
}

export function addressesIn(text: string): string[] {
	const found = new Map<string, string>();
	for (const { address } of findAddresses(text)) {
		if (!found.has(address.toLowerCase())) found.set(address.toLowerCase(), address);
	}
	return [...found.values()];
}

export function addressIn(text: string): string | null {
	const angled = /<([^<>]{3,254})>/.exec(text)?.[1];
	const whole = parseAddress(angled ?? text);
	return whole?.address ?? addressesIn(text)[0] ?? null;
}

export function isSame(one: string, other: string): boolean {
	return one.toLowerCase() === other.toLowerCase();
}

const ends = new Set(' \t\r\n\f\v\u00a0\u2028\u2029\u3000<>@"\'(),;:[]');
const isAtom = (character: string | undefined) => character !== undefined && !ends.has(character);
const alphanumeric = /^[\p{L}\p{N}]$/u;
const isWord = (character: string | undefined) => character !== undefined && alphanumeric.test(character);

function localStart(text: string, at: number): number {
	const least = Math.max(0, at - maxLocal);
	if (text[at - 1] === '"') {
		for (let start = at - 2; start >= least && text[start] !== '\n'; start -= 1)
			if (text[start] === '"' && text[start - 1] !== '\\') return start;
		return at;
	}
	let start = at;
	// An apostrophe between two letters belongs to the address; a quotation mark has a letter on one side at most.
	const isWithin = (index: number) =>
		isAtom(text[index]) || (text[index] === "'" && isWord(text[index - 1]) && isWord(text[index + 1]));
	while (start > least && isWithin(start - 1)) start -= 1;
	return start;
}

function domainEnd(text: string, at: number): number {
	if (text[at + 1] === '[') {
		const close = text.slice(at, at + 48).indexOf(']');
		return close === -1 ? at : at + close + 1;
	}
	let end = at + 1;
	// A slash ends the domain, because X.400 gateways append the rest of a name after a slash.
	while (end - at <= maxDomain && isAtom(text[end]) && text[end] !== '/') end += 1;
	return end;
}

// Matches addresses that people use although RFC 5321 forbids them: dots in a row, a host without a dot, UTF-8.
const inUse = /^[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_`{|}~-]+@[\p{L}\p{M}\p{N}.-]+$/u;
/** Matches addresses that archives of mailing lists have shortened: `ann...@example.org`. */
const shortened = /[^.]\.{3,}@/;
const typed = /^\/?(?:dda?[.:])?(?:smtp|rfc-?822|orcpt)=/i;

function checked(text: string, isQuoted: boolean): string | null {
	const address = isQuoted ? text : text.replace(typed, '').replace(/^[.…*>]{1,50}/, '');
	const trimmed = withoutStops(address);
	const isCut =
		shortened.test(trimmed) ||
		(text.endsWith('...') && !trimmed.slice(trimmed.lastIndexOf('@')).includes('.'));
	if (isCut) return null;
	return parseAddress(trimmed) !== null || inUse.test(trimmed) ? trimmed : null;
}

function withoutStops(text: string): string {
	let end = text.length;
	while (end > 0 && '.…!?'.includes(text[end - 1] ?? '')) end -= 1;
	return text.slice(0, end);
}
