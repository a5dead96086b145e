/** Ids computed from their content, so that a repeat gives the same id. */
import { createHash } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { Uuid } from '../../api/records.js';

/** The message of one address in one campaign: a UUID of version 8 (RFC 9562 s.5.8), from a hash of both. */
export function messageUuid(campaign: Uuid, address: EmailKey): Uuid {
	const hash = createHash('sha256').update(`${campaign}\0${address}`).digest('hex');
	const variant = ((Number.parseInt(hash.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
	return [
		hash.slice(0, 8),
		hash.slice(8, 12),
		`8${hash.slice(13, 16)}`,
		`${variant}${hash.slice(18, 20)}`,
		hash.slice(20, 32),
	].join('-');
}
