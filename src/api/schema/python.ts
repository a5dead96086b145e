// Like Python's `str.isspace()`: U+001C–U+001F and U+0085 count as space, U+FEFF does not.
const spaces = new Set(
	'\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
);

const loneSurrogate = /[\ud800-\udfff]/u;

const maxReprDepth = 32;

/** Like `str.strip()`. Takes linear time, unlike a regular expression anchored at the end. */
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

/** Like Python's `int(text)`. */
export function parseInteger(text: string): number | null {
	if (/^[0-9]{1,15}$/.test(text)) return Number(text);
	const match = /^([+-]?)(\p{Nd}+(?:_\p{Nd}+)*)$/u.exec(trimWhitespace(text));
	const digits = match?.[2]?.replaceAll('_', '');
	if (digits === undefined || digits.length > 4_300) return null;
	const plain = digits.replace(/[^0-9]/gu, (digit) => String(digitValue(digit)));
	const value = Number(`${match?.[1] === '-' ? '-' : ''}${plain}`);
	return Number.isSafeInteger(value) ? value + 0 : null;
}

/** In Unicode, a script's ten digits are consecutive. Digits of another script may come just before, hence `% 10`. */
function digitValue(digit: string): number {
	const code = digit.codePointAt(0) ?? 0;
	let value = 0;
	while (/^\p{Nd}$/u.test(String.fromCodePoint(code - value - 1))) value++;
	return value % 10;
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

/** Keeps the text of a number until a field converts it, because a double does not reproduce `5.0`. */
export class JsonNumber {
	readonly text: string;

	constructor(text: string) {
		this.text = text;
	}

	get isInteger(): boolean {
		return !/[.eE]/.test(this.text);
	}

	/** Like Python's `str(value)`, but keeps digits that a Python float would drop. */
	toString(): string {
		if (this.isInteger) return this.text === '-0' ? '0' : this.text;
		const value = Number(this.text);
		return isSame(this.text, value) ? floatText(value) : this.text;
	}

	/** Null if a double would lose digits, or would print an integer as a float (`1e+21`). */
	toNumber(): number | null {
		const value = Number(this.text);
		if (this.isInteger && String(value).includes('e')) return null;
		return isSame(this.text, value) ? value : null;
	}
}

/** RFC 8259 s.6. `maxNumberLength` limits the token, so backtracking cannot take long. */
const jsonNumber = /^-?(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

export function isJsonNumber(token: string): boolean {
	return jsonNumber.test(token);
}

export function isPlainNumber(token: string): boolean {
	if (token.length > 16) return false;
	if (/^(?:0|-?[1-9]\d{0,14})$/.test(token)) return true;
	// A double changes numbers with over 15 digits or a final zero. Python writes numbers below 0.0001 with an exponent.
	return /^-?\d{1,13}\.\d{0,13}[1-9]$/.test(token) && token.length <= 16 && !/^-?0\.0000/.test(token);
}

function isSame(text: string, value: number): boolean {
	return Number.isFinite(value) && canonical(text) === canonical(String(value));
}

function canonical(text: string): string {
	const [, whole = '', fraction = '', exponent = '0'] = jsonNumber.exec(text) ?? [];
	const written = whole + fraction;
	const from = written.search(/[1-9]/);
	if (from === -1) return '0';
	let to = written.length;
	while (written[to - 1] === '0') to--;
	return `${text.startsWith('-')} ${written.slice(from, to)} ${whole.length - from + Number(exponent)}`;
}

/** Like Python's `repr`: the shortest digits, without exponent from 1e-4 to below 1e16. */
function floatText(value: number): string {
	const sign = value < 0 || Object.is(value, -0) ? '-' : '';
	const [mantissa = '0', power = '0'] = Math.abs(value).toExponential().split('e');
	const exponent = Number(power);
	const digits = mantissa.replace('.', '');
	if (exponent < -4 || exponent >= 16) {
		const size = String(Math.abs(exponent)).padStart(2, '0');
		return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${size}`;
	}
	if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
	const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
	return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`;
}
