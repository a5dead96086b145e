/** Erasing a person: the hash kept instead of the address, and the error on adding it again. */
import { createHmac } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { FieldErrors } from '../../api/errors.js';
import { refusal } from '../../api/refusals.js';

/**
 * The hash that stays of an erased address: with the database's own key it can be recognised, without it not even
 * guessed. `secret` is base64url.
 */
export function erasedHash(secret: string, address: EmailKey): string {
	return createHmac('sha256', Buffer.from(secret, 'base64url'))
		.update('mailctl erased 1\0')
		.update(address)
		.digest('base64url');
}

/** Replaces the address in messages that were sent; nothing is ever delivered below `.invalid` (RFC 2606 s.2). */
export const erasedAddress = 'erased@erased.invalid';

/** On `email`. */
export const erasedComplaint: FieldErrors = { email: [refusal('erased')] };
