import { numberText } from './units.js';

export interface ChartDay {
	date: string;
	sent: number;
	opened: number;
}

export interface ChartOptions {
	width: number;
	unicode: boolean;
	colours?: ChartColours;
}

export type ChartColours = Readonly<Record<'sent' | 'opened', (text: string) => string>>;

const plainColours: ChartColours = { sent: (text) => text, opened: (text) => text };

export const noEvents = 'no events';

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

/** One line a series, each with a separate scale unless `top` is given. */
export function sparkLines(
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

/** The next round whole number, at most a third above: the largest value fills the axis. */
export function niceTop(max: number): number {
	const power = 10 ** Math.floor(Math.log10(max));
	const tops = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((factor) => factor * power);
	return tops.find((top) => top >= max && Number.isInteger(top)) ?? 10 * power;
}

// A value above zero shows at least a sliver: one mail sent is not none.
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
