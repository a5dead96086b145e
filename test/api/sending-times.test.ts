import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
	closing,
	formatDateTime,
	isOpen,
	opening,
	parseWindow,
	type Window,
} from '../../src/api/datetime.js';
import { parseLocalTime } from '../../src/engine/rules/local-time.js';

const micros = (utc: string) => Date.parse(`${utc}Z`) * 1000;
const utcOf = (at: number) => formatDateTime(at).slice(0, 16);
const windowOf = (text: string): Window => parseWindow(text) ?? { from: 0, to: 0 };

describe('a sending window', () => {
	test.each<[text: string, window: Window | null]>([
		['09:00-18:00', { from: 540, to: 1080 }],
		['22:00-06:00', { from: 1320, to: 360 }],
		['00:00-24:00', { from: 0, to: 0 }],
		['18:00-24:00', { from: 1080, to: 0 }],
		...['9:00-18:00', '09:00', '09:00-09:00', '24:00-06:00', '09:60-10:00', '25:00-26:00', ''].map(
			(text): [string, null] => [text, null],
		),
	])('%j is parsed as %j', (text, window) => expect(parseWindow(text)).toEqual(window));

	test.each([
		['22:00-06:00', 'Europe/Oslo', '2026-11-20T12:00', '2026-11-20T21:00', '2026-11-21T05:00'],
		['22:00-06:00', 'Europe/Oslo', '2026-11-20T23:30', '2026-11-20T23:30', '2026-11-21T05:00'],
		['09:00-18:00', 'Pacific/Kiritimati', '2026-11-20T10:00', '2026-11-20T19:00', '2026-11-21T04:00'],
		['09:00-18:00', 'Etc/GMT+12', '2026-11-20T10:00', '2026-11-20T21:00', '2026-11-21T06:00'],
		['09:00-18:00', 'Europe/Oslo', '2028-02-28T18:00', '2028-02-29T08:00', '2028-02-29T17:00'],
		['09:00-18:00', 'Europe/Oslo', '2028-02-29T18:00', '2028-03-01T08:00', '2028-03-01T17:00'],
		['02:30-05:00', 'Europe/Oslo', '2026-03-29T00:00', '2026-03-29T01:00', '2026-03-29T03:00'],
		['01:00-02:30', 'Europe/Oslo', '2026-03-28T23:00', '2026-03-29T00:00', '2026-03-29T01:00'],
		['02:10-02:50', 'Europe/Oslo', '2026-03-29T00:00', '2026-03-30T00:10', '2026-03-30T00:50'],
		['02:00-03:00', 'Europe/Oslo', '2026-10-24T22:00', '2026-10-25T00:00', '2026-10-25T02:00'],
		['02:00-02:30', 'Europe/Oslo', '2026-10-25T00:40', '2026-10-25T01:00', '2026-10-25T01:30'],
		['02:30-04:00', 'Europe/Oslo', '2026-10-25T00:00', '2026-10-25T00:30', '2026-10-25T01:00'],
		['02:00-03:00', 'Australia/Lord_Howe', '2026-10-03T12:00', '2026-10-03T15:30', '2026-10-03T16:00'],
		['00:30-02:00', 'Africa/Cairo', '2026-04-23T20:00', '2026-04-23T22:00', '2026-04-23T23:00'],
		['09:00-18:00', 'Pacific/Apia', '2011-12-30T05:00', '2011-12-30T19:00', '2011-12-31T04:00'],
		['00:00-24:00', 'Europe/Oslo', '2026-11-20T12:00', '2026-11-20T12:00', '2026-11-20T23:00'],
	])('with hours %s in zone %s and current time %s opens at %s and closes at %s', (text, zone, from, opens, closes) => {
		const window = windowOf(text);
		const at = opening(window, zone, micros(from));
		expect([utcOf(at), utcOf(closing(window, zone, at))]).toEqual([opens, closes]);
	});
});

const clocks = new Map<string, Intl.DateTimeFormat>();

function wallMinutes(zone: string, at: number): number {
	const options = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
	const clock = clocks.get(zone) ?? new Intl.DateTimeFormat('en-GB', { timeZone: zone, ...options });
	clocks.set(zone, clock);
	const [hours = '', minutes = ''] = clock.format(at / 1000).split(':');
	return Number(hours) * 60 + Number(minutes);
}

const changes = [
	['Europe/Oslo', '2026-03-28T12:00'],
	['Europe/Oslo', '2026-10-24T12:00'],
	['Australia/Lord_Howe', '2026-04-04T04:00'],
	['Australia/Lord_Howe', '2026-10-03T04:00'],
	['Africa/Cairo', '2026-04-23T10:00'],
	['Africa/Cairo', '2026-10-29T10:00'],
	['America/St_Johns', '2026-10-31T18:00'],
	['Pacific/Apia', '2011-12-29T22:00'],
	['Pacific/Kiritimati', '2026-06-01T00:00'],
	['Etc/GMT+12', '2028-02-28T18:00'],
	['Asia/Kathmandu', '2028-02-28T18:00'],
] as const;

const minute = 60_000_000;

describe('a sending window near a clock change', () => {
	test('is open if the local time is within its hours, and closed otherwise', () => {
		const minutes = fc.integer({ min: 0, max: 1_439 });
		const hours = fc.tuple(minutes, minutes).filter(([from, to]) => from !== to);
		const starts = fc.integer({ min: 0, max: 2_160 });
		fc.assert(
			fc.property(fc.constantFrom(...changes), hours, starts, ([zone, near], [from, to], later) => {
				const window = { from, to };
				const begin = micros(near) + later * minute;
				const shows = (at: number) => {
					const now = wallMinutes(zone, at);
					return from < to ? now >= from && now < to : now >= from || now < to;
				};
				const first = (at: number, wanted: boolean) => {
					let found = at;
					while (shows(found) !== wanted) found += minute;
					return found;
				};
				expect(isOpen(window, zone, begin)).toBe(shows(begin));
				const opens = opening(window, zone, begin);
				expect(utcOf(opens)).toBe(utcOf(first(begin, true)));
				expect(utcOf(closing(window, zone, opens))).toBe(utcOf(first(opens, false)));
			}),
			{ numRuns: 300 },
		);
	});
});

describe('the parser of sending times', () => {
	const read = (text: string, timeZone: string, now = '2026-11-01T10:00') => {
		const found = parseLocalTime(text, { now: micros(now), timeZone });
		return found.kind === 'invalid' ? found.message : [utcOf(found.at), found.kind];
	};

	test.each([
		['2026-12-01 09:00', 'Europe/Oslo', ['2026-12-01T08:00', 'once']],
		['2026-12-01T9:00', 'Europe/Oslo', ['2026-12-01T08:00', 'once']],
		['01.12.2026 09:00', 'Europe/Oslo', ['2026-12-01T08:00', 'once']],
		['2026-12-01 09:00:00', 'Europe/Oslo', ['2026-12-01T08:00', 'once']],
		['2026-12-01T09:00Z', 'Europe/Oslo', ['2026-12-01T09:00', 'once']],
		['2026-12-01T09:00-05:00', 'Europe/Oslo', ['2026-12-01T14:00', 'once']],
		['tomorrow 9:00', 'Pacific/Kiritimati', ['2026-11-02T19:00', 'once']],
		['today 23:59', 'Etc/GMT+12', ['2026-11-01T11:59', 'once']],
		['2028-02-29 09:00', 'Europe/Oslo', ['2028-02-29T08:00', 'once']],
		['2026-12-01 24:00', 'Europe/Oslo', ['2026-12-01T23:00', 'once']],
		['2027-03-28 02:30', 'Europe/Oslo', ['2027-03-28T01:00', 'skipped']],
		['2027-10-31 02:30', 'Europe/Oslo', ['2027-10-31T00:30', 'repeated']],
		['2027-04-30 00:30', 'Africa/Cairo', ['2027-04-29T22:00', 'skipped']],
		[
			'2027-02-29 09:00',
			'Europe/Oslo',
			'"2027-02-29 09:00" is not a time, such as 2026-12-01 09:00 or tomorrow 9:00.',
		],
		[
			'2026-12-01 25:00',
			'Europe/Oslo',
			'"2026-12-01 25:00" is not a time, such as 2026-12-01 09:00 or tomorrow 9:00.',
		],
		['2026-12-01', 'Europe/Oslo', '"2026-12-01" needs a time of day, such as 2026-12-01 09:00.'],
	])('returns a time or an error for %j in the zone %s', (text, zone, found) =>
		expect(read(text, zone)).toEqual(found));
});
