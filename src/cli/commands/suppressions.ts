/** Suppressions: addresses that get no mail. The reading commands; those that change are in the folder of that name. */
import { need } from '../../api/capabilities.js';
import { type CommandGroup, command } from '../frame/command.js';
import { listOptions, listRows, walk } from '../verbs/listing.js';
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
		'COMPLAINED and HARDBOUNCED stop all mail to an address; UNSUBSCRIBED, SOFTBOUNCED and MANUAL (added by hand) ' +
		'stop bulk mail. An UNSUBSCRIBED with a LIST is of that list alone, all others are of every list. What has expired ' +
		'is not shown.',
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
		const filter = await filterOf(cx, options);
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
	examples: [
		'mailctl suppressions add ann@example.com',
		'mailctl suppressions import bounced.csv --reason HARDBOUNCED',
		'mailctl suppressions list --reason HARDBOUNCED --match @example.com -o csv',
	],
	commands: [list, suppressionAdd, suppressionRemove, suppressionImport, suppressionExport],
};
