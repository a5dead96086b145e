import {
	addDays,
	clockChange,
	type Day,
	dayOf,
	type LocalMoment,
	lastMoment,
	type Micros,
	microsPerDay,
	microsPerMs,
	momentOf,
	offsetAt,
} from '../datetime.js';

const msPerMinute = 60_000;
const minutesPerDay = 1_440;

export function momentOnDay(day: Day, minutes: number, timeZone: string): LocalMoment {
	const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
	const twoDigits = (count: number) => String(count).padStart(2, '0');
	return momentOf(`${day}T${twoDigits(hours)}:${twoDigits(rest)}:00`, timeZone);
}

export interface Window {
	from: number;
	to: number;
}

export function parseWindow(text: string): Window | null {
	const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? [];
	const [first, last] = [parseTime(from ?? ''), parseTime(to ?? '')];
	// 24:00 may end a window but not start one.
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
	const change = clockChange(at, at + 2 * microsPerDay, timeZone);
	const moments = Array.from({ length: daysAhead + 1 }, (_, days) =>
		momentOnDay(addDays(today, days), minutes, timeZone),
	).flatMap(({ at: first, last }) => [first, last]);
	return [...moments, ...(change === null ? [] : [change])].filter((one) => one > at);
}

function minutesOf(at: Micros, timeZone: string): number {
	const ms = Math.floor(at / microsPerMs);
	const local = ms + offsetAt(ms, timeZone);
	return Math.floor((((local / msPerMinute) % minutesPerDay) + minutesPerDay) % minutesPerDay);
}
