/** Changes as they are printed, and the file that `apply` and `diff` read. */
import type { CommandContext } from '../../frame/context.js';
import { clean } from '../../render/clean.js';
import { type Columns, column } from '../../render/columns.js';
import { shorten } from '../../render/width.js';
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
				.map(([key, change]) => `${key}: ${textOf(change)}`)
				.join('; '),
	},
];

/** In characters: bodies of templates are longer. */
const mostShown = 60;

function textOf({ from, to }: { from: Value; to: Value }): string {
	const [old, wanted] = [from, to].map((value) => {
		const text = value === null ? '(nothing)' : String(value);
		return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
	});
	return `${old} → ${wanted}`;
}

/** A table for people has too little room for two texts in a cell. */
export async function printChanges(cx: CommandContext, changes: readonly Change[]): Promise<void> {
	const { out, globals, io } = cx;
	if (out.format === 'table' && globals.fields === undefined) {
		const lines = changes.flatMap(({ action, kind, name, changes }) => [
			`${action} ${kind.slice(0, -1)} ${clean(name)}`,
			...Object.entries(changes).map(([key, change]) =>
				shorten(clean(`  ${key}: ${textOf(change)}`), io.stdout.columns),
			),
		]);
		await out.page(lines.map((line) => `${line}\n`).join(''));
	} else await out.rows(changes, changeColumns, { all: true });
}
