/** What stored state says against a change, in the words of Django REST framework. */
import type { FieldErrors } from '../../api/errors.js';

export const duplicateAddress: FieldErrors = {
	email: [{ code: 'unique', message: 'Subscriber with this email already exists in this list.' }],
};

export const unverifiedSender: FieldErrors = {
	from: [{ code: 'invalid', message: 'Sender address is not verified.' }],
};

/** `This field must be unique.` on one field. */
export function notUnique(field: string): FieldErrors {
	return { [field]: [{ code: 'unique', message: 'This field must be unique.' }] };
}

/** A key in a body that names nothing. */
export function noSuch(field: string, key: number | string): FieldErrors {
	const message = `Invalid pk "${key}" - object does not exist.`;
	return { [field]: [{ code: 'does_not_exist', message }] };
}
