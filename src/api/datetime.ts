import type { WireDate, WireDateTime } from './records.js';

/** Microseconds since 1970-01-01T00:00:00Z. An integer, exact until the year 2255. */
export type Micros = number;

export const microsPerMs = 1_000;
export const microsPerSecond = 1_000_000;
export const microsPerDay = 86_400_000_000;

export interface Clock {
	/** Users may set this clock at any time, even by hours, so never measure durations with it. */
	now(): Micros;
	steady?(): Micros;
}

export const systemClock: Clock = { now: wallMicros, steady: monotonicMicros };

export function steadyOf(clock: Clock): Micros {
	return clock.steady?.() ?? clock.now();
}

/** Never goes backwards. Avoids `performance`, because loading it takes 1 ms in every command. */
export function monotonicMicros(): Micros {
	const [seconds, nanos] = process.hrtime();
	return seconds * microsPerSecond + Math.floor(nanos / 1_000);
}

let ahead: Micros = Date.now() * microsPerMs - monotonicMicros();

function wallMicros(): Micros {
	const steady = monotonicMicros();
	const wall = Date.now() * microsPerMs;
	const now = Math.min(Math.max(steady + ahead, wall), wall + microsPerMs - 1);
	ahead = now - steady;
	return now;
}

export function formatDateTime(at: Micros): WireDateTime {
	const day = Math.floor(at / microsPerDay);
	if (day !== lastDay.number) lastDay = { number: day, text: dayText(day) };
	const micros = at - day * microsPerDay;
	const seconds = Math.floor(micros / microsPerSecond);
	const minutes = Math.floor(seconds / 60);
	const time = `${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}:${twoDigits(seconds % 60)}`;
	return `${lastDay.text}T${time}.${String(micros % microsPerSecond).padStart(6, '0')}`;
}

/** A page of records has few different days. Without this cache, a sixth of the time to read a page goes to `Date`. */
let lastDay = { number: 0, text: '1970-01-01' };

function dayText(day: number): string {
	return new Date(day * msPerDay).toISOString().slice(0, -'T00:00:00.000Z'.length);
}

function twoDigits(count: number): string {
	return count < 10 ? `0${count}` : `${count}`;
}

export function daysIn(text: string): number | null {
	const [, count, unit] = /^(\d{1,5})(d|w)?$/.exec(text) ?? [];
	const days = Number(count) * (unit === 'w' ? 7 : 1);
	return days >= 1 ? days : null;
}

/** `YYYY-MM-DD`, which sorts as text. */
export type Day = string;

export function parseDateTime(text: string): Micros | null {
	const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?Z?$/.exec(text);
	const [, day = '', time = '', fraction = ''] = match ?? [];
	if (!isDay(day) || time > '23:59:59' || !/^\d\d:[0-5]\d:[0-5]\d$/.test(time)) return null;
	const at = Date.parse(`${day}T${time}Z`) * microsPerMs + Number(fraction.padEnd(6, '0'));
	return Math.min(at, lastMoment);
}

/** Adds the `Z` of UTC, because times of the API have no zone. */
export function withZone(time: string): string {
	return parseDateTime(time) === null ? time : `${time.replace(/Z$/, '')}Z`;
}

/** The largest `Micros` before the year 10000. It does not end in 999,999, because doubles near it are 32 apart. */
export const lastMoment: Micros = Date.parse('9999-12-31T23:59:59Z') * microsPerMs + 999_968;

export function dayOf(at: Micros, timeZone: string): Day {
	return localTime(at, timeZone).slice(0, 'YYYY-MM-DD'.length);
}

export function localTime(at: Micros, timeZone: string): string {
	const ms = Math.floor(at / microsPerMs);
	return new Date(ms + offsetAt(ms, timeZone)).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length);
}

export function offsetText(at: Micros, timeZone: string): string {
	const minutes = Math.round(offsetAt(Math.floor(at / microsPerMs), timeZone) / 60_000);
	if (minutes === 0) return 'UTC';
	const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
	return `UTC${minutes < 0 ? '-' : '+'}${hours}${rest === 0 ? '' : `:${twoDigits(rest)}`}`;
}

export interface LocalMoment {
	at: Micros;
	last: Micros;
	kind: 'once' | 'skipped' | 'repeated';
}

/** If clocks skip `local`, returns the moment of the skip. */
export function momentOf(local: string, timeZone: string): LocalMoment {
	const shown = Date.parse(`${local}Z`);
	const [early, late] = [shown - msPerDay, shown + msPerDay];
	const offsets = new Set([early, late].map((ms) => offsetAt(ms, timeZone)));
	const found = [...offsets]
		.map((offset) => shown - offset)
		.filter((ms) => ms + offsetAt(ms, timeZone) === shown);
	if (found.length === 0) {
		const at = (changeWithin(early, late, timeZone) ?? shown) * microsPerMs;
		return { at, last: at, kind: 'skipped' };
	}
	const [at, last] = [Math.min(...found) * microsPerMs, Math.max(...found) * microsPerMs];
	return { at, last, kind: at === last ? 'once' : 'repeated' };
}

function changeWithin(from: number, to: number, timeZone: string): number | null {
	const before = offsetAt(from, timeZone);
	if (offsetAt(to, timeZone) === before) return null;
	let early = Math.floor(from / msPerQuarterHour);
	let late = Math.floor(to / msPerQuarterHour);
	while (late - early > 1) {
		const middle = Math.floor((early + late) / 2);
		if (offsetAt(middle * msPerQuarterHour, timeZone) === before) early = middle;
		else late = middle;
	}
	return late * msPerQuarterHour;
}

export function offsetOf(at: Micros, timeZone: string): Micros {
	return offsetAt(Math.floor(at / microsPerMs), timeZone) * microsPerMs;
}

export function formatWireDate(day: Day): WireDate {
	const [year = '', month = '', date = ''] = day.split('-');
	return `${date}.${month}.${year}`;
}

/** `DD.MM.YYYY`. Day and month may lack their zero, as in Python's `%d.%m.%Y`. */
export function parseWireDate(text: string): Day | null {
	const [, date = '', month = '', year = ''] = /^(\d{1,2})\.(\d{1,2})\.(\d{4})$/.exec(text) ?? [];
	const day = `${year}-${month.padStart(2, '0')}-${date.padStart(2, '0')}`;
	return isDay(day) ? day : null;
}

/** Stops at 9999-12-31, because days after it do not sort as text. */
export function addDays(day: Day, count: number): Day {
	const at = Math.min(Date.parse(day) + count * msPerDay, lastMoment / microsPerMs);
	return new Date(at).toISOString().slice(0, 10);
}

export function daysBetween(from: Day, to: Day): number {
	return Math.round((Date.parse(to) - Date.parse(from)) / msPerDay);
}

/** False for offsets such as `+01:00`, which have no daylight-saving rules. */
export function isTimeZone(name: string): boolean {
	if (!/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(name)) return false;
	try {
		return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== '';
	} catch {
		return false;
	}
}

const msPerDay = 86_400_000;
const msPerQuarterHour = 900_000;
const maxCachedOffsets = 4096;

interface Zone {
	formatter: Intl.DateTimeFormat;
	/** Maps the number of quarter-hours since 1970 to the offset in ms. No offset changes within a quarter-hour. */
	offsets: Map<number, number>;
}

// Cached, because a formatter costs 50 µs, and a look-up 50 ns.
const zones = new Map<string, Zone>();

function offsetAt(ms: number, timeZone: string): number {
	if (timeZone === 'UTC') return 0;
	const zone = zoneOf(timeZone);
	const quarter = Math.floor(ms / msPerQuarterHour);
	const known = zone.offsets.get(quarter);
	if (known !== undefined) return known;
	const start = quarter * msPerQuarterHour;
	const shown = localMs(zone.formatter, start) - start;
	// `Date.UTC` turns years below 100 into 1900 to 1999, so ignore offsets over a day.
	const offset = Math.abs(shown) < msPerDay ? shown : 0;
	if (zone.offsets.size >= maxCachedOffsets) zone.offsets.clear();
	zone.offsets.set(quarter, offset);
	return offset;
}

function zoneOf(timeZone: string): Zone {
	const known = zones.get(timeZone);
	if (known) return known;
	const zone = { formatter: wallClock(timeZone), offsets: new Map<number, number>() };
	zones.set(timeZone, zone);
	return zone;
}

function wallClock(timeZone: string): Intl.DateTimeFormat {
	const number = 'numeric';
	return new Intl.DateTimeFormat('en-US', {
		timeZone,
		hourCycle: 'h23',
		year: number,
		month: number,
		day: number,
		hour: number,
		minute: number,
		second: number,
	});
}

function localMs(formatter: Intl.DateTimeFormat, ms: number): number {
	const parts = Object.fromEntries(
		formatter.formatToParts(ms).map(({ type, value }) => [type, Number(value)]),
	);
	const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
	return Date.UTC(year, month - 1, day, hour, minute, second);
}

function isDay(text: string): boolean {
	if (!/^\d{4}-\d\d-\d\d$/.test(text) || text < '0001') return false;
	const ms = Date.parse(text);
	// `Date.parse` may read 31 February as a day of March.
	return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

const minutesPerDay = 1_440;

export function momentOnDay(day: Day, minutes: number, timeZone: string): LocalMoment {
	const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
	return momentOf(`${day}T${twoDigits(hours)}:${twoDigits(rest)}:00`, timeZone);
}

export interface Window {
	from: number;
	to: number;
}

export function parseWindow(text: string): Window | null {
	const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? [];
	const [first, last] = [parseTime(from ?? ''), parseTime(to ?? '')];
	if (first === null || last === null || first === minutesPerDay) return null;
	const window = { from: first, to: last % minutesPerDay };
	return window.from === window.to && last !== minutesPerDay ? null : window;
}

export function parseTime(text: string): number | null {
	const [, hours, minutes] = /^(\d{1,2}):(\d\d)$/.exec(text) ?? [];
	const sum = Number(hours) * 60 + Number(minutes);
	return hours !== undefined && Number(minutes) < 60 && sum <= minutesPerDay ? sum : null;
}

export function isOpen({ from, to }: Window, timeZone: string, at: Micros): boolean {
	const now = minutesOf(at, timeZone);
	if (from === to) return true;
	return from < to ? now >= from && now < to : now >= from || now < to;
}

export function opening(window: Window, timeZone: string, at: Micros): Micros {
	if (isOpen(window, timeZone, at)) return at;
	const opens = momentsFrom(at, window.from, timeZone).filter((one) => isOpen(window, timeZone, one));
	return Math.min(...opens, at + daysAhead * microsPerDay, lastMoment);
}

export function closing(window: Window, timeZone: string, at: Micros): Micros {
	const isWhole = window.from === window.to;
	const closes = momentsFrom(at, window.to, timeZone).filter(
		(one) => isWhole || !isOpen(window, timeZone, one),
	);
	return Math.min(...closes, at + daysAhead * microsPerDay, lastMoment);
}

const daysAhead = 3;

function momentsFrom(at: Micros, minutes: number, timeZone: string): Micros[] {
	const today = dayOf(at, timeZone);
	const ms = Math.floor(at / microsPerMs);
	const change = changeWithin(ms, ms + 2 * msPerDay, timeZone);
	const moments = Array.from({ length: daysAhead + 1 }, (_, days) =>
		momentOnDay(addDays(today, days), minutes, timeZone),
	).flatMap(({ at: first, last }) => [first, last]);
	return [...moments, ...(change === null ? [] : [change * microsPerMs])].filter((one) => one > at);
}

function minutesOf(at: Micros, timeZone: string): number {
	const ms = Math.floor(at / microsPerMs);
	const local = new Date(ms + offsetAt(ms, timeZone));
	return local.getUTCHours() * 60 + local.getUTCMinutes();
}
