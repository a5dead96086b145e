/** `mailctl config`: settings of the profiles, and where each value comes from. */
import { type CommandGroup, command } from '../command.js';
import { type Columns, column } from '../render/columns.js';

interface Row {
	key: string;
	value: unknown;
}
const columns: Columns<Row> = [column('key', 'KEY', { isName: true }), column('value', 'VALUE')];

const path = command({
	name: 'path',
	summary: 'where the files are',
	columns,
	run: async (cx) => {
		await cx.out.rows(
			Object.entries(cx.paths).map(([key, value]) => ({ key, value })),
			columns,
		);
	},
});

export const group: CommandGroup = { name: 'config', summary: 'settings of the profiles', commands: [path] };
