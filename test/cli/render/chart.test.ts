import { describe, expect, it } from 'vitest';
import { barChart, sparkChart } from '../../../src/cli/render/report.js';

const days = [
	{ date: '2026-11-15', sent: 0, opened: 0 },
	{ date: '2026-11-16', sent: 1, opened: 0 },
	{ date: '2026-11-17', sent: 1000, opened: 333 },
];

describe('the bar chart', () => {
	it('draws sent and opened mail on one axis with round numbers', () => {
		expect(barChart(days, { width: 44, unicode: true })).toEqual([
			'           ██ sent  ░░ opened',
			'2026-11-15                                0',
			'                                          0',
			'2026-11-16 ▏                              1',
			'                                          0',
			'2026-11-17 ██████████████████████████ 1,000',
			'           ░░░░░░░░░                    333',
			'           ┬────────────┬────────────┬',
			'           0           500         1,000',
		]);
	});

	it('fits any terminal width', () => {
		for (const width of [40, 80, 132]) {
			for (const line of barChart(days, { width, unicode: true }))
				expect(line.length).toBeLessThanOrEqual(width);
		}
	});

	it.each([3, 11, 21, 1_137, 5_001, 61_000])('draws the only bar (%i) across most of the axis', (sent) => {
		const lines = barChart([{ date: 'a', sent, opened: 0 }], { width: 80, unicode: true });
		const filled = lines[1]?.match(/█/g)?.length ?? 0;
		expect(filled / (lines.at(-2) ?? '').trim().length).toBeGreaterThanOrEqual(0.74);
	});

	it('uses ASCII on a limited terminal', () => {
		expect(barChart(days, { width: 60, unicode: false }).join('')).toMatch(/^[\x20-\x7e]*$/);
	});

	it('draws a bar even for a day with a single message if another day has a million', () => {
		const lines = barChart(
			[
				{ date: 'a', sent: 1, opened: 1 },
				{ date: 'b', sent: 1e6, opened: 0 },
			],
			{ width: 80, unicode: true },
		);
		expect(lines[1]).toMatch(/^a ▏/);
		expect(lines[2]).toMatch(/^ {2}░/);
	});

	it('draws a row for each week if there are too many days', () => {
		const many = Array.from({ length: 40 }, (_, i) => ({ date: `day ${i}`, sent: 1, opened: 0 }));
		const lines = barChart(many, { width: 60, unicode: true });
		expect(lines[0]).toContain('by week');
		expect(lines.filter((line) => line.startsWith('day'))).toHaveLength(6);
	});
});

describe('colours of the bar chart', () => {
	const colours = { sent: (text: string) => `<${text}>`, opened: (text: string) => `[${text}]` };

	it('apply only to the bars and the legend', () => {
		const bars = barChart(days, { width: 44, unicode: true, colours });
		expect(bars[0]).toBe('           <██> sent  [░░] opened');
		expect(bars[6]).toBe('           [░░░░░░░░░]                    333');
	});
});

describe('the sparkline', () => {
	it('prints one line per series, with its highest daily value', () => {
		expect(sparkChart(days, { width: 80, unicode: true })).toEqual([
			'sent   ▁▁█ max 1,000',
			'opened ▁▁▃ max 333',
		]);
	});
});
