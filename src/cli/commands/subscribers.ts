/** The subscribers of a list: looking at them. What changes them is in the folder of that name. */
import type { Subscriber, SubscriberFilter } from '../../api/records.js';
import { type CommandGroup, command } from '../command.js';
import { listOptions, listRows } from '../listing.js';
import { type Columns, column } from '../render/columns.js';
import { walk } from '../walk.js';
import { parseWhere } from '../where.js';
import { activate, create, deactivate, remove, update } from './subscribers/change.js';
import { subscriberErase } from './subscribers/erase.js';
import { subscriberExport } from './subscribers/export.js';
import { subscriberImport } from './subscribers/import.js';
import {
	inList,
	listOption,
	resolveSubscriber,
	subscriberArg,
	subscriberColumns,
} from './subscribers/lookup.js';
import { subscriberStats } from './subscribers/stats.js';
import { findInAllLists } from './subscribers/walk.js';

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'show the subscribers of a list',
	options: {
		...listOption,
		emailContains: { kind: 'text', summary: 'only addresses that contain this' },
		email: { kind: 'text', summary: 'only this address' },
		active: { kind: 'tri', off: 'inactive', summary: 'only active ones, or only inactive ones' },
		where: { kind: 'list', placeholder: 'meta.KEY=VALUE', summary: 'only those whose meta has this value' },
		sort: listOptions.sort,
		limit: listOptions.limit,
		all: listOptions.all,
	},
	columns: subscriberColumns,
	output: 'an array of subscribers',
	exits: [3],
	examples: [
		'mailctl subscribers list -l 12 --active',
		"mailctl subscribers list -l 12 --where 'meta.city=Oslo' -o csv",
	],
	run: async (cx, { options }) => {
		const { subscribers } = await inList(cx, options);
		const filter: SubscriberFilter = {
			...(options.emailContains !== undefined && { email__icontains: options.emailContains }),
			...(options.email !== undefined && { email__exact: options.email }),
			...(options.active !== undefined && { is_active: options.active }),
		};
		const matches = parseWhere(options.where);
		const { sort, limit, all } = options;
		// The service knows no filter by meta: these rows are picked here, from all pages.
		const match = matches === null ? undefined : 'where';
		await listRows(
			cx,
			{ match, sort, limit, all },
			{
				columns: subscriberColumns,
				rows: (most) => walk(subscribers, filter, { signal: cx.signal, limit: most }),
				...(matches !== null && { matches }),
			},
		);
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
		const { list: within, subscribers } = await inList(cx, options);
		await cx.out.record(
			await resolveSubscriber(subscribers, args.subscriber, within, cx.signal),
			subscriberColumns,
		);
	},
});

/** Which list is what `find` is asked for. */
const foundColumns: Columns<Subscriber> = [
	column('list_id', 'LIST', { align: 'right' }),
	...subscriberColumns.filter(({ key }) => key !== 'list_id'),
];

const find = command({
	name: 'find',
	summary: 'look for an address in all lists',
	args: [{ name: 'email', summary: 'an e-mail address' }],
	columns: foundColumns,
	output: 'an array of subscribers, one for each list the address is in',
	examples: ['mailctl subscribers find ann@example.com'],
	run: async (cx, { args }) => {
		const api = await cx.api();
		await cx.out.rows(findInAllLists(api, args.email, cx.signal), foundColumns, { all: true });
	},
});

export const group: CommandGroup = {
	name: 'subscribers',
	summary: 'the subscribers of a list',
	commands: [
		list,
		get,
		find,
		create,
		update,
		activate,
		deactivate,
		remove,
		subscriberImport,
		subscriberExport,
		subscriberStats,
		subscriberErase,
	],
};
