/** Suppressions: addresses that get no mail. Looking at them; what changes them is in the folder of that name. */
import { need } from '../../api/capabilities.js';
import { type CommandGroup, command } from '../command.js';
import { listOptions, listRows } from '../listing.js';
import { walk } from '../walk.js';
import { suppressionAdd } from './suppressions/add.js';
import { suppressionExport } from './suppressions/export.js';
import { filterOf, filterOptions, suppressionColumns } from './suppressions/filters.js';
import { suppressionImport } from './suppressions/import.js';
import { suppressionRemove } from './suppressions/remove.js';

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'show the addresses that get no mail, and why',
	description:
		'COMPLAINED and HARDBOUNCED stop all mail to an address; UNSUBSCRIBED, SOFTBOUNCED and MANUAL (added by somebody) ' +
		'stop bulk mail. What has expired is not shown.',
	options: {
		...filterOptions,
		sort: listOptions.sort,
		limit: listOptions.limit,
		all: listOptions.all,
	},
	columns: suppressionColumns,
	output: 'an array of suppressions',
	examples: [
		'mailctl suppressions list',
		'mailctl suppressions list --reason HARDBOUNCED --match @example.com -o csv',
	],
	run: async (cx, { options }) => {
		const suppressions = await need(await cx.api(), 'suppressions');
		const { sort, limit, all } = options;
		const filter = filterOf(options);
		await listRows(
			cx,
			{ sort, limit, all },
			{
				columns: suppressionColumns,
				rows: (most) => walk(suppressions, filter, { signal: cx.signal, limit: most }),
			},
		);
	},
});

export const group: CommandGroup = {
	name: 'suppressions',
	summary: 'addresses that get no mail',
	commands: [list, suppressionAdd, suppressionRemove, suppressionImport, suppressionExport],
};
