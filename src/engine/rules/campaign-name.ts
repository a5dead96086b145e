/** The name of a campaign that was given none. Pure. */
import type { Day } from '../../api/datetime.js';
import { referencePattern } from '../../api/variables.js';

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
