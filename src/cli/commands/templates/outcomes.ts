import { type Columns, column } from '../../render/columns.js';

export interface Outcome {
	action: 'created' | 'updated' | 'unchanged' | 'deleted';
	name: string;
	folder: string | null;
	files: readonly string[];
}

export const outcomeColumns: Columns<Outcome> = [
	column('action', 'ACTION'),
	column('name', 'NAME (SUBJECT)', { isKept: 'name', isName: true }),
	column('folder', 'FOLDER', { isKept: 'name' }),
	{ key: 'files', header: 'FILES', value: ({ files }) => files.join(', ') },
];
