/** DRF's complaints about a body, and what else looks like them, as `FieldErrors`. */
import { type FieldError, type FieldErrors, listFieldErrors, nonFieldErrors } from '../../api/errors.js';

/** What a service may nest; beyond, nobody reads. */
const maxDepth = 8;

/**
 * Complaints by field. Items of a list come keyed by index (`{"1": […]}`) or in their places (`[[], ["…"]]`).
 * Null: a body without fields, such as `{"detail": "…"}` or RFC 7807's.
 */
export function readComplaints(body: unknown): FieldErrors | null {
	if (Array.isArray(body)) {
		const errors = textsOf(body);
		return errors === null ? null : { [nonFieldErrors]: errors };
	}
	if (!isRecord(body) || isProblem(body)) return null;
	const listed = listedErrors(body['errors']) ?? listedErrors(body['detail']);
	if (listed !== null) return listed;
	if (isRecord(body['errors'])) return readComplaints(body['errors']);
	return readFields(body, 0);
}

/** The service names one code: it is that of the complaint, if there is only one. */
export function withCode(fields: FieldErrors, code: string): FieldErrors {
	if (listFieldErrors(fields).length !== 1 || !/^[a-z][a-z0-9_]{0,63}$/.test(code)) return fields;
	return mapErrors(fields, (error) => ({ ...error, code }));
}

/** `detail` stands for the whole request; RFC 7807 has `title`; others `message` or `error`. */
function isProblem(body: Record<string, unknown>): boolean {
	if ('errors' in body) return false;
	return (
		isRecord(body['error']) ||
		['detail', 'message', 'error', 'title'].some((key) => typeof body[key] === 'string')
	);
}

function readFields(body: Record<string, unknown>, depth: number): FieldErrors | null {
	const fields: [string, FieldErrors[string]][] = [];
	for (const [key, value] of Object.entries(body)) {
		const read = readValue(value, depth + 1);
		if (read !== null) fields.push([key, read]);
	}
	return fields.length === 0 ? null : Object.fromEntries(fields);
}

function readValue(value: unknown, depth: number): FieldErrors[string] | null {
	if (depth > maxDepth) return null;
	if (typeof value === 'string') return [complaint(value)];
	if (isRecord(value)) return messageOf(value) ?? readFields(value, depth);
	if (!Array.isArray(value) || value.length === 0) return null;
	const texts = textsOf(value);
	if (texts !== null) return texts;
	return readFields({ ...value }, depth);
}

/** `[{"field": "email", "message": "…"}]`, as many services list them, or FastAPI's `[{"loc": […], "msg": "…"}]`. */
function listedErrors(value: unknown): FieldErrors | null {
	if (!Array.isArray(value) || !value.every(isRecord)) return null;
	const fields = new Map<string, FieldError[]>();
	for (const one of value) {
		const text = one['message'] ?? one['detail'] ?? one['msg'] ?? one['title'];
		if (typeof text !== 'string') continue;
		const place: unknown = Array.isArray(one['loc']) ? one['loc'].at(-1) : one['field'];
		const field = typeof place === 'string' ? place : nonFieldErrors;
		const code = typeof one['code'] === 'string' ? one['code'] : codeOfText(text);
		fields.set(field, [...(fields.get(field) ?? []), { code, message: text }]);
	}
	return fields.size === 0 ? null : Object.fromEntries(fields);
}

/** `{"message": "…", "code": "…"}`: DRF's full details. */
function messageOf(value: Record<string, unknown>): FieldError[] | null {
	const { message, code } = value as { message?: unknown; code?: unknown }; // checked below
	if (typeof message !== 'string') return null;
	return [{ message, code: typeof code === 'string' ? code : codeOfText(message) }];
}

function textsOf(value: readonly unknown[]): FieldError[] | null {
	const errors: FieldError[] = [];
	for (const one of value) {
		const read = typeof one === 'string' ? [complaint(one)] : isRecord(one) ? messageOf(one) : null;
		if (read === null) return null;
		errors.push(...read);
	}
	return errors;
}

function complaint(message: string): FieldError {
	return { code: codeOfText(message), message };
}

/** DRF's words; the first that fits. */
const known: readonly (readonly [RegExp, string])[] = [
	[/^This field is required\.$/, 'required'],
	[/^This field may not be blank\.$/, 'blank'],
	[/^This field may not be null\.$/, 'null'],
	[/^This list may not be empty\.$/, 'empty'],
	[/must be unique\.$|already exists/, 'unique'],
	[/is not a valid choice\.$/, 'invalid_choice'],
	[/^Expected a list of items/, 'not_a_list'],
	[/^Expected a dictionary of items/, 'not_a_dict'],
	[/^Null characters are not allowed\.$/, 'null_characters_not_allowed'],
	[/^Ensure this field has no more than|^Ensure this value has at most/, 'max_length'],
	[/^Ensure this field has at least|^Ensure this value has at least/, 'min_length'],
	[/^Ensure this value is less than or equal/, 'max_value'],
	[/^Ensure this value is greater than or equal/, 'min_value'],
	[/does not exist\.$/, 'does_not_exist'],
];

function codeOfText(text: string): string {
	return known.find(([pattern]) => pattern.test(text))?.[1] ?? 'invalid';
}

/** Every complaint changed, wherever it is nested. */
export function mapErrors(fields: FieldErrors, map: (error: FieldError) => FieldError): FieldErrors {
	return Object.fromEntries(
		Object.entries(fields).map(([key, value]) => [
			key,
			Array.isArray(value) ? value.map(map) : mapErrors(value as FieldErrors, map), // not a list: fields
		]),
	);
}

function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}
