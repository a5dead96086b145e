/** Ids that follow from what they name, so that doing a thing twice makes it once. */
import { createHash } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { Uuid } from '../../api/records.js';

/** The message of one address in one mailing: a UUID of version 8 (RFC 9562 s.5.8), from a hash of both. */
export function messageUuid(mailing: Uuid, address: EmailKey): Uuid {
	const hash = createHash('sha256').update(`${mailing}\0${address}`).digest('hex');
	const variant = ((Number.parseInt(hash.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
	return [
		hash.slice(0, 8),
		hash.slice(8, 12),
		`8${hash.slice(13, 16)}`,
		`${variant}${hash.slice(18, 20)}`,
		hash.slice(20, 32),
	].join('-');
}

/** JSON whose objects have their keys sorted: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
	return JSON.stringify(value, (_key, inner: unknown) =>
		typeof inner === 'object' && inner !== null && !Array.isArray(inner)
			? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
			: inner,
	);
}
