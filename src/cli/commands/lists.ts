import type { Api } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import { invalid } from '../../api/errors.js';
import type { ListsPlus } from '../../api/inputs.js';
import type { List } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { exits } from '../frame/exit.js';
import { given } from '../frame/values.js';
import { answers, type Columns, column, parseFields } from '../render/columns.js';
import { counted } from '../render/units.js';
import { change, create as createRecord, deleteEach, eachOf, findEach } from '../verbs/changing.js';
import { listOptions, listRows, walk } from '../verbs/listing.js';
import { explained } from '../verbs/refusals.js';
import { byOption, resolveList } from '../verbs/resolve.js';

/** `public_name` is not part of the service document. Tables and `--fields` show it, and `-o json` omits it. */
interface NamedList extends List {
	public_name?: string | null;
}

const namedColumns: Columns<NamedList> = [
	column('id', 'ID', { align: 'right' }),
	column('name', 'NAME', { isKept: 'name', isName: true }),
	column('public_name', 'PUBLIC NAME', { wide: true }),
	column('active_subscribers_count', 'ACTIVE', { align: 'right', isCount: true }),
	column('inactive_subscribers_count', 'INACTIVE', { align: 'right', isCount: true }),
	column('overall_subscribers_count', 'ALL', { align: 'right', isCount: true, wide: true }),
	column('email_reason', 'EMAIL REASON', { wide: true }),
	column('date_created', 'CREATED', { isOptional: true, time: 'text' }),
];
const listColumns: Columns<List> = namedColumns.filter(({ key }) => key !== 'public_name');

const listArg = { name: 'list', summary: 'id or exact name', of: 'list', ask: 'Which list:' } as const;

const list = command({
	name: 'list',
	summary: 'list mailing lists',
	options: listOptions,
	columns: listColumns,
	output: 'an array of lists, as the service returns them',
	examples: [
		'mailctl lists list',
		'mailctl lists list --match news --sort -active_subscribers_count -o json',
	],
	run: async (cx, { options }) => {
		const api = await cx.api();
		const rows = (limit: number | undefined) => walk(api.lists, {}, { signal: cx.signal, limit });
		const matches = ({ name }: List, text: string) => name.toLowerCase().includes(text.toLowerCase());
		await listRows(cx, options, { columns: listColumns, rows, matches });
	},
});

const get = command({
	name: 'get',
	summary: 'show one list',
	args: [listArg],
	options: { by: byOption },
	columns: namedColumns,
	output: 'the list',
	exits: [3],
	examples: ['mailctl lists get 12', "mailctl lists get 'Monthly news' -o json"],
	run: async (cx, { args, options }) => {
		const api = await cx.api();
		const found = await resolveList(api, args.list, { by: options.by, signal: cx.signal });
		if (!showsPublicName(cx)) return cx.out.record(found, listColumns);
		if (isNamePicked(cx)) await need(api, 'lists', '--fields public_name');
		const { lists } = (await api.capabilities()).ext;
		if (lists === undefined) return cx.out.record(found, listColumns);
		const { public_name } = await lists.get(found.id, { signal: cx.signal });
		return cx.out.record({ ...found, public_name }, namedColumns);
	},
});

const publicName = {
	kind: 'text',
	summary: 'set the name that recipients see when they unsubscribe',
} as const;

const create = command({
	name: 'create',
	summary: 'create a list',
	options: {
		name: { kind: 'text', summary: 'set the name', required: true, ask: 'Name of the list:' },
		emailReason: {
			kind: 'text',
			summary: 'tell subscribers why they get mail',
			required: true,
			ask: 'Why do subscribers get mail? (#email_reason# in mails):',
		},
		publicName,
	},
	columns: namedColumns,
	writes: true,
	output: 'the new list',
	exits: [5],
	examples: [
		"mailctl lists create --name 'Monthly news' --email-reason 'You signed up on our site'",
		"mailctl lists create --name '2026 import DE' --public-name 'Monthly news' --email-reason 'You signed up'",
	],
	run: async (cx, { options }) => {
		const input = { name: options.name, email_reason: options.emailReason };
		const { details, named } = await withPublicName(cx, input, options.publicName);
		const created = await createRecord(cx, {
			what: `create list "${input.name}"`,
			plan: { create: named },
			input,
			make: (api) => api.lists.create(input, { signal: cx.signal }),
		});
		if (created === null) return;
		const { list, columns } = await putPublicName(cx, created, details, options.publicName);
		await cx.out.created(list, columns);
	},
});

const update = command({
	name: 'update',
	summary: 'change a list',
	args: [listArg],
	options: {
		name: { kind: 'text', summary: 'change the name' },
		emailReason: { kind: 'text', summary: 'change the reason' },
		publicName: { ...publicName, summary: 'change the name that recipients see; an empty one clears it' },
		replace: { kind: 'flag', summary: 'send PUT in place of PATCH' },
		by: byOption,
	},
	changes: ['name', 'emailReason', 'publicName'],
	columns: namedColumns,
	writes: true,
	output: 'the changed list',
	exits: [3, 5],
	examples: [
		"mailctl lists update 12 --name 'Weekly news'",
		"mailctl lists update 12 --public-name 'Weekly news'",
	],
	run: async (cx, { args, options }) => {
		const patch = given({ name: options.name, email_reason: options.emailReason });
		const found = await resolveList(await cx.api(), args.list, { by: options.by, signal: cx.signal });
		const { details, named } = await withPublicName(cx, patch, options.publicName);
		const verb = options.replace ? 'replace' : 'patch';
		const changed = await change(cx, {
			what: `change list ${found.id}`,
			plan: { update: found.id, with: named },
			input: patch,
			make: async ({ lists }) =>
				Object.keys(patch).length === 0 ? found : lists[verb](found.id, patch, { signal: cx.signal }),
		});
		if (changed === null) return;
		const { list, columns } = await putPublicName(cx, changed, details, options.publicName);
		await cx.out.record(list, columns);
	},
});

const inSlices =
	'Deletes a few thousand subscribers at a time, so that other processes can write meanwhile. After Ctrl-C or a kill, ' +
	'the list and the other subscribers remain. Run the same command again to continue.';

const remove = command({
	name: 'delete',
	summary: 'delete lists with their subscribers',
	description: inSlices,
	args: [{ ...listArg, summary: 'ids or exact names', many: true }],
	options: { by: byOption },
	writes: true,
	severity: 'severe',
	...answers({ deleted: '[ids]' }),
	exits: [3, 9],
	examples: ["mailctl lists delete 12 --confirm 'Monthly news'", 'mailctl lists delete 12 13 --confirm 2'],
	run: async (cx, { args, options }) => {
		const api = await cx.api();
		const how = { by: options.by, signal: cx.signal };
		const found = await findEach(args.list, (text) => resolveList(api, text, how));
		const people = found.reduce((sum, one) => sum + one.overall_subscribers_count, 0);
		const names = found.map(({ id, name }) => `${id} "${name}"`).join(', ');
		const what = `delete list${found.length === 1 ? '' : 's'} ${names} with ${counted(people, 'subscriber')}`;
		if (cx.dryRun) return cx.wouldDo(what, { delete: found.map(({ id }) => id) });
		const [only] = found;
		const name = found.length === 1 && only !== undefined ? only.name : String(found.length);
		await cx.confirm({ kind: 'severe', what: `${what} for good`, name });
		return deleteEach(cx, found, 'list', ({ id }) => api.lists.delete(id, { signal: cx.signal }));
	},
});

const clear = command({
	name: 'clear',
	summary: 'delete all subscribers of a list',
	description: inSlices,
	args: [listArg],
	options: { by: byOption },
	writes: true,
	severity: 'severe',
	...answers({ list_id: 'id', deleted: 'count' }),
	exits: [3, 9],
	examples: ["mailctl lists clear 12 --confirm 'Monthly news'"],
	run: async (cx, { args, options }) => {
		const api = await cx.api();
		const { id, name, ...found } = await resolveList(api, args.list, { by: options.by, signal: cx.signal });
		const people = found.overall_subscribers_count;
		const what = `delete the ${counted(people, 'subscriber')} of list ${id} "${name}"`;
		if (cx.dryRun) return cx.wouldDo(what, { clear: id, subscribers: people });
		await cx.confirm({ kind: 'severe', what: `${what} for good`, name });
		const { deleted, failed } = await clearSubscribers(cx, api, id);
		await cx.out.document({ list_id: id, deleted }, `deleted ${counted(deleted, 'subscriber')}`);
		return failed === 0 ? exits.done : exits.partly;
	},
});

export const group: CommandGroup = {
	name: 'lists',
	summary: 'manage mailing lists',
	examples: [
		"mailctl lists create --name 'Monthly news' --email-reason 'You signed up on our site'",
		'mailctl lists list --match news --sort -active_subscribers_count -o json',
	],
	commands: [list, get, create, update, remove, clear],
};

/**
 * Other services cannot delete in bulk. Collect all ids before the first deletion, because deletions shift the pages.
 */
async function clearSubscribers(cx: CommandContext, api: Api, listId: number) {
	const call = { signal: cx.signal };
	const { ext } = await api.capabilities();
	if (ext.subscribers !== undefined) return { deleted: await ext.subscribers.clear(listId, call), failed: 0 };
	const subscribers = api.subscribers(listId);
	const ids: { id: number }[] = [];
	for await (const { id } of walk(subscribers, {}, call)) ids.push({ id });
	const { done, failed } = await eachOf(cx, ids, ({ id }) => subscribers.delete(id, call));
	return { deleted: done.length, failed };
}

function showsPublicName(cx: CommandContext): boolean {
	return cx.out.format === 'table' || cx.out.format === 'wide' || isNamePicked(cx);
}

function isNamePicked({ globals }: CommandContext): boolean {
	return parseFields(globals.fields)?.includes('public_name') === true;
}

type PublicName = string | undefined;

/**
 * Validates the public name before the first request. The service receives the name only in the second request, after
 * the first one has created or changed the list. Throws `ApiError` (exit code 5).
 */
async function withPublicName<I extends object>(cx: CommandContext, input: I, publicName: PublicName) {
	if (publicName === undefined) return { details: null, named: input };
	const details = await need(await cx.api(), 'lists', '--public-name');
	const named = { ...input, public_name: publicName };
	const { listDetailsFields } = await import('../../api/inputs.js');
	const parsed = listDetailsFields.parse(named, 'patch');
	if (parsed.kind === 'invalid') await explained(Promise.reject(invalid(parsed.errors)), { input: named });
	return { details, named };
}

type Details = ListsPlus | null;

async function putPublicName(cx: CommandContext, list: NamedList, details: Details, publicName: PublicName) {
	if (details === null || publicName === undefined) return { list, columns: listColumns };
	const { public_name } = await details.patch(list.id, { public_name: publicName }, { signal: cx.signal });
	const shows = showsPublicName(cx);
	return { list: shows ? { ...list, public_name } : list, columns: shows ? namedColumns : listColumns };
}
