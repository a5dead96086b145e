/** Changes as a person reads them: what is there and what is wanted, one below the other. */
import type { CommandContext } from '../../frame/context.js';
import { clean } from '../../render/clean.js';
import { shorten, widthOf } from '../../render/width.js';
import { type Change, changeColumns } from './columns.js';
import type { Value } from './declaration.js';

/** A table for people has too little room for two texts in a cell. */
export async function printChanges(cx: CommandContext, changes: readonly Change[]): Promise<void> {
	const { out, globals, io } = cx;
	if (out.format === 'table' && globals.fields === undefined) {
		const lines = changes.flatMap((change) => linesOf(change, io.stdout.columns));
		await out.page(lines.map((line) => `${line}\n`).join(''));
	} else await out.rows(changes, changeColumns, { all: true });
}

/** Lines of `width` cells at most, where a name needs no more. */
function linesOf({ action, kind, name, changes }: Change, width: number): string[] {
	const values = Object.entries(changes).flatMap(([key, { from, to }]) => {
		const [old, wanted] = [textOf(from), textOf(to)];
		const given = [old, wanted].filter((text) => text !== null);
		const line = `  ${key}: ${given.join(' → ')}`;
		if (given.length === 2 ? widthOf(line) <= width : action === 'create') return [shorten(line, width)];
		const at = firstDifference(old ?? '', wanted ?? '');
		const signed = (sign: string, text: string | null) =>
			text === null ? [] : [`    ${sign} ${around(text, at, width - indent)}`];
		return [`  ${key}:`, ...signed('-', old), ...signed('+', wanted)];
	});
	return [`${action} ${kind.slice(0, -1)} ${clean(name)}`, ...values];
}

const indent = '    - '.length;
/** Characters before the first difference of two texts. */
const shownBefore = 16;

/** Null: there is nothing. */
function textOf(value: Value): string | null {
	return value === null ? null : clean(String(value));
}

function firstDifference(one: string, other: string): number {
	let at = 0;
	while (at < one.length && one[at] === other[at]) at += 1;
	return at;
}

/** The text, or as much of it as there is room for, from a little before that place on. */
function around(text: string, at: number, cells: number): string {
	const start = at - shownBefore;
	if (widthOf(text) <= cells || start <= 0) return shorten(text, cells);
	const isHalf = /^[\udc00-\udfff]/.test(text.slice(start));
	return shorten(`…${text.slice(isHalf ? start + 1 : start)}`, cells);
}
