/** JSON from outside: what parses may still be too deep to be handled, or hold text that cannot be stored. */
import { hasLoneSurrogate } from './schema/python.js';

/** The value, or what is wrong with the text. */
export type ParsedJson = { kind: 'valid'; value: unknown } | ({ kind: 'invalid' } & JsonFault);

/** `syntax` = no JSON at all; the others are JSON that is refused. Messages hold nothing of the text. */
export interface JsonFault {
	code: 'syntax' | 'too_deep' | 'null_characters_not_allowed' | 'surrogate_characters_not_allowed';
	message: string;
}

/** Levels of nesting; `[]` has one. Recursion over stored values must never be a matter of luck. */
export const maxJsonDepth = 32;

/** Parses, and refuses nesting deeper than 32 and NUL or lone surrogates in any key or string. Never throws. */
export function parseJson(text: string): ParsedJson {
	const parsed = parseSyntax(text);
	const fault = parsed.kind === 'valid' ? findJsonFault(parsed.value) : null;
	return fault === null ? parsed : { kind: 'invalid', ...fault };
}

/** Parses and refuses nesting deeper than 32; texts are left to the check of their fields. Never throws. */
export function parseJsonBody(text: string): ParsedJson {
	const parsed = parseSyntax(text);
	const fault = parsed.kind === 'valid' ? findFault(parsed.value, () => null) : null;
	return fault === null ? parsed : { kind: 'invalid', ...fault };
}

/** Why a value that came out of JSON is refused, or null. Iterative: a hostile depth costs no stack. */
export function findJsonFault(value: unknown): JsonFault | null {
	return findFault(value, findTextFault);
}

function parseSyntax(text: string): ParsedJson {
	try {
		const value: unknown = JSON.parse(text);
		return { kind: 'valid', value };
	} catch {
		return { kind: 'invalid', code: 'syntax', message: 'Value must be valid JSON.' };
	}
}

function findFault(root: unknown, checkText: (text: string) => JsonFault | null): JsonFault | null {
	const waiting: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }];
	for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
		const { value } = next;
		const fault = typeof value === 'string' ? checkText(value) : null;
		if (fault !== null) return fault;
		if (typeof value !== 'object' || value === null) continue;
		const depth = next.depth + 1;
		if (depth > maxJsonDepth)
			return { code: 'too_deep', message: `JSON is nested deeper than ${maxJsonDepth} levels.` };
		for (const [key, item] of Object.entries(value)) {
			const keyFault = checkText(key);
			if (keyFault !== null) return keyFault;
			waiting.push({ value: item, depth });
		}
	}
	return null;
}

function findTextFault(text: string): JsonFault | null {
	if (text.includes('\0')) {
		return { code: 'null_characters_not_allowed', message: 'Null characters are not allowed.' };
	}
	if (hasLoneSurrogate(text)) {
		return { code: 'surrogate_characters_not_allowed', message: 'Surrogate characters are not allowed.' };
	}
	return null;
}
