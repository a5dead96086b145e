/**
 * Where the service's habits are those of Python: which white space is trimmed, how a type is called and how a value
 * reads inside an error text. JSON's `1.0` cannot be told from `1` here; both read as integers.
 */

// str.isspace() of Python 3. Differs from String.prototype.trim: U+001C–U+001F and U+0085 are space, U+FEFF is not.
const spaces = new Set(
	'\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
);

// With the u flag a whole pair is one code point, and no surrogate.
const loneSurrogate = /\p{Surrogate}/u;

const maxReprDepth = 32;

/** `str.strip()`; linear, as a regular expression anchored at the end is not. */
export function trimWhitespace(text: string): string {
	let start = 0;
	let end = text.length;
	while (start < end && spaces.has(text.charAt(start))) start++;
	while (end > start && spaces.has(text.charAt(end - 1))) end--;
	return text.slice(start, end);
}

/** `len(text)`: code points, not UTF-16 units. */
export function countCodePoints(text: string): number {
	let count = 0;
	for (const _ of text) count++;
	return count;
}

/** The first half of a surrogate pair that stands alone, as a code; null for text that UTF-8 can hold. */
export function findLoneSurrogate(text: string): number | null {
	return loneSurrogate.exec(text)?.[0].codePointAt(0) ?? null;
}

/** True for half of a UTF-16 pair standing alone: no text can be made of it. */
export function hasLoneSurrogate(text: string): boolean {
	return loneSurrogate.test(text);
}

/** `type(value).__name__` of a value that came out of JSON. */
export function typeName(value: unknown): string {
	if (value === null || value === undefined) return 'NoneType';
	if (Array.isArray(value)) return 'list';
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

/** `str(value)`: strings as they are, everything else as `repr` writes it. */
export function toText(value: unknown): string {
	return typeof value === 'string' ? value : repr(value, 0);
}

/** A JSON object: own keys count, nothing inherited does. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function repr(value: unknown, depth: number): string {
	if (value === null || value === undefined) return 'None';
	if (value === true) return 'True';
	if (value === false) return 'False';
	if (typeof value === 'string') return reprString(value);
	if (depth > maxReprDepth) return '...';
	if (Array.isArray(value)) return `[${value.map((item) => repr(item, depth + 1)).join(', ')}]`;
	if (!isRecord(value)) return String(value);
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
