/** Times on the clocks of a time zone: the moment of a local time, and the hours of the day in which mail may leave. Pure. */
import { addDays, type Day, dayOf, type Micros, microsPerDay, microsPerMs, offsetAt } from '../datetime.js';

const msPerMinute = 60_000;
const minutesPerDay = 1_440;

/** The moment of a local time. `skipped`: clocks jump over it; `repeated`: clocks show it twice. */
export interface LocalMoment {
	at: Micros;
	kind: 'once' | 'skipped' | 'repeated';
}

/**
 * The moment at which clocks of the zone show that many minutes after midnight of the day. One that is skipped is read by
 * the clock before the jump, so it comes as much later as the jump is wide; of a repeated one the first counts.
 */
export function momentOf(day: Day, minutes: number, timeZone: string): LocalMoment {
	const local = Date.parse(day) + minutes * msPerMinute;
	const offsets = [-1, 1].map((side) => offsetAt(local + (side * microsPerDay) / microsPerMs, timeZone));
	const [before = 0] = offsets;
	const found = [...new Set(offsets)]
		.map((offset) => local - offset)
		.filter((ms) => ms + offsetAt(ms, timeZone) === local);
	if (found.length === 0) return { at: (local - before) * microsPerMs, kind: 'skipped' };
	return { at: Math.min(...found) * microsPerMs, kind: found.length > 1 ? 'repeated' : 'once' };
}

/** Minutes after midnight; `to` before `from`: over midnight. `to` itself is outside. */
export interface Window {
	from: number;
	to: number;
}

/** Reads `HH:MM-HH:MM`; null for anything else, and for a window without a length. */
export function parseWindow(text: string): Window | null {
	const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? [];
	const [first, last] = [parseTime(from ?? ''), parseTime(to ?? '')];
	// 24:00 is the end of a day, and no beginning.
	if (first === null || last === null || first === minutesPerDay) return null;
	const window = { from: first, to: last % minutesPerDay };
	return window.from === window.to && last !== minutesPerDay ? null : window;
}

/** `09:30` as minutes; `24:00` too; null for no time. */
export function parseTime(text: string): number | null {
	const [, hours, minutes] = /^(\d{1,2}):(\d\d)$/.exec(text) ?? [];
	const sum = Number(hours) * 60 + Number(minutes);
	return hours !== undefined && Number(minutes) < 60 && sum <= minutesPerDay ? sum : null;
}

/** Whether the clocks of the zone show a time within the window. */
export function isOpen({ from, to }: Window, timeZone: string, at: Micros): boolean {
	const now = minutesOf(at, timeZone);
	if (from === to) return true;
	return from < to ? now >= from && now < to : now >= from || now < to;
}

/** The first moment from `at` on that is within the window; a jump of the clocks may take the window of a day away. */
export function opening(window: Window, timeZone: string, at: Micros): Micros {
	if (isOpen(window, timeZone, at)) return at;
	const today = dayOf(at, timeZone);
	for (let days = 0; days < 3; days += 1) {
		const opens = momentOf(addDays(today, days), window.from, timeZone).at;
		if (opens > at && isOpen(window, timeZone, opens)) return opens;
	}
	// Not met by any zone: the next day at the same time.
	return at + microsPerDay;
}

/** The first moment after `at` that is outside the window, or that a window over the whole day ends. */
export function closing(window: Window, timeZone: string, at: Micros): Micros {
	const today = dayOf(at, timeZone);
	for (let days = 0; days < 3; days += 1) {
		const closes = momentOf(addDays(today, days), window.to, timeZone).at;
		if (closes > at) return closes;
	}
	return at + microsPerDay;
}

function minutesOf(at: Micros, timeZone: string): number {
	const ms = Math.floor(at / microsPerMs);
	const local = ms + offsetAt(ms, timeZone);
	return Math.floor((((local / msPerMinute) % minutesPerDay) + minutesPerDay) % minutesPerDay);
}
