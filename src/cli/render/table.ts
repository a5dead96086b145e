import { clean } from './clean.js';
import type { Column, Columns } from './columns.js';
import { humanCell, readCellOf } from './lines.js';
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

/** No column is squeezed below this: numbers and dates stay whole, and names stay distinct. */
const leastCells = 16;
/** Down to this texts and names give way to columns that say something, and not to others. */
const readableCells = 32;
/** An id, an address or a name that is shortened to this is still told from others: `0b0e2b7c…d2e3f`. */
const leastKept = 14;
const leastValue = 8;
const gap = 2;

export interface Drawn {
	text: string;
	leftOut: readonly string[];
}

export async function table<T>(rows: readonly T[], columns: Columns<T>, layout: Layout): Promise<Drawn> {
	if (rows.length === 0) return { text: '', leftOut: [] };
	const measured = columns.map((column) => {
		const cells = rows.map((row) => cellOf(column, row, layout.times));
		return { column, cells, width: Math.max(layout.header ? widthOf(column.header) : 0, widest(cells)) };
	});
	const fitted = layout.truncate ? fitColumns(measured, layout.width) : withWidths(measured);
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
 * Shortens texts and names as far as they are readable, leaves optional columns out that say nothing, shortens texts and
 * names further, leaves other optional columns out, then shortens ids, and addresses last; `null` when even that does not fit.
 */
function fitColumns<T>(measured: readonly Measured<T>[], room: number): readonly Fitted<T>[] | null {
	const isOptional = ({ column }: Measured<T>) => column.isOptional === true;
	const saying = withoutWidest(measured, (shown) => squeezed(shown, room, [], readableCells) !== null, {
		among: (one) => isOptional(one) && saysNothing(one),
	});
	const shown = withoutWidest(saying, (shown) => squeezed(shown, room, []) !== null, { among: isOptional });
	for (const shortened of [[], ['id'], ['id', 'name'], ['id', 'name', 'address']] as const) {
		const widths = squeezed(shown, room, shortened);
		if (widths !== null) return withWidths(shown, widths);
	}
	return null;
}

/** Leaves out the columns that need the most room, one after the other, until it fits or none is left to leave out. */
function withoutWidest<T>(
	columns: readonly Measured<T>[],
	fits: (shown: readonly Measured<T>[]) => boolean,
	{ among }: { among: (one: Measured<T>) => boolean },
): readonly Measured<T>[] {
	let shown = columns;
	while (!fits(shown)) {
		const widest = shown
			.filter(among)
			.reduce<Measured<T> | null>(
				(found, one) => (found === null || leastOf(one) > leastOf(found) ? one : found),
				null,
			);
		if (widest === null) break;
		shown = shown.filter((one) => one !== widest);
	}
	return shown;
}

function saysNothing<T>({ cells }: Measured<T>): boolean {
	return cells.every((cell) => cell === '' || cell === '0');
}

function withWidths<T>(shown: readonly Measured<T>[], widths?: readonly number[]): readonly Fitted<T>[] {
	return shown.map((one, at) => ({ ...one, fitted: widths?.[at] ?? one.width }));
}

type Kept = NonNullable<Column<never>['isKept']>;

function squeezed<T>(
	shown: readonly Measured<T>[],
	room: number,
	shortened: readonly Kept[],
	readable = leastCells,
) {
	return squeeze(
		shown.map(({ width }) => width),
		room,
		shown.map((one) => leastOf(one, shortened, readable)),
	);
}

function leastOf<T>(
	{ column: { isWhole, isKept }, width }: Measured<T>,
	shortened: readonly Kept[] = [],
	readable = leastCells,
): number {
	if (isWhole === true) return width;
	if (isKept !== undefined && shortened.includes(isKept)) return leastKept;
	return isKept === undefined || isKept === 'name' ? Math.min(width, readable) : width;
}

/** `Math.max(...)` of a spread is limited by the stack: at most so many rows are measured at once. */
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

function squeeze(
	natural: readonly number[],
	total: number,
	least: readonly number[] = natural.map(() => leastCells),
): number[] | null {
	const room = total - gap * (natural.length - 1);
	const result = [...natural];
	const floor = natural.map((width, at) => Math.min(width, least[at] ?? leastCells));
	if (sum(floor) > room) return null;
	for (let over = sum(result) - room; over > 0; over -= 1) {
		const spare = result.map((width, at) => (width > (floor[at] ?? 0) ? width : 0));
		const widest = spare.indexOf(Math.max(...spare));
		result[widest] = (result[widest] ?? 0) - 1;
	}
	return result;
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
 * cli-table3 measures with an old width table, takes colours for text, and compares each cell of a table with all
 * others. So it lays out one line of stand-ins of the columns' widths (a private-use character, one cell everywhere), in
 * which the finished cells of each row take their places.
 */
const standIn = '\ue000';

async function lineOf(widths: readonly number[]): Promise<(cells: readonly string[]) => string> {
	const { default: Table } = await import('cli-table3');
	const none = {
		top: '',
		'top-mid': '',
		'top-left': '',
		'top-right': '',
		bottom: '',
		'bottom-mid': '',
		'bottom-left': '',
		'bottom-right': '',
		left: '',
		'left-mid': '',
		mid: '',
		'mid-mid': '',
		right: '',
		'right-mid': '',
		middle: ' '.repeat(gap),
	};
	const drawn = new Table({
		chars: none,
		style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
	});
	drawn.push(widths.map((width) => standIn.repeat(width)));
	const [first = '', ...behind] = drawn.toString().split(/\ue000+/);
	return (cells) =>
		`${withoutLastSpaces(behind.reduce((line, between, at) => `${line}${cells[at] ?? ''}${between}`, first))}\n`;
}

/** An expression that looks for spaces before a line's end tries anew at each space of a cell. */
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

function sum(numbers: readonly number[]): number {
	return numbers.reduce((total, number) => total + number, 0);
}
