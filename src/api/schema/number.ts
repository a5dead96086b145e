/**
 * Numbers of JSON that a double does not reproduce: `12345678901234567890`, `5.0`, `1e5`. They stay texts
 * until a field converts them as Python would.
 */

export class JsonNumber {
	readonly text: string;

	constructor(text: string) {
		this.text = text;
	}

	get isInteger(): boolean {
		return !/[.eE]/.test(this.text);
	}

	/** Python's `str(value)`, but digits that its float would drop stay. */
	toString(): string {
		if (this.isInteger) return this.text === '-0' ? '0' : this.text;
		const value = Number(this.text);
		return isSame(this.text, value) ? floatText(value) : this.text;
	}

	/** Null if digits would be lost, or if an integer would become a float: `1e+21`. */
	toNumber(): number | null {
		const value = Number(this.text);
		if (this.isInteger && String(value).includes('e')) return null;
		return isSame(this.text, value) ? value : null;
	}
}

interface NumberParts {
	whole: string;
	fraction: string;
	exponent: string;
}

export function isJsonNumber(token: string): boolean {
	return partsOf(token) !== null;
}

/**
 * The digits of a number of JSON (RFC 8259, section 6); null for any other text. Not a regular expression: a warm
 * engine keeps a place to go back to for each digit, and ten million of them are too many.
 */
function partsOf(token: string): NumberParts | null {
	const start = token.startsWith('-') ? 1 : 0;
	let at = endOfDigits(token, start);
	const whole = token.slice(start, at);
	if (whole === '' || (whole.length > 1 && whole.startsWith('0'))) return null;
	let fraction = '';
	if (token[at] === '.') {
		const point = at + 1;
		at = endOfDigits(token, point);
		fraction = token.slice(point, at);
		if (fraction === '') return null;
	}
	let exponent = '0';
	if (token[at] === 'e' || token[at] === 'E') {
		const sign = at + 1;
		const digits = token[sign] === '+' || token[sign] === '-' ? sign + 1 : sign;
		at = endOfDigits(token, digits);
		if (at === digits) return null;
		exponent = token.slice(sign, at);
	}
	return at === token.length ? { whole, fraction, exponent } : null;
}

function endOfDigits(text: string, from: number): number {
	let at = from;
	while (at < text.length && text.charCodeAt(at) >= 0x30 && text.charCodeAt(at) <= 0x39) at++;
	return at;
}

/** Whether JavaScript and Python write the number the same. Only for valid numbers. */
export function isPlainNumber(token: string): boolean {
	if (token.length > 16) return false;
	if (/^(?:0|-?[1-9]\d{0,14})$/.test(token)) return true;
	// At most 15 digits without trailing zeros; Python writes less than 0.0001 otherwise.
	return /^-?\d{1,13}\.\d{0,13}[1-9]$/.test(token) && token.length <= 16 && !/^-?0\.0000/.test(token);
}

function isSame(text: string, value: number): boolean {
	return Number.isFinite(value) && canonical(text) === canonical(String(value));
}

function canonical(text: string): string {
	const { whole, fraction, exponent } = partsOf(text) ?? { whole: '', fraction: '', exponent: '0' };
	const written = whole + fraction;
	const from = firstNonZero(written);
	if (from === written.length) return '0';
	const to = lastNonZero(written);
	return `${text.startsWith('-')} ${written.slice(from, to)} ${whole.length - from + Number(exponent)}`;
}

function firstNonZero(digits: string): number {
	let at = 0;
	while (at < digits.length && digits[at] === '0') at++;
	return at;
}

function lastNonZero(digits: string): number {
	let end = digits.length;
	while (end > 0 && digits[end - 1] === '0') end--;
	return end;
}

/** Python's `repr`: the shortest digits, positional from 1e-4 to below 1e16. */
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
