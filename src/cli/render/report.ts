import { parseWireDate } from '../../api/datetime.js';
import { type EventType, hasDays, type Report } from '../../api/records.js';
import type { ReportDetails } from '../../api/reports.js';
import { clean } from './clean.js';
import {
	type CampaignHead,
	type DetailedReport,
	detailedTotals,
	factsOf,
	numberColumns,
	outcomesOf,
	type ReportTable,
	rangeOf,
	recipientsTitle,
	type TotalLine,
	tablesOf,
	totalsOf,
} from './report-model.js';
import { numberText } from './units.js';
import { pad, shorten, widthOf, wrap } from './width.js';

export interface ReportPage {
	report: Report;
	chart: 'bars' | 'spark' | 'none';
	title: string | null;
	head: CampaignHead | null;
	events: readonly EventType[];
	human: boolean;
	isOfDays: boolean;
	zone: string | null;
	details: ReportDetails | null;
	parted: DetailedReport | null;
}

export function renderReport(page: ReportPage, options: ChartOptions): string[] {
	const { report, chart, events, human, zone, details, parted } = page;
	const { total, data } = report;
	const { width } = options;
	// The days of `parted` leave out bots, as its totals do. `data` includes bots, except with `--human`.
	const days: readonly ChartDay[] =
		parted?.details.days ??
		data.map(({ date, sent, opened }) => ({
			...{ date: dayText(date), sent: Number(sent), opened: Number(opened) },
		}));
	const lines = headLines(page, days, width);
	const all = details?.total ?? null;
	const totals = parted === null ? totalsOf(total, { events, all, human }) : detailedTotals(parted.details);
	lines.push(
		...(totals.length === 0
			? [`  reports have no figures for ${events.join(', ')}`]
			: totalLines(totals, parted !== null, width)),
	);
	const counts = parted?.details.total ?? all;
	const sent = counts?.sent ?? Number(total.sent);
	if (sent > 0 && totals.some(({ share }) => share !== null)) {
		const ofSent = `of ${numberText(sent)} sent`;
		const bases =
			counts === null
				? `shares are ${ofSent}`
				: `deliveries and bounces: % of ${numberText(counts.attempted)} attempted; others: % ${ofSent}`;
		lines.push('', ...wrap(bases, width));
	}
	if (parted !== null) {
		for (const table of tablesOf(parted)) lines.push(...tableLines(table, width));
		lines.push(...hourLines(parted.details, options));
	}
	const byMachines = all === null || all.machine_opened + all.machine_clicked > 0;
	// For another service, `zone` is null. Omit the note then, because the service may not count bots.
	if (parted === null && zone !== null && !human && Number(total.opened) > 0 && byMachines)
		lines.push('', ...wrap('opens and clicks include those of bots: --human leaves them out', width));
	if (chart !== 'none' && hasDays(events)) lines.push('', ...svgOf(chart, days, options));
	return lines;
}

function headLines(
	{ title, head, zone, isOfDays }: ReportPage,
	days: readonly ChartDay[],
	width: number,
): string[] {
	const lines = title === null ? [] : [clean(title)];
	for (const [label, text] of head === null ? [] : factsOf(head))
		lines.push(shorten(`  ${label.padEnd(7)}  ${text}`, width));
	lines.push(...headingOf(days, zone, width), '');
	if (head === null) return lines;
	const counts = outcomesOf(head).map(([label, count]) => [`  ${label}`, numberText(count)]);
	const all = [recipientsTitle(isOfDays), numberText(head.recipients.total)];
	return [...lines, ...layOut([all, ...counts], [false, true], width), ''];
}

function headingOf(days: readonly ChartDay[], zone: string | null, width: number): string[] {
	const range = rangeOf(days) || 'no days';
	if (zone === null) return [range];
	const named = `(${clean(zone)})`;
	return range.length + 1 + named.length <= width ? [`${range} ${named}`] : [range, named];
}

function totalLines(totals: readonly TotalLine[], hasMachines: boolean, width: number): string[] {
	const textOf = (count: number | null) => (count === null ? '' : numberText(count));
	const rows = totals.map(({ name, count, share, machines }) => [
		...[name, textOf(count), share ?? ''],
		...(hasMachines ? [textOf(machines)] : []),
	]);
	return hasMachines
		? layOut([['', 'PEOPLE', '', 'BOTS'], ...rows], [false, true, true, true], width)
		: layOut(rows, [false, true, true], width);
}

const mostRows = 10;

/** Puts numbers before texts, so that a narrow terminal shortens only the last text. */
function tableLines(table: ReportTable, width: number): string[] {
	const { title, header, rows, others = 0 } = table;
	const told = rows.filter((row) => row.some((cell) => typeof cell === 'number' && cell > 0));
	if (told.length === 0) return [];
	const isNumber = numberColumns(table);
	const order = header.map((_, at) => at).sort((a, b) => Number(isNumber[b]) - Number(isNumber[a]));
	const cells = [header.map((name) => name.toUpperCase()), ...told.slice(0, mostRows)].map((row) =>
		order.map((at) => (typeof row[at] === 'number' ? numberText(row[at]) : clean(row[at] ?? ''))),
	);
	const more = others + Math.max(0, told.length - mostRows);
	return [
		...['', title.toLowerCase()],
		...layOut(
			cells,
			order.map((at) => isNumber[at] === true),
			width,
		),
		...(more === 0 ? [] : [`  and ${numberText(more)} more`]),
	];
}

function hourLines({ hours }: ReportDetails, options: ChartOptions): string[] {
	const [first] = hours;
	if (first === undefined || options.width < 40) return [];
	const shown = hours.slice(0, Math.max(1, options.width - 24));
	const series = (['sent', 'opened', 'clicked'] as const).map(
		(name) => [name, shown.map((hour) => hour[name])] as const,
	);
	const lines = sparkLines(series, options).map((line) => `  ${line}`);
	return ['', `by hour from ${first.date.replace('T', ' ')}`, ...lines];
}

function svgOf(chart: 'bars' | 'spark', days: readonly ChartDay[], options: ChartOptions): string[] {
	const filled = days.filter(({ sent, opened }) => sent > 0 || opened > 0);
	if (filled.length === 0) return [noEvents];
	if (chart === 'spark') return sparkChart(days, options);
	// If only one day has mail, draw only its bar. The heading shows the range of days.
	return barChart(filled.length === 1 ? filled : days, options);
}

export function dayText(date: unknown): string {
	const text = String(date);
	return parseWireDate(text) ?? clean(text);
}

const leastText = 20;

function layOut(rows: readonly (readonly string[])[], isRight: readonly boolean[], width: number): string[] {
	const widths = isRight.map((_, at) => Math.max(...rows.map((row) => widthOf(row[at] ?? ''))));
	const isWide = widths.reduce((sum, one) => sum + one + 2, 0) > width;
	const [margin, gap] = isWide ? ['', ' '] : ['  ', '  '];
	return rows.flatMap((row) => {
		const cells = row.map((text, at) => pad(text, widths[at] ?? 0, isRight[at] ? 'right' : 'left'));
		if (isRight.at(-1)) return [`${margin}${cells.join(gap)}`.trimEnd()];
		const last = row.at(-1) ?? '';
		const before = margin + [...cells.slice(0, -1), ''].join(gap);
		const room = width - widthOf(before);
		if (room < leastText && widthOf(last) > room) return [before.trimEnd(), `  ${shorten(last, width - 2)}`];
		return [`${before}${shorten(last, room)}`.trimEnd()];
	});
}

interface ChartDay {
	date: string;
	sent: number;
	opened: number;
}

interface ChartOptions {
	width: number;
	unicode: boolean;
	colours?: ChartColours;
}

type ChartColours = Readonly<Record<'sent' | 'opened', (text: string) => string>>;

const plainColours: ChartColours = { sent: (text) => text, opened: (text) => text };

const noEvents = 'no events';

const maxDailyRows = 31;
const minBarWidth = 8;

interface Glyphs {
	sent: string;
	opened: string;
	eighths: string;
	line: string;
	tick: string;
}

const blocks: Glyphs = { sent: '█', opened: '░', eighths: '▏▎▍▌▋▊▉', line: '─', tick: '┬' };
const ascii: Glyphs = { sent: '#', opened: '-', eighths: '', line: '-', tick: '+' };

export function barChart(days: readonly ChartDay[], options: ChartOptions): string[] {
	const { width, unicode, colours = plainColours } = options;
	const glyphs = unicode ? blocks : ascii;
	const rows = foldedTo(days, maxDailyRows);
	const labelWidth = Math.max(0, ...rows.map(({ date }) => date.length));
	const figureWidth = Math.max(
		1,
		...rows.map(({ sent, opened }) => numberText(Math.max(sent, opened)).length),
	);
	const barWidth = Math.max(minBarWidth, width - labelWidth - figureWidth - 3);
	const top = niceTop(Math.max(1, ...rows.flatMap(({ sent, opened }) => [sent, opened])));
	const indent = ' '.repeat(labelWidth + 1);
	const bar = (value: number, name: 'sent' | 'opened') => {
		const drawn = drawBar((value / top) * barWidth, glyphs[name], glyphs);
		return `${colours[name](drawn)}${' '.repeat(barWidth - drawn.length)} ${numberText(value).padStart(figureWidth)}`;
	};
	const legend = (['sent', 'opened'] as const).map(
		(name) => `${colours[name](glyphs[name].repeat(2))} ${name}`,
	);
	return [
		`${indent}${legend.join('  ')}${foldedName(days, rows)}`,
		...rows.flatMap(({ date, sent, opened }) => [
			`${date.padEnd(labelWidth)} ${bar(sent, 'sent')}`,
			`${indent}${bar(opened, 'opened')}`,
		]),
		...axis(top, barWidth, glyphs).map((line) => indent + line),
	];
}

export function sparkChart(days: readonly ChartDay[], options: ChartOptions): string[] {
	const top = Math.max(1, ...days.flatMap(({ sent, opened }) => [sent, opened]));
	const series = [
		['sent', days.map(({ sent }) => sent)],
		['opened', days.map(({ opened }) => opened)],
	] as const;
	return sparkLines(series, options, top);
}

function sparkLines(
	series: readonly (readonly [name: string, values: readonly number[]])[],
	{ unicode }: Pick<ChartOptions, 'unicode'>,
	top?: number,
): string[] {
	const levels = unicode ? '▁▂▃▄▅▆▇█' : '_.-=+*%#';
	const widest = Math.max(...series.map(([name]) => name.length));
	return series.map(([name, values]) => {
		const highest = values.reduce((max, value) => Math.max(max, value), 0);
		const scale = top ?? Math.max(1, highest);
		const course = values.map((value) => levels[Math.round((value / scale) * (levels.length - 1))] ?? ' ');
		return `${name.padEnd(widest)} ${course.join('')} max ${numberText(highest)}`;
	});
}

/** Returns the next round whole number, at most a third larger, so that the largest value nearly fills the axis. */
function niceTop(max: number): number {
	const power = 10 ** Math.floor(Math.log10(max));
	const tops = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((factor) => factor * power);
	return tops.find((top) => top >= max && Number.isInteger(top)) ?? 10 * power;
}

// Draws at least a sliver for a value above zero, to distinguish it from zero.
function drawBar(cells: number, glyph: string, { eighths, sent }: Glyphs): string {
	const whole = Math.floor(cells);
	if (eighths === '' || glyph !== sent) return glyph.repeat(cells > 0 ? Math.max(1, Math.round(cells)) : 0);
	const part = Math.round((cells - whole) * 8);
	if (part === 8) return glyph.repeat(whole + 1);
	if (whole === 0 && part === 0) return cells > 0 ? (eighths[0] ?? '') : '';
	return glyph.repeat(whole) + (part === 0 ? '' : (eighths[part - 1] ?? ''));
}

function axis(top: number, width: number, { line, tick }: Glyphs): string[] {
	const steps =
		[4, 5, 3, 2, 1].find((count) => width / count >= numberText(top).length + 3 && top % count === 0) ?? 1;
	const at = Array.from({ length: steps + 1 }, (_, i) => Math.round((i / steps) * width));
	const rule = Array.from({ length: width + 1 }, (_, cell) => (at.includes(cell) ? tick : line)).join('');
	const labels = at.reduce((text, cell, i) => {
		const label = numberText((top / steps) * i);
		const start = Math.max(text.length, cell - Math.floor(label.length / 2));
		return text.padEnd(start) + label;
	}, '');
	return [rule, labels];
}

function foldedTo(days: readonly ChartDay[], most: number): readonly ChartDay[] {
	if (days.length <= most) return days;
	const isByWeek = days.length <= most * 7;
	const rows = new Map<string, ChartDay>();
	for (const [at, { date, sent, opened }] of days.entries()) {
		const key = isByWeek ? (days[at - (at % 7)]?.date ?? '') : date.slice(0, 7);
		const row = rows.get(key) ?? { date: key, sent: 0, opened: 0 };
		rows.set(key, { date: key, sent: row.sent + sent, opened: row.opened + opened });
	}
	return [...rows.values()];
}

function foldedName(days: readonly ChartDay[], rows: readonly ChartDay[]): string {
	if (rows.length === days.length) return '';
	return `  (by ${rows.length < days.length / 20 ? 'month' : 'week'})`;
}
