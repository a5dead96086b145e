import { hash, randomUUID } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { Day } from '../../api/datetime.js';
import { type Micros, microsPerMs } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { referencePattern } from '../../api/variables.js';

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

/** Long enough to be known again, short enough to be typed. */
const maxLength = 40;

/** `spring-news-2026-11-23`: letters and digits of any script, cut between words, without variables; about nothing, `campaign-…`. */
export function campaignName(about: string, day: Day): string {
	const words = about
		.replace(referencePattern(), ' ')
		.normalize('NFC')
		.toLowerCase()
		.split(/[^\p{L}\p{M}\p{N}]+/u)
		.filter((word) => word !== '');
	let name = '';
	for (const word of words) {
		const longer = name === '' ? [...word].slice(0, maxLength).join('') : `${name}-${word}`;
		if (longer.length > maxLength) break;
		name = longer;
	}
	return `${name === '' ? 'campaign' : name}-${day}`;
}
