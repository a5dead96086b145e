/** How long a target wants to be left alone: `Retry-After` (RFC 9110 s.10.2.3). */
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Milliseconds: seconds as they are, a date against the answer's own `Date`, whose clock it was made by. Null for
 * anything else.
 */
export function readRetryAfter({
	'retry-after': header,
	date,
}: Pick<IncomingHttpHeaders, 'retry-after' | 'date'>): number | null {
	if (header === undefined) return null;
	const text = header.trim();
	if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
	// Date.parse takes almost anything for a date: an HTTP date has a name of a day and GMT.
	const at = /^[A-Z][a-z]{2,8},? .*GMT$/.test(text) ? Date.parse(text) : Number.NaN;
	const wait = at - Date.parse(date ?? '');
	return Number.isNaN(wait) ? null : Math.max(0, wait);
}
