/** The subscribers of a list: the reading commands. Those that change are in the folder of that name. */
import type { Api } from '../../api/api.js';
import type { Subscriber, SubscriberFilter } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { type Columns, column } from '../render/columns.js';
import { counted } from '../render/units.js';
import { addressFault, searching } from '../verbs/address-faults.js';
import { sortByVariable, withMetaColumns } from '../verbs/field-names.js';
import { listOptions, listRows, walk } from '../verbs/listing.js';
import { isRecordId } from '../verbs/resolve.js';
import { activate, create, deactivate, remove, update } from './subscribers/change.js';
import { subscriberErase } from './subscribers/erase.js';
import { subscriberExport } from './subscribers/export.js';
import { subscriberImport } from './subscribers/import.js';
import {
	filterOf,
	filterOptions,
	inList,
	listOption,
	resolveSubscriber,
	subscriberArg,
	subscriberColumns,
} from './subscribers/lookup.js';
import { subscriberStats } from './subscribers/stats.js';
import { findInAllLists, subscribersByKey } from './subscribers/walk.js';

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'show the subscribers of a list',
	options: {
		...listOption,
		emailContains: filterOptions.emailContains,
		email: { kind: 'text', summary: 'only this address' },
		active: filterOptions.active,
		where: filterOptions.where,
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
		const columns = await withMetaColumns(cx, subscriberColumns);
		const sort = await sortByVariable(cx, options.sort, subscriberColumns);
		const { list } = await inList(cx, options);
		const subscribers = await subscribersByKey(await cx.api(), list.id);
		const filter: SubscriberFilter = {
			...filterOf(options),
			...(options.email !== undefined && { email__exact: options.email }),
		};
		const { matcherOf } = await import('../verbs/conditions.js');
		const matches = await matcherOf(cx, options.where);
		const { limit, all } = options;
		// The service knows no filter by meta: these rows are picked here, from all pages.
		const match = matches === null ? undefined : 'where';
		await listRows(
			cx,
			{ match, sort, limit, all },
			{
				columns,
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
		const columns = await withMetaColumns(cx, subscriberColumns);
		const within = await inList(cx, options);
		await cx.out.record(await resolveSubscriber(cx, within, args.subscriber), columns);
	},
});

/** `find` is asked for the list. */
const foundColumns: Columns<Subscriber> = [
	column('list_id', 'LIST', { align: 'right' }),
	...subscriberColumns.filter(({ key }) => key !== 'list_id'),
];

const find = command({
	name: 'find',
	summary: 'look for an address in all lists',
	args: [{ name: 'email', summary: 'an e-mail address', of: 'address', ask: 'E-mail address:' }],
	columns: foundColumns,
	output: 'an array of subscribers, one for each list the address is in',
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
		if (found === 0) await sayWhere(cx, api, args.email);
	},
});

/** No result is no error: prints the address and the number of lists. */
async function sayWhere(cx: CommandContext, api: Api, email: string): Promise<void> {
	const { count } = await api.lists.page({ page_size: 1 }, { signal: cx.signal });
	await cx.note(`no subscriber has the address ${email}: looked in ${counted(count, 'list')}`);
	const fault = addressFault(email);
	if (fault === null) return;
	if (email.includes('@')) await cx.hint(`it is no address: ${fault}`);
	else if (isRecordId(email))
		await cx.hint([
			'it is no address; an id is of one list: ',
			mailctl('subscribers', 'get', email, '--list', 'LIST'),
		]);
	else await cx.hint(['it is no address; ', ...searching(email)]);
}

export const group: CommandGroup = {
	name: 'subscribers',
	summary: 'the subscribers of a list',
	examples: [
		'mailctl subscribers import people.csv --list 12',
		"mailctl subscribers list -l 12 --where 'meta.city=Oslo' -o csv",
		'mailctl subscribers update ann@example.com -l 12 --meta city=Bergen',
	],
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
