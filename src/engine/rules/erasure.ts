/** Erasing a person: what is kept instead of the address, and what whoever would bring it back is told. */
import { createHmac } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { FieldErrors } from '../../api/errors.js';

/**
 * What stays of an erased address: with the database's own key it can be recognised, without it not even guessed at.
 * `secret` is base64url.
 */
export function erasedHash(secret: string, address: EmailKey): string {
	return createHmac('sha256', Buffer.from(secret, 'base64url'))
		.update('mailctl erased 1\0')
		.update(address)
		.digest('base64url');
}

/** Stands where the address stood in messages that were sent; nothing is ever delivered below `.invalid` (RFC 2606 s.2). */
export const erasedAddress = 'erased@erased.invalid';

/** One wording for a call and for a row of an import. */
export const erasedMessage =
	'The person behind this address was erased; it can be added again once that is lifted.';

/** On `email`. */
export const erasedComplaint: FieldErrors = { email: [{ code: 'erased', message: erasedMessage }] };
