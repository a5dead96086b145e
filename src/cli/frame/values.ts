import { addDays, type Clock, dayOf, daysIn, isTimeZone, type Micros } from '../../api/datetime.js';
import { suggest } from '../../api/suggest.js';
import { UsageError } from './errors.js';

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** 24 days. Node fires a longer timer at once. */
const longestMs = 2 ** 31 - 1;

/** Parses `500ms`, `30s`, `5m`, `2h` or `7d` to milliseconds. Rejects a bare number, because its unit is ambiguous. */
export function parseDuration(text: string, flag: string): number {
	const [, amount, unit] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text.trim()) ?? [];
	const factor = unitsMs[unit ?? ''];
	if (amount === undefined || factor === undefined)
		throw new UsageError(`${flag}: "${text}" is not a duration`, { hint: 'durations: 500ms 30s 5m 2h 7d' });
	const ms = Math.round(Number(amount) * factor);
	if (ms > longestMs) throw new UsageError(`${flag}: "${text}" is too long`, { hint: 'at most 24d' });
	return ms;
}

export function parseLimit(text: string, flag: string): number {
	const ms = parseDuration(text, flag);
	if (ms === 0) throw new UsageError(`${flag}: "${text}" must be more than zero`);
	return ms;
}

export function durationWord(ms: number): string {
	const [unit = 'ms', factor = 1] = Object.entries(unitsMs).findLast(([, one]) => ms % one === 0) ?? [];
	return `${ms / factor}${unit}`;
}

export function parseDays(text: string, flag: string): number {
	const days = daysIn(text);
	if (days === null || days > 9_999)
		throw new UsageError(`${flag} "${text}" is not a number of days, such as 14d or 2w`);
	return days;
}

const slowestDays = 31;

export function parseRate(text: string): number {
	const [, number, times = '1', unit = 's'] =
		/^(\d{1,9}(?:\.\d{1,9})?)(?:\/([1-9]\d{0,4})?([smh]))?$/.exec(text.trim().toLowerCase()) ?? [];
	const perSecond = (Number(number) * 1000) / (Number(times) * (unitsMs[unit] ?? Number.NaN));
	if (!(perSecond > 0)) throw new UsageError(`--rate "${text}" is not a rate, such as 10/s, 600/m or 100/h`);
	if (perSecond * slowestDays * 86_400 >= 1) return perSecond;
	throw new UsageError(`--rate "${text}" is less than one in ${slowestDays} days`);
}

export function paced(rate: string | undefined): { rate?: number } {
	return rate === undefined ? {} : { rate: parseRate(rate) };
}

export function parseInteger(
	text: string,
	flag: string,
	{ min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {},
): number {
	const value = /^[+-]?\d{1,16}$/.test(text.trim()) ? Number(text) : Number.NaN;
	if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
	const range = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `${min} to ${max}`;
	const what = Number.isSafeInteger(value) ? 'is out of range' : 'is not a whole number';
	throw new UsageError(`${flag}: "${text}" ${what} (${range})`);
}

/** Parses `2026-11-01`, `01.11.2026`, `today`, `yesterday`, `7d` or `2w` (days or weeks ago) to `YYYY-MM-DD`. */
export function parseDate(
	text: string,
	flag: string,
	{ clock, zone }: { clock: Clock; zone: () => string },
): string {
	const given = text.trim().toLowerCase();
	const ago = given === 'today' ? 0 : given === 'yesterday' ? 1 : daysAgo(given);
	if (ago !== null) return addDays(dayOf(clock.now(), zone()), -ago);
	const iso = /^(\d{4})-(\d{2})-(\d{2})$/.exec(given);
	const dotted = /^(\d{2})\.(\d{2})\.(\d{4})$/.exec(given);
	const date = iso ? given : dotted ? `${dotted[3]}-${dotted[2]}-${dotted[1]}` : '';
	if (date !== '' && isCalendarDay(date)) return date;
	throw new UsageError(`${flag}: "${text}" is not a date`, {
		hint: 'dates: 2026-11-01, 01.11.2026, 7d, 2w, today, yesterday',
	});
}

function daysAgo(text: string): number | null {
	const [, days, weeks] = /^(?:(\d{1,5})d|(\d{1,4})w)$/.exec(text) ?? [];
	if (days === undefined && weeks === undefined) return null;
	return Number(days ?? 0) + 7 * Number(weeks ?? 0);
}

export function parseMoment(text: string, flag: string): Micros {
	const given = text.trim();
	if (/^\d{1,10}$/.test(given)) return Number(given) * 1_000_000;
	const [, date, time, zone] =
		/^(\d{4}-\d{2}-\d{2})(?:[T ]([\d:.]+))?(Z|[+-]\d{2}:?\d{2})?$/.exec(given) ?? [];
	const ms = Date.parse(`${date}T${time ?? '00:00:00'}${zone ?? 'Z'}`);
	if (date !== undefined && isCalendarDay(date) && Number.isFinite(ms)) return ms * 1000;
	throw new UsageError(`${flag}: "${text}" is not a time`, { hint: 'times: 2026-11-01T12:00:00Z' });
}

/** Throws `UsageError` for a repeated key. Accepts the key `__proto__`. */
export function parsePairs(texts: readonly string[], flag: string): Record<string, string> {
	const pairs = new Map<string, string>();
	for (const text of texts) {
		const at = text.indexOf('=');
		if (at < 1) throw new UsageError(`${flag}: "${text}" is not KEY=VALUE`);
		const key = text.slice(0, at);
		if (pairs.has(key)) throw new UsageError(`${flag} ${key} is given twice`);
		pairs.set(key, text.slice(at + 1));
	}
	return Object.fromEntries(pairs);
}

export function parseTimeZone(text: string, flag: string): string {
	const given = text.trim();
	if (isTimeZone(given)) return given;
	const near = suggest(given, Intl.supportedValuesOf('timeZone'));
	throw new UsageError(`${flag}: unknown time zone "${text}"`, {
		hint:
			near.length > 0
				? `did you mean ${near.join(' or ')}?`
				: 'time zones: UTC, Europe/Oslo, America/New_York',
	});
}

function isCalendarDay(date: string): boolean {
	const ms = Date.parse(`${date}T00:00:00Z`);
	return Number.isFinite(ms) && new Date(ms).toISOString().slice(0, 10) === date;
}

export function given<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
	const known = Object.entries(values).filter(([, value]) => value !== undefined);
	return Object.fromEntries(known) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
