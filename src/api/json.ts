import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { hasLoneSurrogate, isJsonNumber, isPlainNumber, JsonNumber } from './schema/python.js';
import { texts } from './schema/texts.js';

type ParsedJson = { kind: 'valid'; value: unknown } | ({ kind: 'invalid' } & JsonFault);

/** `syntax` also means too many values, or a number that is too long. No message contains text of the input. */
interface JsonFault {
	code: 'syntax' | 'too_deep' | 'null_characters_not_allowed' | 'surrogate_characters_not_allowed';
	message: string;
}

interface JsonOptions {
	/** `exact`: keeps a number as `JsonNumber` if a double would lose its digits or its decimal point. */
	numbers?: 'exact';
	maxValues?: number;
}

const maxJsonDepth = 32;

const maxExactNumbers = 50_000;

/** Equals Python's `int_max_str_digits`. */
const maxNumberLength = 4_300;

/** Unlike `parseJsonBody`, rejects keys and strings that contain NUL or lone surrogates. Never throws. */
export function parseJson(text: string, options: JsonOptions = {}): ParsedJson {
	const parsed = parseJsonBody(text, options);
	const fault = parsed.kind === 'valid' ? findJsonFault(parsed.value) : null;
	return fault === null ? parsed : { kind: 'invalid', ...fault };
}

export function parseJsonBody(text: string, options: JsonOptions = {}): ParsedJson {
	const walked = walk(text, options);
	if (walked.fault !== null) return { kind: 'invalid', ...walked.fault };
	try {
		const value: unknown = walked.numbers.length === 0 ? JSON.parse(text) : parseMarked(text, walked.numbers);
		return { kind: 'valid', value };
	} catch {
		return { kind: 'invalid', ...syntax };
	}
}

/** Iterative, so that deeply nested input cannot overflow the stack. */
export function findJsonFault(root: unknown): JsonFault | null {
	const waiting: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }];
	for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
		const { value } = next;
		const fault = typeof value === 'string' ? findTextFault(value) : null;
		if (fault !== null) return fault;
		if (typeof value !== 'object' || value === null || value instanceof JsonNumber) continue;
		const depth = next.depth + 1;
		if (depth > maxJsonDepth) return depthFault;
		for (const [key, item] of Object.entries(value)) {
			const keyFault = findTextFault(key);
			if (keyFault !== null) return keyFault;
			waiting.push({ value: item, depth });
		}
	}
	return null;
}

export function withoutExactNumbers(
	value: unknown,
	convert: (number: JsonNumber) => number | string = (number) => number.toNumber() ?? number.text,
): unknown {
	if (value instanceof JsonNumber) return convert(value);
	if (Array.isArray(value)) return value.map((item) => withoutExactNumbers(item, convert));
	if (typeof value !== 'object' || value === null) return value;
	const entries = Object.entries(value).map(([key, item]) => [key, withoutExactNumbers(item, convert)]);
	return Object.fromEntries(entries);
}

const syntax: JsonFault = { code: 'syntax', message: texts.json };
const depthFault: JsonFault = {
	code: 'too_deep',
	message: `JSON is nested deeper than ${maxJsonDepth} levels.`,
};

interface Walked {
	fault: JsonFault | null;
	numbers: readonly (readonly [number, number])[];
}

const quote = 0x22;
const comma = 0x2c;
const minus = 0x2d;
const backslash = 0x5c;
const leastBracket = 0x5b;

/** Does not check the syntax, because `JSON.parse` does that later. */
function walk(text: string, { numbers, maxValues = Number.POSITIVE_INFINITY }: JsonOptions): Walked {
	const exact: [number, number][] = [];
	const judge = createJudge(maxValues);
	for (let at = 0; at < text.length; at++) {
		const code = text.charCodeAt(at);
		if (code === quote) at = endOfString(text, at);
		else if (code === minus || isDigit(code)) {
			const end = endOfNumber(text, at);
			if (end - at > maxNumberLength) return { fault: syntax, numbers: [] };
			if (numbers === 'exact' && needsExactness(text, at, end) && exact.push([at, end]) > maxExactNumbers)
				return { fault: tooMany(maxExactNumbers, 'numbers with a fraction or many digits'), numbers: [] };
			at = end - 1;
		} else if (code === comma || code >= leastBracket) {
			const fault = judge(code);
			if (fault !== null) return { fault, numbers: [] };
		}
	}
	return { fault: null, numbers: exact };
}

function createJudge(maxValues: number): (code: number) => JsonFault | null {
	let depth = 0;
	let values = 1;
	return (code) => {
		const step = stepOf(code);
		depth += step;
		if (step > 0 || code === comma) values += 1;
		if (depth > maxJsonDepth) return depthFault;
		return values > maxValues ? tooMany(maxValues) : null;
	};
}

function stepOf(code: number): number {
	if (code < leastBracket) return 0;
	if (code === 0x5b || code === 0x7b) return 1;
	return code === 0x5d || code === 0x7d ? -1 : 0;
}

function tooMany(most: number, what = 'values'): JsonFault {
	return { code: 'syntax', message: `JSON holds more than ${most} ${what}.` };
}

function needsExactness(text: string, from: number, to: number): boolean {
	const token = text.slice(from, to);
	return !isPlainNumber(token) && isJsonNumber(token) && !isKey(text, to);
}

function endOfString(text: string, start: number): number {
	const found = text.indexOf('"', start + 1);
	if (found > 0 && text.charCodeAt(found - 1) !== backslash) return found;
	let at = start + 1;
	while (at < text.length) {
		const code = text.charCodeAt(at);
		if (code === quote) return at;
		at += code === backslash ? 2 : 1;
	}
	return at;
}

function endOfNumber(text: string, start: number): number {
	let end = start + 1;
	while (end < text.length && isNumberCode(text.charCodeAt(end))) end++;
	return end;
}

function isDigit(code: number): boolean {
	return code >= 0x30 && code <= 0x39;
}

function isNumberCode(code: number): boolean {
	return isDigit(code) || code === 0x2b || code === minus || code === 0x2e || code === 0x45 || code === 0x65;
}

function isKey(text: string, end: number): boolean {
	let at = end;
	while (at < text.length && ' \t\n\r'.includes(text.charAt(at))) at++;
	return text.charAt(at) === ':';
}

/** Wraps the numbers in strings, so that `JSON.parse` keeps their digits. */
function parseMarked(text: string, numbers: Walked['numbers']): unknown {
	const mark = `${randomUUID()} `;
	const pieces: string[] = [];
	let done = 0;
	for (const [from, to] of numbers) {
		pieces.push(text.slice(done, from), `"${mark}${text.slice(from, to)}"`);
		done = to;
	}
	pieces.push(text.slice(done));
	return JSON.parse(pieces.join(''), (_key, value: unknown) =>
		typeof value === 'string' && value.startsWith(mark) ? new JsonNumber(value.slice(mark.length)) : value,
	);
}

function findTextFault(text: string): JsonFault | null {
	if (text.includes('\0')) {
		return { code: 'null_characters_not_allowed', message: texts.nullCharacters };
	}
	if (hasLoneSurrogate(text)) {
		return { code: 'surrogate_characters_not_allowed', message: 'Surrogate characters are not allowed.' };
	}
	return null;
}

export function canonicalJson(value: unknown): string {
	return JSON.stringify(value, (_key, inner: unknown) =>
		typeof inner === 'object' && inner !== null && !Array.isArray(inner)
			? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
			: inner,
	);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
	return (
		typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
	);
}

type JsonBody = { kind: 'valid'; value: unknown } | { kind: 'empty' } | { kind: 'invalid'; fault: string };

export const tooDeep = 'is nested too deeply';

/** Keeps an integer above 2^53 as a text of its digits, because a double would round it. */
export function readJson(body: Uint8Array): JsonBody {
	if (body.length === 0) return { kind: 'empty' };
	const text = decodeUtf8(body)?.replace(/^\ufeff/, '') ?? null;
	if (text === null) return { kind: 'invalid', fault: 'is not UTF-8' };
	const hasLong = /\d{16}/.test(text);
	const parsed = parseJsonBody(text, hasLong ? { numbers: 'exact' } : {});
	if (parsed.kind === 'valid')
		return hasLong ? { ...parsed, value: withoutExactNumbers(parsed.value) } : parsed;
	return { kind: 'invalid', fault: parsed.code === 'too_deep' ? tooDeep : 'is not JSON' };
}

/** Keeps a byte order mark. */
export function decodeUtf8(octets: Uint8Array): string | null {
	const { buffer, byteOffset, length } = octets;
	return isUtf8(octets) ? Buffer.from(buffer, byteOffset, length).toString('utf8') : null;
}
