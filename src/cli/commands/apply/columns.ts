/** Changes as they are printed. */
import { type Columns, column } from '../../render/columns.js';
import type { Kind, Value } from './declaration.js';

/** One change, as it is printed: `changes` has of each key what is there and what is wanted. */
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
				.map(([key, { from, to }]) => `${key}: ${shown(from)} → ${shown(to)}`)
				.join('; '),
	},
];

/** In characters: bodies of templates are longer. */
const mostShown = 60;

function shown(value: Value): string {
	const text = value === null ? '(nothing)' : String(value);
	return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
}
