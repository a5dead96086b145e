import type { Subscriber } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { type Columns, column } from '../render/columns.js';
import { counted } from '../render/units.js';
import { sortByVariable, withMetaColumns } from '../verbs/field-names.js';
import { listRows, pageOptions, walk } from '../verbs/listing.js';
import { activate, create, deactivate, remove, update } from './subscribers/change.js';
import { subscriberErase } from './subscribers/erase.js';
import { subscriberExport } from './subscribers/export.js';
import { subscriberImport } from './subscribers/import.js';
import {
	filterOf,
	filterOptions,
	findInAllLists,
	inList,
	listOption,
	resolveSubscriber,
	subscriberArg,
	subscriberColumns,
	subscribersByKey,
} from './subscribers/lookup.js';
import { subscriberStats } from './subscribers/stats.js';

const list = command({
	name: 'list',
	summary: 'list the subscribers of a list',
	options: {
		...listOption,
		emailContains: filterOptions.emailContains,
		email: { kind: 'text', summary: 'filter by address' },
		active: filterOptions.active,
		where: filterOptions.where,
		...pageOptions,
	},
	columns: subscriberColumns,
	output: 'an array of subscribers',
	exits: [3],
	examples: [
		'mailctl subscribers list -l 12 --active',
		"mailctl subscribers list -l 12 --where 'meta.city=Oslo' -o csv",
	],
	run: async (cx, { options }) => {
		const columns = await withMetaColumns(cx, subscriberColumns);
		const sort = await sortByVariable(cx, options.sort, subscriberColumns);
		const { list } = await inList(cx, options);
		const subscribers = await subscribersByKey(await cx.api(), list.id);
		const { matcherOf } = await import('../verbs/conditions.js');
		const matches = await matcherOf(cx, options.where);
		const { limit, all } = options;
		const rows = (most: number | undefined) =>
			walk(subscribers, filterOf(options), { signal: cx.signal, limit: most });
		if (matches === null) return listRows(cx, { sort, limit, all }, { columns, rows });
		await listRows(cx, { match: 'where', sort, limit, all }, { columns, rows, matches });
	},
});

const get = command({
	name: 'get',
	summary: 'show one subscriber',
	args: [subscriberArg],
	options: listOption,
	columns: subscriberColumns,
	output: 'the subscriber',
	exits: [3],
	examples: ['mailctl subscribers get ann@example.com -l 12'],
	run: async (cx, { args, options }) => {
		const columns = await withMetaColumns(cx, subscriberColumns);
		const within = await inList(cx, options);
		await cx.out.record(await resolveSubscriber(cx, within, args.subscriber), columns);
	},
});

const foundColumns: Columns<Subscriber> = [
	column('list_id', 'LIST', { align: 'right' }),
	...subscriberColumns.filter(({ key }) => key !== 'list_id'),
];

const find = command({
	name: 'find',
	summary: 'find an address in all lists',
	args: [{ name: 'email', summary: 'an e-mail address', of: 'address', ask: 'E-mail address:' }],
	columns: foundColumns,
	output: 'an array of subscribers, one for each list that has the address',
	examples: ['mailctl subscribers find ann@example.com'],
	run: async (cx, { args }) => {
		const api = await cx.api();
		let found = 0;
		async function* rows() {
			for await (const one of findInAllLists(api, args.email, cx.signal)) {
				found += 1;
				yield one;
			}
		}
		await cx.out.rows(rows(), await withMetaColumns(cx, foundColumns), { all: true });
		if (found > 0) return;
		const { count } = await api.lists.page({ page_size: 1 }, { signal: cx.signal });
		await cx.note(`no subscriber has the address ${args.email}: mailctl searched ${counted(count, 'list')}`);
	},
});

export const group: CommandGroup = {
	name: 'subscribers',
	summary: 'manage and import the subscribers of a list',
	examples: [
		'mailctl subscribers import people.csv --list 12',
		"mailctl subscribers list -l 12 --where 'meta.city=Oslo' -o csv",
		'mailctl subscribers update ann@example.com -l 12 --meta city=Bergen',
	],
	commands: [
		...[list, get, find, create, update, activate, deactivate, remove],
		...[subscriberImport, subscriberExport, subscriberStats, subscriberErase],
	],
};
