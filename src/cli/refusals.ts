/** What a service refuses, said so that a person can mend it: the value he gave, and the way out. */
import { ApiError, type FieldErrors, listFieldErrors } from '../api/errors.js';
import { CliError } from './errors.js';
import { exits } from './exit.js';

/** One complaint of the service; `path` is a key of what was sent, items of lists behind a dot: `to.1`. */
export type Refused = ReturnType<typeof listFieldErrors>[number];

export interface Refusal {
	/** What was sent, to quote the values complained of. */
	input: object;
	/** What to do about a complaint; the first hint found is shown. */
	hint?: (refused: Refused) => string | undefined;
}

/** Longer values are bodies: the path says enough. */
const maxQuoted = 80;
/** A URL of a mail server may hold a password too. */
const secrets = new Set(['password', 'smtp_password', 'smtp_url']);

/** The work's result. Its `invalid` becomes exit 5 with values and a hint; other errors pass as they are. */
export async function explained<T>(work: Promise<T>, { input, hint }: Refusal): Promise<T> {
	try {
		return await work;
	} catch (error) {
		if (error instanceof ApiError && error.code === 'invalid' && error.fields !== null)
			throw refusal(error, error.fields, { input, ...(hint !== undefined && { hint }) });
		throw error;
	}
}

function refusal(error: ApiError, fields: FieldErrors, { input, hint }: Refusal): CliError {
	const complaints = listFieldErrors(fields);
	const details = complaints.map((one) => ({ ...one, message: withValue(one, input) }));
	const found = complaints.map((one) => hint?.(one)).find((text) => text !== undefined);
	const [first] = details;
	const message = first === undefined ? error.message : `${first.path}: ${first.message}`;
	return new CliError(error.code, exits.refused, message, {
		details,
		cause: error,
		...(found !== undefined && { hint: found }),
	});
}

/** `Enter a valid email address. (ann@)`, unless the text names the value already. */
function withValue({ path, message }: Refused, input: object): string {
	const value = secrets.has(path) ? undefined : valueAt(input, path.split('.'));
	const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
	if (text === '' || text.length > maxQuoted || message.includes(text)) return message;
	return `${message} (${text})`;
}

function valueAt(input: unknown, [key, ...rest]: readonly string[]): unknown {
	if (key === undefined) return input;
	if (typeof input !== 'object' || input === null) return undefined;
	// An array of one is written as its item on the command line: `from` may be complained of as `from.0`.
	const inner: unknown = Object.getOwnPropertyDescriptor(input, key)?.value;
	return typeof inner === 'string' ? inner : valueAt(inner, rest);
}
