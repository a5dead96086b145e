/** Where the server means to answer otherwise than Django REST framework by itself, and why. */
import type { Asked } from './drf-requests.js';

/** An answer made comparable. */
export interface Shown {
	status: number;
	headers: Record<string, string>;
	/** Parsed where it is JSON. */
	body: unknown;
}

interface Difference {
	why: string;
	applies(asked: Asked, ours: Shown, theirs: Shown): boolean;
}

const isRefused = (shown: Shown) => shown.status === 400;
const says = (shown: Shown, text: string) => JSON.stringify(shown.body ?? '').includes(text);

const recordOf = (value: unknown): Record<string, unknown> =>
	typeof value === 'object' && value !== null ? { ...value } : {};
const isAlike = (ours: Shown, theirs: Shown, name: string) =>
	JSON.stringify(recordOf(ours.body)[name]) === JSON.stringify(recordOf(theirs.body)[name]);

/** Both did it, and answer the same but for these fields. */
function isAlikeBut(ours: Shown, theirs: Shown, names: readonly string[]): boolean {
	if (ours.status !== theirs.status || ours.status >= 300) return false;
	const all = new Set([...Object.keys(recordOf(ours.body)), ...Object.keys(recordOf(theirs.body))]);
	return [...all].every((name) => names.includes(name) || isAlike(ours, theirs, name));
}

/** Fields that the request names. */
function named({ raw }: Asked): string[] {
	try {
		return Object.keys(recordOf(JSON.parse(raw ?? '')));
	} catch {
		return [];
	}
}

function isOneEach({ body }: Shown): boolean {
	const messages = recordOf(body)['messages'];
	if (!Array.isArray(messages)) return false;
	const keys = messages.map((one) => String(recordOf(one)['to']).toLowerCase());
	return new Set(keys).size === keys.length;
}

/** Of whole answers. */
export const differences: readonly Difference[] = [
	{
		why: 'OPTIONS describes nothing: 204 with Allow',
		applies: ({ method }, ours, theirs) =>
			method === 'OPTIONS' && ours.status === 204 && theirs.status === 200,
	},
	{
		why: 'what is nowhere, or not UTF-8, is JSON too',
		applies: (_, ours, theirs) =>
			ours.status === theirs.status && theirs.headers['content-type'] !== 'application/json',
	},
	{
		why: 'a crash of the witness: no such row, or a refusal',
		applies: (_, ours, theirs) => theirs.status === 500 && ours.status < 500,
	},
	{
		why: 'only True, False, true, false, 1 and 0 filter; django_filters.rest_framework takes any case',
		applies: ({ path }, ours, theirs) =>
			path.includes('is_active=FALSE') && ours.status === 200 && theirs.status === 200,
	},
	{
		why: 'addresses are compared without case',
		applies: ({ path }, ours, theirs) => path.includes('email__exact=') && ours.status === theirs.status,
	},
	{
		why: 'filters are of collections: the framework filters the object too',
		applies: ({ path }) => /\/subscribers\/[^/?]+\/\?.*(?:email__|is_active)/.test(path),
	},
	{
		why: 'a blank date is no date, and the range without dates is seven days',
		applies: ({ path }) => /date_(?:from|to)=(?:&|$|%20)/.test(path),
	},
	{
		why: 'a reversed range, or one of more than 366 days, is refused',
		applies: ({ path }, ours) => path.includes('date_to') && isRefused(ours) && says(ours, 'date_to'),
	},
	{
		why: 'a PUT of a list keeps what it does not name',
		applies: ({ method, path }, ours, theirs) =>
			method === 'PUT' &&
			path.startsWith('/sub/lists/') &&
			ours.status === 200 &&
			says(theirs, 'is required'),
	},
	{
		why: 'a PUT of a list names the fields that are bad, and misses none',
		applies: ({ method, path }, ours, theirs) =>
			method === 'PUT' &&
			path.startsWith('/sub/lists/') &&
			isRefused(ours) &&
			says(theirs, 'is required') &&
			Object.keys(recordOf(ours.body)).every((name) => isAlike(ours, theirs, name)),
	},
	{
		why: 'a PUT without an optional field returns it to its default',
		applies: (asked, ours, theirs) =>
			asked.method === 'PUT' &&
			ours.status === 200 &&
			theirs.status === 200 &&
			named(asked).every((name) => name === 'password' || isAlike(ours, theirs, name)),
	},
	{
		why: 'nothing at all is no body, whatever its type is called',
		applies: ({ raw }) => raw === '',
	},
	{
		why: 'a message is one for each distinct address',
		applies: ({ path }, ours, theirs) =>
			path === '/message/send/' && ours.status === 200 && theirs.status === 200 && isOneEach(ours),
	},
	{
		why: 'is_active: true is refused where the address is suppressed',
		applies: (_, ours) => says(ours, 'This address is suppressed'),
	},
	{
		why: 'the witness takes the field url for its own address, and answers it as Location',
		applies: ({ path }, ours, theirs) =>
			path === '/webhooks/' && ours.status === 201 && isAlikeBut(ours, theirs, ['url', 'password']),
	},
	{
		why: 'a password is not trimmed',
		applies: ({ path }, ours, theirs) =>
			path.startsWith('/webhooks/') && isAlikeBut(ours, theirs, ['password']),
	},
];

/** Of one field of a refusal: what we say of it, or do not say. */
const ofFields: Readonly<Record<string, readonly { why: string; ours?: RegExp; theirs?: RegExp }[]>> = {
	variable: [
		{ why: 'the text of the contract', theirs: /already exists/ },
		{ why: 'a variable is letters, digits and underscores', ours: /required pattern|reserved/ },
	],
	meta: [
		{ why: 'worded by the witness', theirs: /There is no variable/ },
		{ why: 'values are texts, numbers, booleans and null', ours: /Use a string|Unknown variable/ },
		{ why: 'the witness takes null for a meta', ours: /may not be null|Expected a dictionary/ },
		{
			why: 'the witness words JSON that is no JSON by its field',
			theirs: /valid JSON|Expected a dictionary/,
		},
		{ why: 'NUL and half surrogate pairs are refused inside too', ours: /Null|Surrogate/ },
	],
	email: [{ why: 'a duplicate is named by its field, beside all else', ours: /already exists in this list/ }],
	non_field_errors: [{ why: 'a duplicate is named by its field', theirs: /unique set/ }],
	from: [
		{ why: 'worded by the witness', theirs: /not verified/ },
		{ why: 'named beside all else', ours: /not verified/ },
		{ why: 'a name may stand before the address', theirs: /Enter a valid email/ },
	],
	to: [],
	url: [{ why: 'http and https, ports up to 65535, no control characters', ours: /valid URL/ }],
	subject: [{ why: 'named at once with all else', ours: /is required/ }],
	text_body: [
		{ why: 'bodies are not trimmed', theirs: /may not be blank/ },
		{ why: 'named at once with all else', ours: /is required/ },
	],
	html_body: [
		{ why: 'bodies are not trimmed', theirs: /may not be blank/ },
		{ why: 'named at once with all else', ours: /is required/ },
	],
	headers: [{ why: 'header names and values follow RFC 5322', ours: /header/ }],
	reply_to: [{ why: 'a name may stand before the address', theirs: /Enter a valid email/ }],
	cc: [
		{ why: 'a name may stand before the address', theirs: /Enter a valid email/ },
		{ why: 'BULK has no copies', ours: /BULK/ },
	],
	bcc: [
		{ why: 'a name may stand before the address', theirs: /Enter a valid email/ },
		{ why: 'BULK has no copies', ours: /BULK/ },
	],
};

/** The reason, or null: it is not meant. */
export function meantDifference(asked: Asked, ours: Shown, theirs: Shown): string | null {
	const whole = differences.find((one) => one.applies(asked, ours, theirs))?.why;
	return whole ?? (isRefused(ours) || isRefused(theirs) ? ofRefusal(ours, theirs) : null);
}

/** Each field about which the two say different things has its reason; an answer that is no refusal says nothing. */
function ofRefusal(ours: Shown, theirs: Shown): string | null {
	const [mine, other] = [complaints(ours), complaints(theirs)];
	const names = new Set([...Object.keys(mine), ...Object.keys(other)]);
	const reasons = [...names]
		.map((name) => [name, JSON.stringify(mine[name]) ?? '', JSON.stringify(other[name]) ?? ''] as const)
		.filter(([, a, b]) => a !== b)
		.map(
			([name, a, b]) => ofFields[name]?.find((one) => fits(one.ours, a) && fits(one.theirs, b))?.why ?? null,
		);
	return reasons.length === 0 || reasons.includes(null) ? null : reasons.join('; ');
}

function fits(pattern: RegExp | undefined, text: string): boolean {
	return pattern === undefined || pattern.test(text);
}

function complaints(shown: Shown): Record<string, unknown> {
	return isRefused(shown) && typeof shown.body === 'object' && shown.body !== null ? { ...shown.body } : {};
}
