/** Parses one address. Rejects commas, groups and comments, in which other programs may read more recipients. */
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { hasLoneSurrogate, trimWhitespace } from './schema/python.js';

/** RFC 5321 s.4.5.3.1.3: a path has at most 256 octets, including its two angle brackets. */
export const maxAddressLength = 254;

export type EmailKey = string;

export interface Address {
	address: string;
	key: EmailKey;
}

export interface Mailbox extends Address {
	name: string;
}

const maxDjangoLength = 320;
const maxNameLength = 255;

const dotAtom = /^[-!#$%&'*+/=?^_`{}|~0-9A-Z]+(?:\.[-!#$%&'*+/=?^_`{}|~0-9A-Z]+)*$/i;
// Unlike Django, rejects controls and angle brackets, because they would break an SMTP command.
const quotedLocal = /^"(?:[!#-;=?-[\]-~]|\\[ -;=?-~])*"$/;
const domainName = /^(?:[A-Z0-9](?:[A-Z0-9-]{0,61}[A-Z0-9])?\.)+[A-Z0-9-]{2,63}(?<!-)$/i;
const addressLiteral = /^\[([A-F0-9:.]+)\]$/i;
const notAscii = /[^\0-\x7f]/;
const control = /[\0-\x1f\x7f-\x9f\u2028\u2029]/;
const quotedPhrase = /^"((?:[^"\\]|\\.)*)"$/;
const barePhrase = /^[^()<>[\]:;@\\,"]*$/;

/** Like Django's EmailValidator, but also rejects controls, angle brackets and lookalikes of ASCII (U+017F). */
export function isEmailAddress(text: string): boolean {
	const at = text.lastIndexOf('@');
	if (at < 1 || text.length > maxDjangoLength) return false;
	const local = text.slice(0, at);
	return (dotAtom.test(local) || quotedLocal.test(local)) && isDomain(text.slice(at + 1));
}

export function parseAddress(text: string): Address | null {
	const address = trimWhitespace(text);
	if (address.length > maxAddressLength || !isEmailAddress(address)) return null;
	return { address, key: emailKey(address) };
}

export function parseMailbox(text: string): Mailbox | null {
	const trimmed = trimWhitespace(text);
	if (control.test(trimmed) || hasLoneSurrogate(trimmed)) return null;
	if (!trimmed.endsWith('>')) return mailbox('', trimmed);
	const open = trimmed.lastIndexOf('<');
	if (open === -1) return null;
	const name = phraseName(trimWhitespace(trimmed.slice(0, open)));
	if (name === null || name.length > maxNameLength) return null;
	return mailbox(name, trimmed.slice(open + 1, -1));
}

export function formatMailbox({ name, address }: Pick<Mailbox, 'name' | 'address'>): string {
	if (name === '') return address;
	const isPlain = barePhrase.test(name) && !name.includes('.') && trimWhitespace(name) === name;
	const phrase = isPlain ? name : `"${name.replace(/["\\]/g, '\\$&')}"`;
	return `${phrase} <${address}>`;
}

/** Gives all spellings of an address one key (RFC 5321 s.4.1.2). Also accepts invalid addresses, as in filters. */
export function emailKey(address: string): EmailKey {
	const at = address.lastIndexOf('@');
	if (at === -1) return address.toLowerCase();
	const domain = address.slice(at + 1);
	const local = address.slice(0, at).toLowerCase();
	return `${unquoted(local)}@${asciiDomain(domain) ?? domain.toLowerCase()}`;
}

function unquoted(local: string): string {
	if (!quotedLocal.test(local)) return local;
	const content = local.slice(1, -1).replace(/\\(.)/g, '$1');
	return dotAtom.test(content) ? content : `"${content.replace(/["\\]/g, '\\$&')}"`;
}

function mailbox(name: string, text: string): Mailbox | null {
	// Reject white space inside the brackets, because other programs do not trim it.
	if (text !== trimWhitespace(text)) return null;
	const address = parseAddress(text);
	return address && { name, ...address };
}

function phraseName(phrase: string): string | null {
	const quoted = quotedPhrase.exec(phrase)?.[1];
	if (quoted !== undefined) return quoted.replace(/\\(.)/gu, '$1');
	return barePhrase.test(phrase) ? phrase : null;
}

function isDomain(domain: string): boolean {
	if (domain === 'localhost' || domainName.test(domain)) return true;
	const literal = addressLiteral.exec(domain)?.[1];
	if (literal !== undefined) return isIP(literal) !== 0;
	const ascii = notAscii.test(domain) ? asciiDomain(domain) : null;
	return ascii !== null && domainName.test(ascii);
}

// `domainToASCII` rewrites ASCII names that look like a number (0x7f.1), so use it only for international names.
function asciiDomain(domain: string): string | null {
	if (!notAscii.test(domain)) return domain.toLowerCase();
	const international = /^[A-Z0-9.\-\p{L}\p{M}\p{N}\u3002\uff0e\uff61]+$/iu;
	if (domain.length > maxDjangoLength || !international.test(domain)) return null;
	return domainToASCII(domain) || null;
}

/** `domainToASCII` does not change these names and takes 3 µs, so skip it. */
const plainName = /^[a-z0-9.-]+\.[a-z]+$/;

export function domainOf(address: string): string {
	const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
	return plainName.test(domain) ? domain : domainToASCII(domain) || domain;
}
