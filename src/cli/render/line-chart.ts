/** Sent and opened as two courses over the days: one is drawn solid and one dashed, so that they differ without colour. */
import { type ChartDay, type ChartOptions, foldedName, foldedTo, niceTop, plainColours } from './chart.js';
import { numberText } from './plurals.js';

interface Stroke {
	flat: string;
	upright: string;
	/** Where the course leaves a row upwards and downwards, and where it comes from below and from above. */
	up: string;
	down: string;
	fromBelow: string;
	fromAbove: string;
}

const same = (flat: string, upright: string): Stroke => ({
	...{ flat, upright, up: flat, down: flat, fromBelow: flat, fromAbove: flat },
});
const unicodeStrokes = {
	sent: { flat: '─', upright: '│', up: '╯', down: '╮', fromBelow: '╭', fromAbove: '╰' },
	opened: same('┄', '┊'),
};
const asciiStrokes = { sent: same('*', '|'), opened: same('o', ':') };

const height = 10;
const minWidth = 12;

/** Lines without their line ends; a day has a column at least, else weeks or months have. */
export function lineChart(days: readonly ChartDay[], options: ChartOptions): string[] {
	const { width, unicode, colours = plainColours } = options;
	const strokes = unicode ? unicodeStrokes : asciiStrokes;
	const top = niceTop(Math.max(1, ...days.flatMap(({ sent, opened }) => [sent, opened])));
	const plain = foldedTo(days, Math.max(minWidth, width - numberText(top).length - 2));
	const highest = niceTop(Math.max(1, ...plain.flatMap(({ sent, opened }) => [sent, opened])));
	const label = numberText(highest).length;
	const columns = Math.max(minWidth, width - label - 2);
	const cells = Array.from({ length: height + 1 }, () => Array<string>(columns).fill(' '));
	for (const name of ['opened', 'sent'] as const) {
		const rows = rowsOf(
			plain.map((day) => day[name]),
			{ columns, highest },
		);
		drawCourse(cells, rows, (text) => colours[name](text), strokes[name]);
	}
	const edge = unicode ? '┤' : '+';
	const wall = unicode ? '│' : '|';
	const legend = (['sent', 'opened'] as const).map((name) => {
		return `${colours[name](strokes[name].flat.repeat(3))} ${name}`;
	});
	return [
		`${' '.repeat(label + 2)}${legend.join('  ')}${foldedName(days, plain)}`,
		...cells.map((row, at) => {
			const value = ((height - at) / height) * highest;
			const isTick = at % 5 === 0 && Number.isInteger(value);
			const figure = (isTick ? numberText(value) : '').padStart(label);
			return `${figure} ${isTick ? edge : wall}${row.join('')}`.trimEnd();
		}),
		...axis(plain, { label, columns, unicode }),
	];
}

/** The row of each column, 0 at the top; between two days on the straight line. */
function rowsOf(
	values: readonly number[],
	{ columns, highest }: { columns: number; highest: number },
): number[] {
	const last = values.length - 1;
	return Array.from({ length: columns }, (_, column) => {
		const at = last === 0 ? 0 : (column / (columns - 1)) * last;
		const before = values[Math.floor(at)] ?? 0;
		const after = values[Math.ceil(at)] ?? before;
		const value = before + (after - before) * (at - Math.floor(at));
		return height - Math.round((value / highest) * height);
	});
}

function drawCourse(
	cells: string[][],
	rows: readonly number[],
	paint: (text: string) => string,
	stroke: Stroke,
): void {
	const put = (row: number, column: number, glyph: string) => {
		const line = cells[row];
		if (line !== undefined) line[column] = paint(glyph);
	};
	rows.forEach((row, column) => {
		const before = rows[column - 1] ?? row;
		if (before === row) {
			put(row, column, stroke.flat);
			return;
		}
		const isUp = row < before;
		put(before, column, isUp ? stroke.up : stroke.down);
		put(row, column, isUp ? stroke.fromBelow : stroke.fromAbove);
		for (let between = Math.min(row, before) + 1; between < Math.max(row, before); between += 1)
			put(between, column, stroke.upright);
	});
}

/** The line below, with the first, the middle and the last day as far as there is room for them. */
function axis(
	days: readonly ChartDay[],
	{ label, columns, unicode }: { label: number; columns: number; unicode: boolean },
): string[] {
	const [first, last] = [days[0]?.date ?? '', days.at(-1)?.date ?? ''];
	const isOdd = days.length % 2 === 1 && days.length > 2;
	const middle = isOdd ? (days[(days.length - 1) / 2]?.date ?? '') : '';
	const center = Math.round((columns - 1) / 2);
	const start = center - Math.floor(middle.length / 2);
	const names = [{ text: first, at: 0 }];
	if (middle !== '' && start > first.length && start + middle.length < columns - last.length)
		names.push({ text: middle, at: start });
	if (days.length > 1 && first.length + last.length < columns)
		names.push({ text: last, at: columns - last.length });
	const text = names.reduce((line, name) => line.padEnd(name.at) + name.text, '');
	const rule = unicode ? `└${'─'.repeat(columns)}` : `+${'-'.repeat(columns)}`;
	return [`${' '.repeat(label + 1)}${rule}`, `${' '.repeat(label + 2)}${text}`];
}
