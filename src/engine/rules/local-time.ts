import {
	addDays,
	type Day,
	dayOf,
	type LocalMoment,
	type Micros,
	microsPerMs,
	momentOnDay,
	parseDateTime,
	parseTime,
} from '../../api/datetime.js';

export function parseLocalTime(
	text: string,
	{ now, timeZone }: { now: Micros; timeZone: string },
): LocalMoment | { kind: 'invalid'; message: string } {
	const given = text.trim();
	// Reject long texts first, because the regular expressions below take quadratic time on them.
	if (given.length > 100) return unread(`${given.slice(0, 100)}…`);
	const absolute = parseAbsolute(given);
	if (absolute !== null) return { at: absolute, last: absolute, kind: 'once' };
	const [, first = '', time = ''] = /^(\S+?)(?:[T ] ?(\S+))?$/i.exec(given) ?? [];
	const day = parseDay(first, dayOf(now, timeZone));
	const minutes = parseTime(time.replace(/^(\d{1,2}:\d\d):00$/, '$1'));
	if (day === null) return unread(text);
	if (time === '')
		return { kind: 'invalid', message: `"${text}" needs a time of day, such as ${first} 09:00.` };
	return minutes === null ? unread(text) : momentOnDay(day, minutes, timeZone);
}

function unread(text: string): { kind: 'invalid'; message: string } {
	return { kind: 'invalid', message: `"${text}" is not a time, such as 2026-12-01 09:00 or tomorrow 9:00.` };
}

function parseAbsolute(text: string): Micros | null {
	const [, day, time, seconds, offset] =
		/^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)$/i.exec(text) ?? [];
	if (day === undefined) return null;
	const local = parseDateTime(`${day}T${time}${seconds ?? ':00'}`);
	const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(offset ?? '') ?? [];
	const ahead = sign === undefined ? 0 : (Number(hours) * 60 + Number(minutes)) * 60_000 * microsPerMs;
	return local === null ? null : local - (sign === '-' ? -ahead : ahead);
}

function parseDay(text: string, today: Day): Day | null {
	const word = text.toLowerCase();
	if (word === 'today') return today;
	if (word === 'tomorrow') return addDays(today, 1);
	const [, date, month, year] = /^(\d{1,2})\.(\d{1,2})\.(\d{4})$/.exec(text) ?? [];
	const day = date === undefined ? text : `${year}-${month?.padStart(2, '0')}-${date.padStart(2, '0')}`;
	return /^\d{4}-\d\d-\d\d$/.test(day) && parseDateTime(`${day}T00:00:00`) !== null ? day : null;
}
