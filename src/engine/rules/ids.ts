import { hash, randomUUID } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { Day } from '../../api/datetime.js';
import { type Micros, microsPerMs } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { referencePattern } from '../../api/variables.js';

/** Version 7 (RFC 9562 s.5.7): the time to the millisecond, then chance. */
export function newUuid(now: Micros): Uuid {
	const time = Math.floor(now / microsPerMs)
		.toString(16)
		.padStart(12, '0');
	return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/**
 * The message of an address in a campaign, the same in a repeat. Version 8 (RFC 9562 s.5.8): it begins like the
 * campaign's id, and goes on with a hash of both.
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

const maxLength = 40;

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
