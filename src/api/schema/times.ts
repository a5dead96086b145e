/** Fields that hold a moment, a time zone, or hours of the day. */
import { isTimeZone, type Micros, parseDateTime } from '../datetime.js';
import { type Field, field, refuse, valid } from './field.js';
import { parseWindow } from './sending-times.js';
import { texts } from './texts.js';

/** `YYYY-MM-DDTHH:MM:SS[.ffffff][Z]` in UTC. */
export function moment(): Field<Micros, 'required'> {
	return field({ type: 'string', format: 'date-time' }, (input) => {
		const at = typeof input === 'string' ? parseDateTime(input) : null;
		return at === null ? refuse('invalid', texts.datetime) : valid(at);
	});
}

/** The name of a zone, as IANA has it. */
export function timeZone(): Field<string, 'required'> {
	return field({ type: 'string' }, (input) =>
		typeof input === 'string' && isTimeZone(input)
			? valid(input)
			: refuse('invalid', 'Enter an IANA time zone, such as Europe/Oslo.'),
	);
}

/** `HH:MM-HH:MM`. */
export function sendingWindow(): Field<string, 'required'> {
	return field({ type: 'string', pattern: '^\\d\\d:\\d\\d-\\d\\d:\\d\\d$' }, (input) =>
		typeof input === 'string' && parseWindow(input) !== null
			? valid(input)
			: refuse('invalid', 'Enter two different times, such as 09:00-18:00.'),
	);
}
