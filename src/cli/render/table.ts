import { clean } from './clean.js';
import type { Column, Columns } from './columns.js';
import { humanCell, readCellOf } from './out.js';
import type { Times } from './times.js';
import { numberText } from './units.js';
import { pad, shorten, widthOf, wrap } from './width.js';

export interface Layout {
	width: number;
	header: boolean;
	truncate: boolean;
	strong: (text: string) => string;
	times: Times;
}

/** The minimum width of most columns. Numbers and dates fit, and names stay distinct. */
const leastCells = 16;
/** The minimum width of ids, addresses and, as a last resort, names: `0b0e2b7c…d2e3f` is still distinct. */
const leastKept = 14;
const leastValue = 8;
const gap = 2;

export async function table<T>(rows: readonly T[], columns: Columns<T>, layout: Layout) {
	if (rows.length === 0) return { text: '', leftOut: [] };
	const measured = columns.map((column) => {
		const cells = rows.map((row) => cellOf(column, row, layout.times));
		return { column, cells, width: Math.max(layout.header ? widthOf(column.header) : 0, widest(cells)) };
	});
	const fitted = layout.truncate
		? fitColumns(measured, layout.width)
		: measured.map((one) => ({ ...one, fitted: one.width }));
	if (fitted === null) return { text: withCaption(cards(rows, columns, layout), layout), leftOut: [] };
	const leftOut = measured.filter(({ column }) => !fitted.some((one) => one.column === column));
	const showsTimes = fitted.some(({ column }) => column.time !== undefined || column.lines !== undefined);
	const text = await grid(fitted, rows.length, layout);
	return {
		text: showsTimes ? withCaption(text, layout) : text,
		leftOut: leftOut.map(({ column }) => column.header),
	};
}

interface Measured<T> {
	column: Column<T>;
	cells: readonly string[];
	width: number;
}

type Fitted<T> = Measured<T> & { fitted: number };

/**
 * If the table is too wide, drops empty optional columns. Then drops optional columns, the widest first, until the rest
 * fits with shortened texts. If the table is still too wide, shortens ids, then names to `leastKept`, then addresses.
 * Returns null if the table does not fit even then.
 */
function fitColumns<T>(measured: readonly Measured<T>[], room: number): readonly Fitted<T>[] | null {
	const isEmpty = ({ column, cells }: Measured<T>) =>
		column.isOptional === true && cells.every((cell) => cell === '' || cell === '0');
	const natural = measured.reduce((sum, { width }) => sum + gap + width, -gap);
	let shown = natural <= room ? measured : measured.filter((one) => !isEmpty(one));
	while (squeeze(shown, room) === null) {
		const optional = shown.filter(({ column }) => column.isOptional === true);
		const [widest] = optional.toSorted((one, other) => leastOf(other) - leastOf(one));
		if (widest === undefined) break;
		shown = shown.filter((one) => one !== widest);
	}
	for (const shortened of [[], ['id'], ['id', 'name'], ['id', 'name', 'address']] as const) {
		const widths = squeeze(shown, room, shortened);
		if (widths !== null) return shown.map((one, at) => ({ ...one, fitted: widths[at] ?? one.width }));
	}
	return null;
}

type Kept = NonNullable<Column<never>['isKept']>;

function squeeze<T>(
	shown: readonly Measured<T>[],
	room: number,
	shortened: readonly Kept[] = [],
): number[] | null {
	const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
	const least = shown.map((one) => leastOf(one, shortened));
	const left = room - gap * (shown.length - 1);
	if (sum(least) > left) return null;
	const widths = shown.map(({ width }) => width);
	for (let over = sum(widths) - left; over > 0; over -= 1) {
		const spare = widths.map((width, at) => (width > (least[at] ?? 0) ? width : 0));
		const widest = spare.indexOf(Math.max(...spare));
		widths[widest] = (widths[widest] ?? 0) - 1;
	}
	return widths;
}

function leastOf<T>(
	{ column: { isWhole, isKept }, width }: Measured<T>,
	shortened: readonly Kept[] = [],
): number {
	if (isWhole === true || (isKept !== undefined && isKept !== 'name' && !shortened.includes(isKept)))
		return width;
	return Math.min(width, isKept !== undefined && shortened.includes(isKept) ? leastKept : leastCells);
}

/** Does not use `Math.max(...cells)`, because the call stack limits the number of arguments. */
function widest(cells: readonly string[]): number {
	return cells.reduce((found, cell) => Math.max(found, widthOf(cell)), 0);
}

export function card<T>(record: T, columns: Columns<T>, layout: Layout): string {
	const { times } = layout;
	return withCaption(
		cards([record], columns, { ...layout, times: { ...times, recent: times.text } }),
		layout,
	);
}

function withCaption(text: string, { header, times }: Layout): string {
	const caption = header ? times.caption() : null;
	return caption === null ? text : `${text}\n${caption}\n`;
}

function cellOf<T>(column: Columns<T>[number], row: T, times: Times): string {
	if (column.isCount === true) {
		const value = column.value(row);
		if (typeof value === 'number') return numberText(value);
	}
	return readCellOf(row, column, { times, cell: humanCell });
}

async function grid<T>(shown: readonly Fitted<T>[], count: number, layout: Layout): Promise<string> {
	const fill = await lineOf(shown.map(({ fitted }) => Math.max(1, fitted)));
	const line = (cell: (one: Fitted<T>) => string, mark: (text: string) => string) =>
		fill(
			shown.map((one) => {
				const width = Math.max(1, one.fitted);
				return mark(pad(shorten(cell(one), width), width, one.column.align));
			}),
		);
	let text = layout.header ? line(({ column }) => column.header, layout.strong) : '';
	for (let row = 0; row < count; row += 1)
		text += line(
			({ cells }) => cells[row] ?? '',
			(cell) => cell,
		);
	return text;
}

/**
 * cli-table3 measures characters wrongly, counts color codes as text, and compares each cell with all others. Therefore
 * `lineOf` lets cli-table3 lay out only one line, which is filled with this private-use character. In each row, a
 * finished cell replaces each run of this character.
 */
const standIn = '\ue000';

async function lineOf(widths: readonly number[]): Promise<(cells: readonly string[]) => string> {
	const { default: Table } = await import('cli-table3');
	const edges = ['top', 'bottom', 'left', 'right'].flatMap((edge) => [edge, `${edge}-mid`]);
	const corners = ['top', 'bottom'].flatMap((edge) => [`${edge}-left`, `${edge}-right`]);
	const none = Object.fromEntries([...edges, ...corners, 'mid', 'mid-mid'].map((name) => [name, '']));
	const drawn = new Table({
		chars: { ...none, middle: ' '.repeat(gap) },
		style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
	});
	drawn.push(widths.map((width) => standIn.repeat(width)));
	const [first = '', ...behind] = drawn.toString().split(/\ue000+/);
	return (cells) =>
		`${withoutLastSpaces(behind.reduce((line, between, at) => `${line}${cells[at] ?? ''}${between}`, first))}\n`;
}

/** Does not use `/ +$/`, which takes quadratic time for many spaces within a line. */
function withoutLastSpaces(line: string): string {
	let end = line.length;
	while (end > 0 && line[end - 1] === ' ') end -= 1;
	return line.slice(0, end);
}

function cards<T>(rows: readonly T[], columns: Columns<T>, layout: Layout): string {
	const keys = Math.max(...columns.map((column) => widthOf(column.header)));
	const room = Math.max(leastValue, layout.width - keys - gap);
	const one = (row: T) =>
		columns.map((column) => {
			const key = layout.strong(pad(column.header, keys));
			const isWrapped = layout.truncate && column.isWhole !== true && column.isKept === undefined;
			const texts = column.lines?.(row, layout.times).map(clean) ?? [cellOf(column, row, layout.times)];
			const lines = isWrapped ? texts.flatMap((text) => wrap(text, room)) : texts;
			return `${key}${' '.repeat(gap)}${lines.join(`\n${' '.repeat(keys + gap)}`)}`.trimEnd();
		});
	return `${rows.map((row) => one(row).join('\n')).join('\n\n')}\n`;
}
