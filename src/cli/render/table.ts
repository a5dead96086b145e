/** Rows for a terminal: a borderless table where it fits, cards where it does not. */

import { humanCell, readCellOf } from './cells.js';
import { clean } from './clean.js';
import type { Columns } from './columns.js';
import { numberText } from './counted.js';
import type { Times } from './times.js';
import { pad, shorten, widthOf, wrap } from './width.js';

export interface Layout {
	/** Cells of a line. */
	width: number;
	header: boolean;
	truncate: boolean;
	/** Marks up headers and keys; the identity without colour. */
	strong: (text: string) => string;
	times: Times;
}

/** No column is squeezed below this: numbers and dates stay whole, and names stay distinct. */
const leastCells = 16;
/** The least room of a card's value. */
const leastValue = 8;
const gap = 2;

/** The finished text, with a last line break; nothing for no rows. */
export async function table<T>(rows: readonly T[], columns: Columns<T>, layout: Layout): Promise<string> {
	if (rows.length === 0) return '';
	const cells = rows.map((row) => columns.map((column) => cellOf(column, row, layout.times)));
	const natural = columns.map((column, at) =>
		Math.max(layout.header ? widthOf(column.header) : 0, ...widths(cells, at)),
	);
	const least = columns.map((column, at) => (column.isWhole === true ? (natural[at] ?? 0) : leastCells));
	const widthsFitted = layout.truncate ? squeeze(natural, layout.width, least) : natural;
	if (widthsFitted === null) return withCaption(cards(rows, columns, layout), layout);
	return withCaption(await grid(cells, columns, widthsFitted, layout), layout);
}

/** One record: a key and a value a line, times to the minute. */
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

/** `Math.max(...)` of a spread is limited by the stack: at most so many rows are measured at once. */
function widths(cells: readonly (readonly string[])[], at: number): number[] {
	return [cells.reduce((widest, row) => Math.max(widest, widthOf(row[at] ?? '')), 0)];
}

/** Shrinks the widest columns first, none below its least; `null` when even that does not fit. */
export function squeeze(
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

async function grid<T>(
	cells: readonly (readonly string[])[],
	columns: Columns<T>,
	fitted: readonly number[],
	layout: Layout,
): Promise<string> {
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
	const finished: string[] = [];
	const add = (row: readonly string[], mark: (text: string) => string) => {
		drawn.push(
			row.map((text, at) => {
				const width = Math.max(1, fitted[at] ?? 1);
				finished.push(mark(pad(shorten(text, width), width, columns[at]?.align)));
				return standIn.repeat(width);
			}),
		);
	};
	if (layout.header)
		add(
			columns.map((column) => column.header),
			layout.strong,
		);
	for (const row of cells) add(row, (text) => text);
	return `${substitute(drawn.toString(), finished)}\n`;
}

/**
 * cli-table3 measures with an old width table and takes colours for text, so it lays out stand-ins of the right width
 * (a private-use character, one cell everywhere); the finished cells then take their places, in the same order.
 */
const standIn = '\ue000';

function substitute(drawn: string, finished: readonly string[]): string {
	let next = 0;
	const text = drawn.replace(/\ue000+/g, () => finished[next++] ?? '');
	return text.split('\n').map(withoutLastSpaces).join('\n');
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
			// A terminal wraps a long line by itself, and copies it whole.
			const isWrapped = layout.truncate && column.isWhole !== true;
			const texts = column.lines?.(row, layout.times).map(clean) ?? [cellOf(column, row, layout.times)];
			const lines = isWrapped ? texts.flatMap((text) => wrap(text, room)) : texts;
			return `${key}${' '.repeat(gap)}${lines.join(`\n${' '.repeat(keys + gap)}`)}`.trimEnd();
		});
	return `${rows.map((row) => one(row).join('\n')).join('\n\n')}\n`;
}

function sum(numbers: readonly number[]): number {
	return numbers.reduce((total, number) => total + number, 0);
}
