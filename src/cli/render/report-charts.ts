import { BarChart, HeatmapChart, LineChart } from 'echarts/charts';
import { GridComponent, LegendComponent, VisualMapComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { escapeHtml } from '../../api/quote.js';
import type { ListGrowth, ReportDetails } from '../../api/reports.js';
import { clean } from './clean.js';
import { type CampaignHead, factsOf, outcomesOf, rangeOf } from './report-model.js';
import type { SavedReport } from './saved-report.js';
import { counted, numberText } from './units.js';
import { shorten } from './width.js';

use([BarChart, HeatmapChart, LineChart, GridComponent, LegendComponent, VisualMapComponent, SVGRenderer]);

const light = {
	...{ ink: '#1b1f24', soft: '#57606a', line: '#d0d7de', paper: '#fff' },
	...{ sent: '#0550ae', sentBars: '#8fb0db', opened: '#b35900', clicked: '#116329' },
};
const dark: typeof light = {
	...{ ink: '#e6edf3', soft: '#9da7b1', line: '#3d444d', paper: '#0d1117' },
	...{ sent: '#6cb6ff', sentBars: '#3a638c', opened: '#f0a35e', clicked: '#6bc46d' },
};
const onPaper = { ...light, ink: '#000', soft: '#444', line: '#bbb' };

export const colours = [
	`:root{${properties(light)}}`,
	`@media (prefers-color-scheme:dark){:root{${properties(dark)}}}`,
	`@media print{:root{${properties(onPaper)}}}`,
].join('\n');

function properties(values: Readonly<Record<string, string>>): string {
	return Object.entries(values)
		.map(([name, value]) => `--${name}:${value}`)
		.join(';');
}

const size = { width: 760, height: 260 };

/** Width of a second drawing for phones, where the words of the wide drawing would be too small. */
export const narrow = 340;

export function chartOf(saved: SavedReport, width = size.width) {
	if (saved.chart === 'heat') {
		const svg = weekChart(saved.detailed?.details.week ?? [], width);
		return { title: 'Opens by weekday and hour', label: 'opens by weekday and hour', svg };
	}
	const svg = daysPicture(saved, saved.chart === 'line' ? 'line' : 'bar', width);
	return { title: 'By day', label: 'messages sent, opened and clicked, by day', svg };
}

export function svgOf(saved: SavedReport): string {
	const { width } = size;
	const facts = saved.head === null ? [] : factLines(saved.head);
	const headHeight = 44 + 16 * facts.length;
	const height = size.height + headHeight;
	const drawn = chartOf(saved);
	const hours = saved.chart === 'heat' ? `: ${drawn.label}` : '';
	const title = escapeHtml(clean(saved.title + hours));
	return withoutProperties(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<style>${darkOnly()}</style>
<rect width="${width}" height="${height}" fill="var(--paper)"/>
<text x="16" y="21" font-family="sans-serif" font-size="17" fill="var(--ink)">${title}</text>
${[...facts, clean(scopeOf(saved))]
	.map(
		(line, at) =>
			`<text x="16" y="${38 + 16 * at}" font-family="sans-serif" font-size="12" fill="var(--soft)">${escapeHtml(line)}</text>`,
	)
	.join('\n')}
<g transform="translate(0 ${headHeight})">${drawn.svg}</g>
</svg>
`);
}

function factLines(head: CampaignHead): string[] {
	const [subject, ...others] = factsOf(head).map(([label, text]) => `${label}: ${text}`);
	const sum = outcomesOf(head).map(([label, count]) => `${numberText(count)} ${label}`);
	return [
		subject ?? '',
		others.join(', '),
		`${counted(head.recipients.total, 'recipient')}: ${sum.join(', ')}`,
	].map((line) => shorten(line, 110));
}

function scopeOf({ chart, days, detailed }: SavedReport): string {
	const range = rangeOf(days) + (detailed === null ? '' : ` (${detailed.details.time_zone})`);
	if (chart !== 'heat') return `${range}: ${sumsOf(days)}`;
	const top = mostOf(detailed?.details.week ?? []);
	return `${range}${top === 0 ? '' : `; darkest: ${counted(top, 'open')} in one hour of the week`}`;
}

function sumsOf(days: SavedReport['days']): string {
	const told = (['sent', 'opened', 'clicked'] as const).filter((name) => days.some((day) => name in day));
	return told
		.map((name) => `${numberText(days.reduce((sum, day) => sum + (day[name] ?? 0), 0))} ${name}`)
		.join(', ');
}

/** Inlines custom properties, because converters to PNG and PDF do not support them. */
function withoutProperties(svg: string): string {
	return Object.entries(light).reduce(
		(text, [name, value]) => text.replaceAll(`"var(--${name})"`, `"${value}"`),
		svg,
	);
}

function darkOnly(): string {
	const rules = (Object.keys(light) as (keyof typeof light)[]).flatMap((name) =>
		['fill', 'stroke'].map((what) => `[${what}="${light[name]}"]{${what}:${dark[name]}}`),
	);
	return `@media screen and (prefers-color-scheme:dark){${rules.join('')}}`;
}

function daysPicture({ days }: SavedReport, sent: Course['type'], width: number): string {
	const labels = days.map(({ date }) => date);
	const hasClicks = days.some(({ clicked }) => clicked !== undefined);
	const clicks: Course = { name: 'clicked', type: 'line', values: days.map(({ clicked = 0 }) => clicked) };
	const series: Course[] = [
		{
			name: 'sent',
			colour: sent === 'bar' ? 'sentBars' : 'sent',
			type: sent,
			values: days.map(({ sent }) => sent),
		},
		{ name: 'opened', type: 'line', values: days.map(({ opened }) => opened) },
		...(hasClicks ? [clicks] : []),
	];
	return courses(labels, series, { width });
}

/** Omits sent messages: most are sent in one hour, and their peak would flatten the curves. */
export function hoursChart(hours: ReportDetails['hours'], width = size.width): string {
	return courses(
		hours.map(({ date }) => date.replace('T', ' ')),
		[
			{ name: 'opened', type: 'line', values: hours.map(({ opened }) => opened) },
			{ name: 'clicked', type: 'line', values: hours.map(({ clicked }) => clicked) },
		],
		{ width },
	);
}

const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

export function weekChart(week: ReportDetails['week'], width = size.width): string {
	const top = Math.max(1, mostOf(week));
	return drawn(
		{ ...size, width },
		{
			grid: { left: 44, right: 12, top: 12, bottom: 28 },
			xAxis: { ...axis, type: 'category', data: Array.from({ length: 24 }, (_, hour) => String(hour)) },
			yAxis: { ...axis, type: 'category', data: weekdays, inverse: true },
			series: [
				{
					type: 'heatmap',
					coordinateSystem: 'cartesian2d',
					emphasis: { disabled: true },
					data: week.map(({ weekday, hour, opened }) => ({
						value: [hour, weekday - 1, opened],
						itemStyle: { color: 'var(--opened)', opacity: opened / top },
					})),
				},
			],
			visualMap: { show: false, min: 0, max: top, dimension: 2, inRange: {} },
		},
	);
}

function mostOf(week: ReportDetails['week']): number {
	return week.reduce((max, { opened }) => Math.max(max, opened), 0);
}

export function growthChart({ days }: ListGrowth, width = size.width): string {
	const left = days.map(({ unsubscribed, bounced, left }) => unsubscribed + bounced + left);
	return courses(
		days.map(({ date }) => date),
		[
			{ name: 'added', colour: 'clicked', type: 'bar', values: days.map(({ added }) => added) },
			{ name: 'left', colour: 'opened', type: 'bar', values: left },
		],
		{ width, height: 160 },
	);
}

interface Course {
	name: string;
	colour?: keyof typeof light;
	type: 'bar' | 'line';
	values: readonly number[];
}

function courses(
	labels: readonly string[],
	series: readonly Course[],
	{ width, height = size.height }: { width: number; height?: number },
): string {
	return drawn(
		{ width, height },
		{
			grid: { left: 64, right: width === narrow ? 28 : 48, top: 36, bottom: 28 },
			legend: {
				top: 0,
				left: 56,
				itemGap: 18,
				icon: 'roundRect',
				textStyle: { color: 'var(--soft)' },
				selectedMode: false,
			},
			xAxis: { ...axis, type: 'category', data: [...labels] },
			yAxis: { ...axis, type: 'value', minInterval: 1 },
			series: series.map(({ name, colour = name, type, values }) => ({
				name,
				type,
				data: [...values],
				barMaxWidth: 36,
				showSymbol: labels.length < 2,
				itemStyle: { color: `var(--${colour})` },
				lineStyle: { color: `var(--${colour})`, width: 2 },
				emphasis: { disabled: true },
			})),
		},
	);
}

const axis = {
	axisLabel: { color: 'var(--soft)' },
	axisLine: { lineStyle: { color: 'var(--line)' } },
	axisTick: { lineStyle: { color: 'var(--line)' } },
	splitLine: { lineStyle: { color: 'var(--line)' } },
};

function drawn(size: { width: number; height: number }, option: object): string {
	const chart = init(null, null, { renderer: 'svg', ssr: true, ...size });
	try {
		chart.setOption({ animation: false, ...option });
		return withoutStyles(chart.renderToSVGString({ useViewBox: true }));
	} finally {
		// The chart's timer would keep the process alive.
		chart.dispose();
	}
}

/** Turns styles into attributes, because the page's security policy blocks styles. Drops hover styles. */
function withoutStyles(svg: string): string {
	return svg
		.replace(/<style ><!\[CDATA\[[^<]*<\/style>/g, '')
		.replace(/ style="([^"]*)"/g, (_, style: string) =>
			style
				.split(';')
				.filter((rule) => rule !== '')
				.map((rule) => ` ${rule.replace(':', '="')}"`)
				.join(''),
		);
}
