import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
	addDays,
	dayOf,
	daysBetween,
	formatDateTime,
	formatWireDate,
	isTimeZone,
	localTime,
	momentOf,
	offsetText,
	parseDateTime,
	parseWireDate,
} from '../../src/api/datetime.js';

const micros = (iso: string) => Date.parse(iso) * 1000;

describe('a timestamp', () => {
	test('keeps its microseconds when it is formatted and parsed', () => {
		fc.assert(
			fc.property(fc.integer({ min: 0, max: 9_000_000_000_000_000 }), (at) => {
				expect(parseDateTime(formatDateTime(at))).toBe(at);
			}),
		);
	});

	test('is formatted like Date.toISOString, even if the previous call formatted another day', () => {
		fc.assert(
			fc.property(fc.integer({ min: -2_000_000_000_000, max: 9_000_000_000_000 }), (ms) => {
				expect(formatDateTime(ms * 1000 + 7)).toBe(`${new Date(ms).toISOString().slice(0, -1)}007`);
			}),
		);
	});

	test('at the end of the year 9999 is rounded down, so that it can be formatted', () => {
		const last = formatDateTime(parseDateTime('9999-12-31T23:59:59.999999') ?? 0);
		expect(last).toMatch(/^9999-12-31T23:59:59\.9999\d\d$/);
		expect(formatDateTime(parseDateTime(last) ?? 0)).toBe(last);
	});

	test.each([
		'',
		'2026-02-30T00:00:00',
		'2026-01-01',
		'2026-01-01T24:00:00',
		'2026-01-01T00:60:00',
		'2026-01-01T00:00:00+01:00',
	])('cannot be written as %j', (text) => expect(parseDateTime(text)).toBeNull());

	test.each([
		['2026-03-29T00:59:59Z', 'Europe/Oslo', '2026-03-29'],
		['2026-03-28T22:59:59.999Z', 'Europe/Oslo', '2026-03-28'],
		['2026-03-28T23:00:00Z', 'Europe/Oslo', '2026-03-29'],
		['2026-03-29T21:59:59Z', 'Europe/Oslo', '2026-03-29'],
		['2026-03-29T22:00:00Z', 'Europe/Oslo', '2026-03-30'],
		['2026-01-01T10:14:59Z', 'Pacific/Kiritimati', '2026-01-02'],
		['2026-01-01T18:14:59Z', 'Asia/Kathmandu', '2026-01-01'],
		['2026-01-01T18:15:00Z', 'Asia/Kathmandu', '2026-01-02'],
		['2026-01-01T00:00:00Z', 'America/New_York', '2025-12-31'],
		['2026-01-01T00:00:00Z', 'UTC', '2026-01-01'],
	])('%s falls, in %s, on the day %s', (iso, zone, day) => expect(dayOf(micros(iso), zone)).toBe(day));

	test('falls, in five time zones, on the day that Intl.DateTimeFormat returns', () => {
		const zones = [
			'Europe/Oslo',
			'Asia/Kolkata',
			'Australia/Lord_Howe',
			'America/St_Johns',
			'Pacific/Chatham',
		];
		fc.assert(
			fc.property(fc.constantFrom(...zones), fc.integer({ min: 0, max: 4_000_000_000 }), (zone, second) => {
				const runtime = new Intl.DateTimeFormat('sv-SE', { timeZone: zone }).format(second * 1000);
				expect(dayOf(second * 1_000_000, zone)).toBe(runtime);
			}),
		);
	});
});

describe('a day', () => {
	test.each([
		['21.11.2026', '2026-11-21'],
		['1.2.2026', '2026-02-01'],
		['29.02.2024', '2024-02-29'],
		['29.02.2026', null],
		['2026-11-21', null],
		['00.01.2026', null],
		['01.13.2026', null],
		['01.01.26', null],
	])('%s in a request is parsed as %s', (text, day) => expect(parseWireDate(text)).toBe(day));

	test('can be formatted, shifted by days, and subtracted from another day', () => {
		expect(formatWireDate('2026-01-09')).toBe('09.01.2026');
		expect(addDays('2026-03-01', -1)).toBe('2026-02-28');
		expect(addDays('2024-12-31', 1)).toBe('2025-01-01');
		expect(daysBetween('2026-03-28', '2026-03-30')).toBe(2);
	});
});

test.each([
	['Europe/Oslo', true],
	['UTC', true],
	['+01:00', false],
	['Mars/Olympus', false],
	['', false],
])('isTimeZone(%j) is %s', (name, expected) => expect(isTimeZone(name)).toBe(expected));

describe('a local time', () => {
	test.each([
		['2026-11-01T00:00:00', 'UTC', '2026-11-01T00:00:00'],
		['2026-11-01T00:00:00', 'Europe/Oslo', '2026-10-31T23:00:00'],
		['2026-11-01T00:00:00', 'Asia/Kathmandu', '2026-10-31T18:15:00'],
		['2026-03-29T00:00:00', 'Europe/Oslo', '2026-03-28T23:00:00'],
		['2026-03-30T00:00:00', 'Europe/Oslo', '2026-03-29T22:00:00'],
		['2026-10-25T00:00:00', 'Europe/Oslo', '2026-10-24T22:00:00'],
		['2026-10-25T02:30:00', 'Europe/Oslo', '2026-10-25T00:30:00'],
		['2026-03-29T02:30:00', 'Europe/Oslo', '2026-03-29T01:00:00'],
		['2026-04-24T00:00:00', 'Africa/Cairo', '2026-04-23T22:00:00'],
		['2018-11-04T00:00:00', 'America/Sao_Paulo', '2018-11-04T03:00:00'],
		['2011-12-30T00:00:00', 'Pacific/Apia', '2011-12-30T10:00:00'],
	])('%s, in %s, is %s in UTC', (local, zone, utc) => {
		expect(formatDateTime(momentOf(local, zone).at).slice(0, 19)).toBe(utc);
	});

	test.each([
		['2026-01-01T12:00:00', 'Europe/Oslo', '2026-01-01T13:00:00', 'UTC+1'],
		['2026-07-01T12:00:00', 'Europe/Oslo', '2026-07-01T14:00:00', 'UTC+2'],
		['2026-01-01T12:00:00', 'America/St_Johns', '2026-01-01T08:30:00', 'UTC-3:30'],
		['2026-01-01T12:00:00', 'UTC', '2026-01-01T12:00:00', 'UTC'],
		['0001-01-01T00:00:00', 'America/New_York', '0001-01-01T00:00:00', 'UTC'],
	])('for %s UTC in the zone %s is %s, with the offset %s', (utc, zone, local, offset) => {
		const at = parseDateTime(utc) ?? 0;
		expect([localTime(at, zone), offsetText(at, zone)]).toEqual([local, offset]);
	});

	test('is unchanged when it is parsed and formatted again', () => {
		const zones = fc.constantFrom('Europe/Oslo', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe');
		const seconds = fc.integer({ min: 0, max: 4_000_000_000 });
		fc.assert(
			fc.property(zones, seconds, (zone, second) => {
				const local = localTime(second * 1_000_000, zone);
				expect(localTime(momentOf(local, zone).at, zone)).toBe(local);
			}),
		);
	});
});
