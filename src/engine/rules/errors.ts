import type { FieldErrors } from '../../api/errors.js';
import { refusal } from '../../api/refusals.js';
import { texts } from '../../api/schema/texts.js';

export const duplicateAddress: FieldErrors = {
	email: [{ code: 'unique', message: 'Subscriber with this email already exists in this list.' }],
};

export const unverifiedSender: FieldErrors = {
	from: [refusal('not_verified')],
};

export function notUnique(field: string): FieldErrors {
	return { [field]: [{ code: 'unique', message: texts.unique }] };
}

export function noSuch(field: string, key: number | string): FieldErrors {
	const message = `Invalid pk "${key}" - object does not exist.`;
	return { [field]: [{ code: 'does_not_exist', message }] };
}
