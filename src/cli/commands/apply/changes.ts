/** Changes as they are printed, and the file that `apply` and `diff` read. */
import type { CommandContext } from '../../frame/context.js';
import { clean } from '../../render/clean.js';
import { type Columns, column } from '../../render/columns.js';
import { shorten, widthOf } from '../../render/width.js';
import type { Kind, Value } from './plan.js';

export const declaredOptions = {
	file: {
		kind: 'file',
		short: 'f',
		required: true,
		summary: 'YAML or JSON; - is standard input',
		ask: 'File, YAML or JSON:',
	},
	prune: { kind: 'flag', summary: 'delete what the file does not have, of the kinds that it names' },
} as const;

export const aboutFile =
	'Keys are `lists` (name, email_reason), `fields` (variable, name), `webhooks` (type and url, is_auth_enabled, login, ' +
	'password), `senders` (email), and on databases and servers of mailctl `templates` (name, text_body, html_body), on a ' +
	'database `settings`. Bodies and passwords may come from a file beside it (`html_body_file`, `password_file`), ' +
	// biome-ignore lint/suspicious/noTemplateCurlyInString: shows how the file names a variable
	'passwords and settings from the environment (`${NAME}`). A key that is missing is left as it is.';

/** `changes` has of each key what is there and what is wanted. */
export interface Change {
	action: 'create' | 'update' | 'delete';
	kind: Kind;
	name: string;
	changes: Readonly<Record<string, { from: Value; to: Value }>>;
}

export const changeColumns: Columns<Change> = [
	column('action', 'ACTION'),
	column('kind', 'KIND'),
	column('name', 'NAME', { isName: true }),
	{
		key: 'changes',
		header: 'CHANGES',
		value: ({ changes }) =>
			Object.entries(changes)
				.map(([key, { from, to }]) => `${key}: ${inCell(from)} → ${inCell(to)}`)
				.join('; '),
	},
];

/** In characters: bodies of templates are longer. */
const mostShown = 60;

function inCell(value: Value): string {
	const text = value === null ? '(nothing)' : String(value);
	return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
}

/** A table for people has too little room for two texts in a cell. */
export async function printChanges(cx: CommandContext, changes: readonly Change[]): Promise<void> {
	const { out, globals, io } = cx;
	if (out.format === 'table' && globals.fields === undefined) {
		const lines = changes.flatMap((change) => linesOf(change, io.stdout.columns));
		await out.page(lines.map((line) => `${line}\n`).join(''));
	} else await out.rows(changes, changeColumns, { all: true });
}

/** What is there and what is wanted, one below the other where a line has no room for both. */
function linesOf({ action, kind, name, changes }: Change, width: number): string[] {
	const values = Object.entries(changes).flatMap(([key, { from, to }]) => {
		const [old, wanted] = [from, to].map((value) => (value === null ? null : clean(String(value))));
		const given = [old, wanted].filter((text) => text != null);
		const line = `  ${key}: ${given.join(' → ')}`;
		if (given.length === 2 ? widthOf(line) <= width : action === 'create') return [shorten(line, width)];
		const at = firstDifference(old ?? '', wanted ?? '');
		const signed = (sign: string, text: string | null | undefined) =>
			text == null ? [] : [`    ${sign} ${around(text, at, width - indent)}`];
		return [`  ${key}:`, ...signed('-', old), ...signed('+', wanted)];
	});
	return [`${action} ${kind.slice(0, -1)} ${clean(name)}`, ...values];
}

const indent = '    - '.length;
/** Characters before the first difference of two texts. */
const shownBefore = 16;

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
