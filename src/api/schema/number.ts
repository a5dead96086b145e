/** Numbers that a double does not reproduce (`5.0`, `1e5`) stay texts until a field converts them. */

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

/** RFC 8259 s.6; tokens are short (`maxNumberLength`), so that going back for each digit is cheap. */
const jsonNumber = /^-?(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

export function isJsonNumber(token: string): boolean {
	return jsonNumber.test(token);
}

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
	const [, whole = '', fraction = '', exponent = '0'] = jsonNumber.exec(text) ?? [];
	const written = whole + fraction;
	const from = written.search(/[1-9]/);
	if (from === -1) return '0';
	let to = written.length;
	while (written[to - 1] === '0') to--;
	return `${text.startsWith('-')} ${written.slice(from, to)} ${whole.length - from + Number(exponent)}`;
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
