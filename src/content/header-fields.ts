import { domainToASCII } from 'node:url';
import { isReservedHeader, maxHeaderName } from '../api/schema/headers.js';

const softLimit = 78;
const hardLimit = 998;
/** Leaves space for the field name in a line of 998 octets (RFC 5322 s.2.1.1). */
const maxToken = 900;

export function unstructuredField(name: string, value: string): string {
	refuseBreaks(name, value);
	const trimmed = value.trim();
	// RFC 5322 s.3.2.2 forbids a folded line that contains only blanks.
	if (trimmed === '') return `${name}: \r\n`;
	const first = softLimit - name.length - 2;
	if (isWritable(trimmed)) {
		if (trimmed.length <= first) return `${name}: ${trimmed}\r\n`;
		return `${name}:${fold(foldable(` ${trimmed}`), name.length + 1)}\r\n`;
	}
	const isNarrow = first < 30;
	return `${name}:${isNarrow ? '\r\n ' : ' '}${encodeWords(trimmed, isNarrow ? softLimit : first)}\r\n`;
}

/** Checks the field again, although the API has checked it, because a line break in it would add a header. */
export function customField(name: string, value: string): string {
	if (name.length > maxHeaderName || !/^[\x21-\x39\x3b-\x7e]+$/.test(name))
		throw new Error(`Not a header field name: ${JSON.stringify(name)}.`);
	if (isReservedHeader(name)) throw new Error(`The header field ${name} cannot be set.`);
	return unstructuredField(name, value);
}

export function addressField(name: string, addresses: readonly string[]): string {
	if (addresses.length === 0) return '';
	const tokens: string[] = [];
	for (const address of addresses) {
		if (tokens.length > 0) tokens.push(`${tokens.pop()},`);
		for (const word of addressTokens(address)) tokens.push(` ${word}`);
	}
	return `${name}:${fold(tokens, name.length + 1)}\r\n`;
}

export function tokenField(name: string, token: string): string {
	if (!/^[\x21-\x7e]{1,900}$/.test(token)) {
		refuseBreaks(name, token);
		throw new Error(`${name} is not printable ASCII of at most 900 characters.`);
	}
	return `${name}: ${token}\r\n`;
}

/** Formats a date as in RFC 5322 s.3.3. */
export function dateField(dateMs: number): string {
	return `Date: ${new Date(dateMs).toUTCString().replace('GMT', '+0000')}\r\n`;
}

function refuseBreaks(name: string, value: string): void {
	if (/[\r\n\0]/.test(value)) throw new Error(`The header field ${name} contains a line break or NUL.`);
}

function isWritable(text: string): boolean {
	return /^[\t -~]*$/.test(text) && !text.includes('=?') && !hasLongWord(text);
}

function hasLongWord(text: string): boolean {
	return text.length > maxToken && foldable(text).some((word) => word.length > maxToken);
}

function foldable(text: string): string[] {
	return text.split(/(?<=[^ \t])(?=[ \t])/);
}

/** Keeps an overlong first token on the field's first line, because the next line could not hold it either. */
function fold(tokens: readonly string[], startColumn: number): string {
	let text = '';
	let column = startColumn;
	for (const token of tokens) {
		const lineBreak = token.indexOf('\r\n');
		const head = lineBreak === -1 ? token.length : lineBreak;
		const isAlone = text === '' && head > softLimit && column + head <= hardLimit;
		if (column + head > softLimit && !isAlone) {
			text += '\r\n';
			column = 0;
		}
		text += token;
		column = lineBreak === -1 ? column + head : token.length - token.lastIndexOf('\r\n') - 2;
	}
	return text;
}

/** Accepts only ASCII before the `@`, because other local parts would need SMTPUTF8 on every hop. */
const addressPattern = /^(?:"(?:[^"\\\x7f-\uffff]|\\.)*"|[^\s"(),:;<>[\\\]@\x7f-\uffff]+)@[^\s,;<>()]+$/;

function addressTokens(written: string): string[] {
	refuseBreaks('of an address', written);
	const [, before = '', inside = written] = /^(.*?)<([^<>]*)>\s*$/s.exec(written) ?? [];
	const address = inside.trim();
	const at = address.lastIndexOf('@') + 1;
	const domain = address.slice(at);
	const ascii = /^[!-~]+$/.test(domain) ? address : address.slice(0, at) + domainToASCII(domain);
	if (!addressPattern.test(ascii)) throw new Error(`Not an address: ${JSON.stringify(address)}.`);
	if (before === '') return [ascii];
	const quoted = /^"((?:[^"\\]|\\.)*)"$/s.exec(before.trim())?.[1];
	return [...phrase(quoted?.replace(/\\(.)/gs, '$1') ?? before.trim()), `<${ascii}>`];
}

/** Writes a display name as atoms, a short ASCII string in quotes, or encoded words (RFC 5322 s.3.2, RFC 2047 s.5). */
function phrase(name: string): string[] {
	if (!/^[ -~]*$/.test(name) || name.includes('=?') || name.length > 60) {
		if (!/^[A-Za-z0-9 !#$%&'*+\-/^_`{|}~]*$/.test(name) || hasLongWord(name) || / {2}/.test(name)) {
			return [encodeWords(name, 60)];
		}
	}
	if (/^[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~]+(?: [A-Za-z0-9!#$%&'*+\-/=?^_`{|}~]+)*$/.test(name))
		return name.split(' ');
	return [`"${name.replace(/["\\]/g, '\\$&')}"`];
}

/** Maximum length of an encoded word (RFC 2047 s.2). */
const maxWord = 75;
const overhead = '=?UTF-8?Q??='.length;

/** Separates encoded words by `CRLF SP`, which mail programs drop. Never splits a code point. */
function encodeWords(text: string, firstLength = maxWord): string {
	// Use base64 only if the result is shorter, because the Q encoding keeps ASCII readable.
	const points = Array.from(text);
	const plain = points.reduce((sum, point) => sum + quote(point).length, 0);
	const isQuoted = plain <= Math.ceil(Buffer.byteLength(text) / 3) * 4;
	const cost = isQuoted
		? (point: string) => quote(point).length
		: (point: string) => Buffer.byteLength(point);
	const room = (length: number) => (isQuoted ? length - overhead : Math.floor((length - overhead) / 4) * 3);
	const words = chunk(points, cost, { first: room(Math.min(firstLength, maxWord)), rest: room(maxWord) });
	return words.map((word) => (isQuoted ? quotedWord(word) : base64Word(word))).join('\r\n ');
}

function chunk(
	points: readonly string[],
	cost: (point: string) => number,
	room: { first: number; rest: number },
): string[] {
	const words: string[] = [];
	let word = '';
	let used = 0;
	for (const point of points) {
		const size = cost(point);
		if (word !== '' && used + size > (words.length === 0 ? room.first : room.rest)) {
			words.push(word);
			word = '';
			used = 0;
		}
		word += point;
		used += size;
	}
	return [...words, word];
}

function quotedWord(word: string): string {
	return `=?UTF-8?Q?${Array.from(word, quote).join('')}?=`;
}

function base64Word(word: string): string {
	return `=?UTF-8?B?${Buffer.from(word, 'utf8').toString('base64')}?=`;
}

/** The Q encoding of each ASCII character. Follows the rules for phrases, which are the strictest (RFC 2047 s.5(3)). */
const ascii: readonly string[] = Array.from({ length: 128 }, (_, code) => {
	const char = String.fromCharCode(code);
	if (/[A-Za-z0-9!*+\-/]/.test(char)) return char;
	return char === ' ' ? '_' : hex(code);
});

function quote(point: string): string {
	const known = ascii[point.charCodeAt(0)];
	return known ?? Array.from(Buffer.from(point, 'utf8'), hex).join('');
}

function hex(octet: number): string {
	return `=${octet.toString(16).toUpperCase().padStart(2, '0')}`;
}
