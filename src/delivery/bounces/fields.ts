/** Header fields of RFC 5322 s.2.2, read with tolerance: mail systems write them in many broken ways. */

/** One line of a text, and its number in the file it came from. */
export interface Line {
	text: string;
	number: number;
}

/** One header field, unfolded. */
export interface Field {
	/** Lower case. */
	name: string;
	/** Trimmed; folds are single spaces. Encoded words are left as they are. */
	value: string;
	/** Line of the file where it begins, from 1. */
	line: number;
}

/** Beyond these a header is no header, and the rest is not looked at. */
const maxFields = 1000;
const maxValue = 10_000;

const fieldStart = /^([!-9;-~]{1,100})[ \t]*:[ \t]*/;

/** Whether a line begins a header field: `Name: value`. */
export function isFieldStart(line: string): boolean {
	return fieldStart.test(line);
}

/** Fields of these lines up to the first blank one; lines that belong to no field are passed over. */
export function parseFields(lines: readonly Line[]): Field[] {
	const fields: Field[] = [];
	for (const { text, number } of lines) {
		if (text.trim() === '' || fields.length >= maxFields) break;
		const last = fields.at(-1);
		if (/^[ \t]/.test(text) && last !== undefined) {
			last.value = `${last.value} ${text.trim()}`.trim().slice(0, maxValue);
			continue;
		}
		const start = fieldStart.exec(text);
		if (start === null) continue;
		const value = text.slice(start[0].length).trim().slice(0, maxValue);
		fields.push({ name: (start[1] ?? '').toLowerCase(), value, line: number });
	}
	return fields;
}

/** The first field of that name (lower case), or null. */
export function findField(fields: readonly Field[], name: string): Field | null {
	return fields.find((field) => field.name === name) ?? null;
}

/** The value of the first field of that name; null when there is none, or nothing in it. */
export function fieldValue(fields: readonly Field[], name: string): string | null {
	const value = findField(fields, name)?.value ?? '';
	return value === '' ? null : value;
}

/** `text/plain; charset="x"` as type and parameters, both lower case by name; RFC 2045 s.5.1. Never throws. */
export function parseParameters(value: string): { value: string; parameters: Map<string, string> } {
	const parameters = new Map<string, string>();
	const [first = '', ...rest] = splitOutsideQuotes(value);
	for (const parameter of rest) {
		const equals = parameter.indexOf('=');
		if (equals === -1) continue;
		const name = parameter.slice(0, equals).trim().toLowerCase();
		if (!parameters.has(name)) parameters.set(name, unquoted(parameter.slice(equals + 1).trim()));
	}
	return { value: first.trim().toLowerCase(), parameters };
}

function splitOutsideQuotes(value: string): string[] {
	const parts: string[] = [];
	let from = 0;
	let quoted = false;
	for (let at = 0; at < value.length; at += 1) {
		const char = value[at];
		if (char === '\\' && quoted) at += 1;
		else if (char === '"') quoted = !quoted;
		else if (char === ';' && !quoted) {
			parts.push(value.slice(from, at));
			from = at + 1;
		}
	}
	parts.push(value.slice(from));
	return parts;
}

function unquoted(text: string): string {
	if (!text.startsWith('"')) return text;
	const end = text.lastIndexOf('"');
	return text.slice(1, end > 0 ? end : undefined).replace(/\\(.)/g, '$1');
}
