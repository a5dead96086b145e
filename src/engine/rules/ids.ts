/** Ids, in an order that puts those made together beside each other in an index. */
import { hash, randomUUID } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import { type Micros, microsPerMs } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';

/** A UUID of version 7 (RFC 9562 s.5.7): by the time, to the millisecond, and then by chance. */
export function newUuid(now: Micros): Uuid {
	const time = Math.floor(now / microsPerMs)
		.toString(16)
		.padStart(12, '0');
	return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/**
 * The message of one address in one campaign, so that a repeat gives the same id: a UUID of version 8 (RFC 9562 s.5.8),
 * which begins as the campaign's, and goes on with a hash of both.
 */
export function messageUuid(campaign: Uuid, address: EmailKey): Uuid {
	const digits = hash('sha256', `${campaign}\0${address}`);
	const variant = ((Number.parseInt(digits.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
	return [
		campaign.slice(0, 8),
		digits.slice(8, 12),
		`8${digits.slice(13, 16)}`,
		`${variant}${digits.slice(18, 20)}`,
		digits.slice(20, 32),
	].join('-');
}
