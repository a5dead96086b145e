/** The records of the service document as rules for their keys. Service document, "Resources and their fields". */
import { isRecord } from '../../api/json.js';
import { webhookTypes } from '../../api/records.js';

/** A complaint about a record. A `fault` breaks the document; a `deviation` is within its freedom. */
export interface Complaint {
	grade: 'fault' | 'deviation';
	text: string;
}

export type Rule = (value: unknown) => Complaint | null;
export type Shape = Readonly<Record<string, Rule>>;
export type Json = Readonly<Record<string, unknown>>;

export const integer: Rule = (value) => (Number.isSafeInteger(value) ? null : not('an integer', value));
export const count: Rule = (value) =>
	integer(value) ?? (Number(value) >= 0 ? null : fault(`is ${String(value)}, less than nothing`));
export const number: Rule = (value) => (typeof value === 'number' ? null : not('a number', value));
export const string: Rule = (value) => (typeof value === 'string' ? null : not('a string', value));
export const boolean: Rule = (value) => (typeof value === 'boolean' ? null : not('true or false', value));
export const object: Rule = (value) => (isRecord(value) ? null : not('an object', value));

/** `null` is fine too; a key that is missing is a fault all the same. */
export function nullable(rule: Rule): Rule {
	return (value) => (value === null ? null : rule(value));
}

/** A deviation for a value beside those of the document: every client passes it on. */
export function oneOf(values: readonly string[]): Rule {
	return (value) =>
		string(value) ??
		(values.includes(String(value))
			? null
			: deviation(`is ${shown(value)}, not one of ${values.join(', ')}`));
}

/** `YYYY-MM-DDTHH:MM:SS.ffffff`; another form of ISO 8601 is still a time. */
export const dateTime: Rule = (value) => {
	if (typeof value !== 'string') return not('a date-time', value);
	if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/.test(value)) return null;
	const isIso = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?$/.test(value);
	const text = `is ${shown(value)}, not <YYYY-MM-DDTHH:MM:SS.ffffff>`;
	return isIso ? deviation(text) : fault(text);
};

export const listShape: Shape = {
	id: integer,
	name: string,
	email_reason: string,
	active_subscribers_count: count,
	inactive_subscribers_count: count,
	overall_subscribers_count: count,
	date_created: dateTime,
};

export const subscriberShape: Shape = {
	id: integer,
	list_id: integer,
	email: string,
	name: string,
	is_active: boolean,
	disable_reason: nullable(string),
	is_email_verified: boolean,
	meta: object,
	source: oneOf(['IMPORT', 'FORM', 'API', 'APP']),
	opt_in_signed: nullable(dateTime),
	date_created: dateTime,
};

export const fieldShape: Shape = { id: integer, variable: string, name: string, date_created: dateTime };

export const webhookShape: Shape = {
	id: integer,
	url: string,
	type: oneOf(webhookTypes),
	is_auth_enabled: boolean,
	login: string,
	password: string,
	date_created: dateTime,
};

/** Everything about one object; keys in the order of the shape. */
export function complaintsAbout(shape: Shape, value: unknown): Complaint[] {
	if (!isRecord(value)) return [fault(`is ${typeOf(value)}, not an object`)];
	const found = Object.entries(shape).flatMap(([key, rule]) => {
		const complaint = Object.hasOwn(value, key) ? rule(value[key]) : fault('is missing');
		return complaint === null ? [] : [{ ...complaint, text: `${key} ${complaint.text}` }];
	});
	const more = Object.keys(value).filter((key) => !Object.hasOwn(shape, key));
	const extra = more.map((key) => deviation(`${key} is no key of the document`));
	return [...found, ...extra];
}

/** `text` continues the name of the key: `is missing`. */
export function fault(text: string): Complaint {
	return { grade: 'fault', text };
}

/** `text` as for `fault`. */
export function deviation(text: string): Complaint {
	return { grade: 'deviation', text };
}

/** A value as a complaint quotes it. */
export function shown(value: unknown): string {
	const text = value === undefined ? 'nothing' : JSON.stringify(value);
	return text.length <= 80 ? text : `${text.slice(0, 80)}…`;
}

function not(wanted: string, value: unknown): Complaint {
	return fault(`is ${typeOf(value)}, not ${wanted}`);
}

function typeOf(value: unknown): string {
	if (value === null || value === undefined) return String(value);
	if (Array.isArray(value)) return 'an array';
	if (typeof value === 'number' && !Number.isInteger(value)) return 'a fraction';
	return { object: 'an object', boolean: 'a boolean' }[typeof value as string] ?? `a ${typeof value}`;
}
