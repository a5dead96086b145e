import { describe, expect, it } from 'vitest';
import type { CampaignLink, ReportDetails } from '../../../src/api/reports.js';
import { type ReportPage, renderReport } from '../../../src/cli/render/report.js';

const total = {
	...{ sent: 4, opened: 2, opened_percent: '50', redirected_percent: 0 },
	...{ softbounced_percent: 0, unsubscribed_percent: 0, hardbounced_percent: 0 },
};
const page: ReportPage = {
	report: { total, data: [{ date: '15.11.2026', sent: 4, opened: 2 }] },
	...{ chart: 'none', title: null, head: null, events: [], human: false, isOfDays: false, zone: null },
	...{ details: null, parted: null },
};
const options = { width: 80, unicode: true };
const counts = {
	...{ created: 4, attempted: 4, sent: 4, delivered: 4, opened: 1, clicked: 1, complained: 0 },
	...{ machine_opened: 0, machine_clicked: 0, unsubscribed: 0, softbounced: 0, hardbounced: 0 },
};
const details = {
	...{ time_zone: 'UTC', total: counts, days: [], hours: [], week: [] },
	bounces: { domains: [], other_domains: 0, codes: [] },
} as unknown as ReportDetails;

describe('a report on a terminal', () => {
	it.each(['bars', 'spark'] as const)('prints "no events" instead of the chart %s', (chart) => {
		const data = [{ date: '15.11.2026', sent: 0, opened: 0 }];
		const lines = renderReport({ ...page, report: { total, data }, chart }, options);
		expect(lines.slice(-2)).toEqual(['', 'no events']);
	});

	it('escapes the campaign’s name, and prints the time zone after the date', () => {
		const lines = renderReport({ ...page, title: 'Campaign a\x1b[2J', zone: 'Europe/Oslo' }, options);
		expect(lines.slice(0, 2)).toEqual(['Campaign a\\x1b[2J', '2026-11-15 (Europe/Oslo)']);
		expect(renderReport(page, options)[0]).toBe('2026-11-15');
	});

	it.each([
		[1, 0, true],
		[0, 1, true],
		[0, 0, false],
	])('prints a note about bots only if bots opened or clicked: %s opens, %s clicks, note %s', (machine_opened, machine_clicked, isSaid) => {
		const of = { ...details, total: { ...counts, machine_opened, machine_clicked } };
		const lines = renderReport({ ...page, zone: 'UTC', details: of }, options);
		expect(lines.some((line) => line.startsWith('opens and clicks include'))).toBe(isSaid);
	});

	it.each([
		[
			40,
			[
				'PEOPLE CLICKS    SHARE BOTS LINK',
				'     1      2 100.00 %    0',
				'  https://www.example.com/a…vember/first',
			],
		],
		[
			80,
			[
				'PEOPLE CLICKS    SHARE BOTS LINK',
				'     1      2 100.00 %    0 https://www.example.com/articles/2026/november/first',
			],
		],
	])('fits the table of links into %i columns, and shortens no cell but the link', (width, lines) => {
		const link = {
			...{ url: 'https://www.example.com/articles/2026/november/first', position: 1 },
			...{ people: 1, clicks: 2, share: 100, machine_people: 0, machine_clicks: 0 },
		} as CampaignLink;
		const parted = { details, links: [link], replies: [], isOfDays: false };
		const shown = renderReport({ ...page, parted }, { ...options, width });
		expect(shown.slice(shown.indexOf('links') + 1)).toEqual(lines);
	});
});
