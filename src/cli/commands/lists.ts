import type { Api } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import { ApiError } from '../../api/errors.js';
import type { List } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl, type OwnCommand } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { answer, type Columns, column } from '../render/columns.js';
import { counted, numberText } from '../render/units.js';
import { deleteEach, eachOf, findEach } from '../verbs/bulk.js';
import { mayBreakOff, maybeCreated } from '../verbs/changing.js';
import { foresee } from '../verbs/dry-run.js';
import { listOptions, listRows, walk } from '../verbs/listing.js';
import { explained } from '../verbs/refusals.js';
import { byOption, resolveList } from '../verbs/resolve.js';
import { askReason } from './lists/offer.js';
import {
	assertNames,
	type NamedList,
	publicNameColumn,
	putPublicName,
	showsPublicName,
	withPublicName,
} from './lists/public-name.js';
import { canceledNote, cancelNote, countWaiting } from './lists/waiting.js';

const idColumn = column<List, 'id'>('id', 'ID', { align: 'right' });
const nameColumn = column<List, 'name'>('name', 'NAME', { isKept: 'name', isName: true });
const otherColumns: Columns<List> = [
	column('active_subscribers_count', 'ACTIVE', { align: 'right', isCount: true }),
	column('inactive_subscribers_count', 'INACTIVE', { align: 'right', isCount: true }),
	column('overall_subscribers_count', 'ALL', { align: 'right', isCount: true, wide: true }),
	column('email_reason', 'EMAIL REASON', { wide: true }),
	column('date_created', 'CREATED', { isOptional: true, time: 'text' }),
];
export const listColumns: Columns<List> = [idColumn, nameColumn, ...otherColumns];

const namedColumns: Columns<NamedList> = [idColumn, nameColumn, publicNameColumn, ...otherColumns];

const listArg = { name: 'list', summary: 'id or exact name', of: 'list', ask: 'Which list:' } as const;

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'show the lists',
	options: listOptions,
	columns: listColumns,
	output: 'an array of lists, as the service answers them',
	examples: [
		'mailctl lists list',
		'mailctl lists list --match news --sort -active_subscribers_count -o json',
	],
	run: async (cx, { options }) => {
		const api = await cx.api();
		await listRows(cx, options, {
			columns: listColumns,
			rows: (limit) => walk(api.lists, {}, { signal: cx.signal, limit }),
			matches: (one, text) => one.name.toLowerCase().includes(text.toLowerCase()),
		});
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
		const found = await resolveList(await cx.api(), args.list, { by: options.by, signal: cx.signal });
		const named = await withPublicName(cx, found);
		await (named === null ? cx.out.record(found, listColumns) : cx.out.record(named, namedColumns));
	},
});

const publicName = {
	kind: 'text',
	summary: 'what recipients read in its place when they unsubscribe',
} as const;

const create = command({
	name: 'create',
	summary: 'create a list',
	options: {
		name: { kind: 'text', summary: 'what it is called', required: true, ask: 'Name of the list:' },
		emailReason: {
			kind: 'text',
			summary: 'why its subscribers get mail, shown to them',
			required: true,
			ask: askReason,
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
		const { publicName } = options;
		const all = publicName === undefined ? input : { ...input, public_name: publicName };
		const details = publicName === undefined ? null : await need(await cx.api(), 'lists', '--public-name');
		if (details !== null) await assertNames(all, 'create');
		if (cx.dryRun) {
			const { listFields } = await import('../../api/lists.js');
			await foresee(cx, (api) => api.lists.create(input), { fields: listFields, input, mode: 'create' });
			return cx.wouldDo(`create list "${input.name}"`, { create: all });
		}
		const api = await cx.api();
		const creating = explained(api.lists.create(input, { signal: cx.signal }), { input });
		const created = await maybeCreated(creating, {
			what: `the list "${input.name}"`,
			look: mailctl('lists', 'list', '--match', input.name),
			isUnique: false,
		});
		if (details === null || publicName === undefined) return cx.out.created(created, listColumns);
		const named = await putPublicName(cx, details, { list: created, publicName });
		await (showsPublicName(cx) ? cx.out.created(named, namedColumns) : cx.out.created(created, listColumns));
	},
});

const update = command({
	name: 'update',
	summary: 'change a list',
	args: [listArg],
	options: {
		name: { kind: 'text', summary: 'a new name' },
		emailReason: { kind: 'text', summary: 'a new reason' },
		publicName: { ...publicName, summary: `${publicName.summary}; an empty one clears it` },
		replace: { kind: 'flag', summary: 'with PUT in place of PATCH, for which what is not given stays too' },
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
		const patch = {
			...(options.name === undefined ? {} : { name: options.name }),
			...(options.emailReason === undefined ? {} : { email_reason: options.emailReason }),
		};
		const { publicName } = options;
		const all = publicName === undefined ? patch : { ...patch, public_name: publicName };
		const api = await cx.api();
		const details = publicName === undefined ? null : await need(api, 'lists', '--public-name');
		const found = await resolveList(api, args.list, { by: options.by, signal: cx.signal });
		const { id } = found;
		if (details !== null) await assertNames(all, 'patch');
		const write = async () =>
			Object.keys(patch).length === 0
				? found
				: options.replace
					? api.lists.replace(id, patch, { signal: cx.signal })
					: api.lists.patch(id, patch, { signal: cx.signal });
		if (cx.dryRun) {
			const { listFields } = await import('../../api/lists.js');
			await foresee(cx, write, { fields: listFields, input: patch, mode: 'patch' });
			return cx.wouldDo(`change list ${id}`, { update: id, with: all });
		}
		const changed = await explained(write(), { input: patch });
		if (details === null || publicName === undefined) return cx.out.record(changed, listColumns);
		const named = await putPublicName(cx, details, { list: changed, publicName });
		await (showsPublicName(cx) ? cx.out.record(named, namedColumns) : cx.out.record(changed, listColumns));
	},
});

const remove = command({
	name: 'delete',
	aliases: ['rm'],
	summary: 'delete lists with their subscribers',
	description:
		'A few thousand subscribers are deleted at a time, while others write. ' +
		'After Ctrl-C or a kill the list is still there with the rest of them: the same command goes on.',
	args: [{ ...listArg, summary: 'ids or exact names', many: true }],
	options: { by: byOption },
	writes: true,
	severity: 'severe',
	columns: answer('deleted'),
	output: '{"deleted": [ids]}',
	exits: [3, 9],
	examples: ["mailctl lists delete 12 --confirm 'Monthly news'", 'mailctl lists delete 12 13 --confirm 2'],
	run: async (cx, { args, options }) => {
		const api = await cx.api();
		const how = { by: options.by, signal: cx.signal };
		const found = await findEach(args.list, (text) => resolveList(api, text, how));
		const ids = found.map(({ id }) => id);
		const waiting = await countWaiting(cx, ids);
		const what = `delete ${describe(found)}`;
		const cancels = cancelNote(waiting);
		if (cx.dryRun) return cx.wouldDo(`${what}${cancels}`, { delete: ids, ...(waiting > 0 && { waiting }) });
		const [only] = found;
		const name = found.length === 1 && only !== undefined ? only.name : String(found.length);
		await cx.confirm({ kind: 'severe', what: `${what} for good${cancels}`, name });
		const rest = new Set(found);
		const remove = async (list: List) => {
			const deleting = api.lists.delete(list.id, { signal: cx.signal });
			await mayBreakOff(cx, deleting, { left: left(api, list), again: () => deleteAgain([...rest]) });
			rest.delete(list);
		};
		return deleteEach(cx, found, { noun: 'list', remove, also: canceledNote(waiting) });
	},
});

const clear = command({
	name: 'clear',
	summary: 'delete all subscribers of a list',
	description:
		'A few thousand subscribers are deleted at a time, while others write. ' +
		'After Ctrl-C or a kill the list is still there with the rest of them: the same command goes on.',
	args: [listArg],
	options: { by: byOption },
	writes: true,
	severity: 'severe',
	columns: answer('list_id', 'deleted'),
	output: '{"list_id": id, "deleted": count}',
	exits: [3, 9],
	examples: ["mailctl lists clear 12 --confirm 'Monthly news'"],
	run: async (cx, { args, options }) => {
		const api = await cx.api();
		const found = await resolveList(api, args.list, { by: options.by, signal: cx.signal });
		const waiting = await countWaiting(cx, [found.id]);
		const what = `delete the ${counted(found.overall_subscribers_count, 'subscriber')} of list ${found.id} "${found.name}"`;
		const cancels = cancelNote(waiting);
		const plan = { clear: found.id, subscribers: found.overall_subscribers_count };
		if (cx.dryRun) return cx.wouldDo(`${what}${cancels}`, { ...plan, ...(waiting > 0 && { waiting }) });
		await cx.confirm({ kind: 'severe', what: `${what} for good${cancels}`, name: found.name });
		return clearSubscribers(cx, api, found, canceledNote(waiting));
	},
});

export const group: CommandGroup = {
	name: 'lists',
	summary: 'mailing lists',
	examples: [
		"mailctl lists create --name 'Monthly news' --email-reason 'You signed up on our site'",
		'mailctl lists list --match news --sort -active_subscribers_count -o json',
	],
	commands: [list, get, create, update, remove, clear],
};

function describe(lists: readonly List[]): string {
	const people = lists.reduce((sum, one) => sum + one.overall_subscribers_count, 0);
	const names = lists.map((one) => `${one.id} "${one.name}"`).join(', ');
	return `list${lists.length === 1 ? '' : 's'} ${names} with ${counted(people, 'subscriber')}`;
}

/** What a stopped deletion leaves of a list, as it is then: `list 3 "News" still has 40 of 50 subscribers`. */
function left({ lists }: Api, { id, name, overall_subscribers_count: before }: List) {
	return async (signal: AbortSignal): Promise<string | null> => {
		const now = await lists.get(id, { signal }).then(
			({ overall_subscribers_count }) => numberText(overall_subscribers_count),
			(error: unknown) => (error instanceof ApiError && error.code === 'not_found' ? null : 'some'),
		);
		return now === null ? null : `list ${id} "${name}" still has ${now} of ${counted(before, 'subscriber')}`;
	};
}

function deleteAgain(rest: readonly List[]): OwnCommand {
	const [only] = rest;
	const confirm = rest.length === 1 && only !== undefined ? only.name : String(rest.length);
	return mailctl('lists', 'delete', ...rest.map(({ id }) => String(id)), '--confirm', confirm);
}

/** The document has no bulk deletion: at once where that is offered, elsewhere one by one, ids collected first. */
async function clearSubscribers(cx: CommandContext, api: Api, found: List, also: string): Promise<ExitCode> {
	const again = () => mailctl('lists', 'clear', String(found.id), '--confirm', found.name);
	const leaves = { left: left(api, found), again };
	const { ext } = await api.capabilities();
	if (ext.subscribers !== undefined) {
		const { subscribers: ours } = ext;
		const deleted = await mayBreakOff(cx, ours.clear(found.id, { signal: cx.signal }), leaves);
		await cx.out.document({ list_id: found.id, deleted }, `deleted ${counted(deleted, 'subscriber')}${also}`);
		return exits.done;
	}
	const subscribers = api.subscribers(found.id);
	const ids: { id: number }[] = [];
	for await (const { id } of walk(subscribers, {}, { signal: cx.signal })) ids.push({ id });
	const remove = ({ id }: { id: number }) => subscribers.delete(id, { signal: cx.signal });
	const { done, failed } = await mayBreakOff(cx, eachOf(cx, ids, remove), leaves);
	await cx.out.document(
		{ list_id: found.id, deleted: done.length },
		`deleted ${counted(done.length, 'subscriber')}`,
	);
	return failed === 0 ? exits.done : exits.partly;
}
