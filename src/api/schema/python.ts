import { JsonNumber } from './number.js';

// Python's `str.isspace()`: U+001C–U+001F and U+0085 are space, U+FEFF is not.
const spaces = new Set(
	'\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
);

const loneSurrogate = /\p{Surrogate}/u;

const maxReprDepth = 32;

/** `str.strip()`; linear, which a regular expression anchored at the end is not. */
export function trimWhitespace(text: string): string {
	let start = 0;
	let end = text.length;
	while (start < end && spaces.has(text.charAt(start))) start++;
	while (end > start && spaces.has(text.charAt(end - 1))) end--;
	return text.slice(start, end);
}

export function countCodePoints(text: string): number {
	let count = 0;
	for (const _ of text) count++;
	return count;
}

export function findLoneSurrogate(text: string): number | null {
	return loneSurrogate.exec(text)?.[0].codePointAt(0) ?? null;
}

export function hasLoneSurrogate(text: string): boolean {
	return loneSurrogate.test(text);
}

export function typeName(value: unknown): string {
	if (value === null || value === undefined) return 'NoneType';
	if (Array.isArray(value)) return 'list';
	if (value instanceof JsonNumber) return value.isInteger ? 'int' : 'float';
	switch (typeof value) {
		case 'string':
			return 'str';
		case 'boolean':
			return 'bool';
		case 'number':
			return Number.isInteger(value) ? 'int' : 'float';
		case 'object':
			return 'dict';
		default:
			return typeof value;
	}
}

export function toText(value: unknown): string {
	return typeof value === 'string' ? value : repr(value, 0);
}

/** `int(text)`: white space, a sign, digits of any script, single underscores between them. */
export function parseInteger(text: string): number | null {
	if (/^[0-9]{1,15}$/.test(text)) return Number(text);
	const match = /^([+-]?)(\p{Nd}+(?:_\p{Nd}+)*)$/u.exec(trimWhitespace(text));
	const digits = match?.[2]?.replaceAll('_', '');
	if (digits === undefined || digits.length > 4_300) return null;
	const plain = digits.replace(/[^0-9]/gu, (digit) => String(digitValue(digit)));
	const value = Number(`${match?.[1] === '-' ? '-' : ''}${plain}`);
	return Number.isSafeInteger(value) ? value + 0 : null;
}

/** Unicode gives the digits of a script ten code points in a row. */
function digitValue(digit: string): number {
	const code = digit.codePointAt(0) ?? 0;
	let value = 0;
	while (value < 9 && /^\p{Nd}$/u.test(String.fromCodePoint(code - value - 1))) value++;
	return value;
}

function repr(value: unknown, depth: number): string {
	if (value === null || value === undefined) return 'None';
	if (value === true) return 'True';
	if (value === false) return 'False';
	if (typeof value === 'string') return reprString(value);
	if (depth > maxReprDepth) return '...';
	if (Array.isArray(value)) return `[${value.map((item) => repr(item, depth + 1)).join(', ')}]`;
	if (typeof value !== 'object' || value instanceof JsonNumber) return String(value);
	const entries = Object.entries(value).map(([key, item]) => `${reprString(key)}: ${repr(item, depth + 1)}`);
	return `{${entries.join(', ')}}`;
}

function reprString(text: string): string {
	const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
	const escaped = text
		.replaceAll('\\', '\\\\')
		.replaceAll(quote, `\\${quote}`)
		.replaceAll('\n', '\\n')
		.replaceAll('\r', '\\r')
		.replaceAll('\t', '\\t');
	return `${quote}${escaped}${quote}`;
}
