import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '../../../api/errors.js';
import type { SubscriberInput } from '../../../api/inputs.js';
import type { Meta, Subscriber } from '../../../api/records.js';
import type { JsonNumber } from '../../../api/schema/python.js';
import { texts } from '../../../api/schema/texts.js';
import { type ContentSource, command, type OptionValues } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { given } from '../../frame/values.js';
import { answers } from '../../render/columns.js';
import { shorten } from '../../render/width.js';
import {
	agreeToAll,
	change,
	changeEach,
	create as createRecord,
	deleteEach,
	findEach,
	nameOrCount,
	namesOf,
} from '../../verbs/changing.js';
import { withMetaColumns } from '../../verbs/field-names.js';
import { explained } from '../../verbs/refusals.js';
import {
	findSubscriber,
	type InList,
	inList,
	listOption,
	resolveSubscriber,
	subscriberArg,
	subscriberColumns,
} from './lookup.js';

const manyArg = {
	name: 'subscriber',
	summary: 'ids or addresses; - reads them from standard input',
	many: true,
	of: 'subscriber',
	ask: 'Which subscriber:',
} as const;

const metaOptions = {
	meta: { kind: 'pairs', summary: 'set a variable to a text' },
	metaJson: { kind: 'content', summary: 'replace all variables with this JSON object (text, @FILE or -)' },
} as const;

export const create = command({
	name: 'create',
	summary: 'add a subscriber',
	options: {
		...listOption,
		email: {
			kind: 'text',
			summary: 'set the address',
			required: true,
			of: 'address',
			ask: 'E-mail address:',
		},
		name: { kind: 'text', summary: 'set the name' },
		...metaOptions,
		inactive: { kind: 'flag', summary: 'create an inactive subscriber' },
		ifExists: {
			kind: 'choice',
			choices: ['error', 'skip', 'update'],
			default: 'error',
			summary: 'choose what to do if the list has the address',
		},
	},
	columns: subscriberColumns,
	writes: true,
	output: 'the subscriber',
	exits: [3, 5],
	examples: ['mailctl subscribers create -l 12 --email ann@example.com --name Ann --meta city=Oslo'],
	run: async (cx, { options }) => {
		const within = await inList(cx, options);
		const { email, name, inactive, ifExists } = options;
		const input: SubscriberInput = {
			email,
			...given({ name, meta: await readMeta(options), is_active: inactive ? false : undefined }),
		};
		const columns = await withMetaColumns(cx, subscriberColumns);
		const created = await createRecord(cx, {
			...(await foreseen(cx, within, input, ifExists)),
			input,
			hint: ({ code }) =>
				code === 'unique' ? 'to change the existing subscriber, add --if-exists update' : undefined,
			make: () =>
				ifExists === 'error'
					? within.subscribers.create(input, { signal: cx.signal })
					: addUnlessThere(cx, within, input, ifExists === 'skip'),
		});
		if (created !== null) await cx.out.created(created, columns);
	},
});

type IfExists = 'error' | 'skip' | 'update';

async function foreseen(cx: CommandContext, within: InList, input: SubscriberInput, ifExists: IfExists) {
	const { email, ...patch } = input;
	const there = cx.dryRun && ifExists !== 'error' ? await findSubscriber(cx, within, email) : null;
	const where = `in list ${within.list.id}`;
	if (there === null) return { what: `add ${email} ${where}`, plan: { create: input } };
	if (ifExists === 'skip')
		return { what: `leave ${there.email} ${where} as it is`, plan: { skip: there.id } };
	return { what: `update ${there.email} ${where}`, plan: { update: there.id, with: patch } };
}

/**
 * Other services cannot add or update in one call. If the creation fails, another command may have added the address.
 */
async function addUnlessThere(
	cx: CommandContext,
	within: InList,
	input: SubscriberInput,
	isSkipped: boolean,
) {
	const call = { signal: cx.signal };
	const { list, subscribers } = within;
	const { ext } = await (await cx.api()).capabilities();
	if (ext.subscribers !== undefined)
		return ext.subscribers.add(list.id, input, { if_exists: isSkipped ? 'skip' : 'update' }, call);
	let there = await findSubscriber(cx, within, input.email);
	try {
		if (there === null) return await subscribers.create(input, call);
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		there = await findSubscriber(cx, within, input.email);
		if (there === null) throw error;
	}
	if (isSkipped) return there;
	const { email: _, meta: set = {}, ...patch } = input;
	return patchMerged(cx, within, there, { patch, set, unset: [], replaceMeta: null });
}

export const update = command({
	name: 'update',
	summary: 'change a subscriber',
	description: '--meta and --unset-meta change single variables; --meta-json replaces them all.',
	args: [subscriberArg],
	options: {
		...listOption,
		email: { kind: 'text', summary: 'change the address' },
		name: { kind: 'text', summary: 'change the name' },
		...metaOptions,
		unsetMeta: { kind: 'list', placeholder: 'KEY', summary: 'remove a variable' },
		active: { kind: 'tri', off: 'inactive', summary: 'activate or deactivate the subscriber' },
		replace: { kind: 'flag', summary: 'replace the whole subscriber; needs --active or --inactive' },
	},
	changes: ['email', 'name', 'meta', 'metaJson', 'unsetMeta', 'active'],
	columns: subscriberColumns,
	writes: true,
	output: 'the changed subscriber',
	exits: [3, 5],
	examples: [
		'mailctl subscribers update ann@example.com -l 12 --meta city=Bergen',
		'mailctl subscribers update 7 -l 12 --inactive',
	],
	run: async (cx, { args, options }) => {
		const { email, name, active, metaJson, meta: set, unsetMeta: unset, replace } = options;
		const replaceMeta = metaJson === undefined ? null : await parseMeta(metaJson);
		if (unset.length > 0 && (metaJson !== undefined || replace))
			throw new UsageError(
				'--unset-meta cannot be used with --meta-json or --replace, which replace all variables',
			);
		const both = unset.find((key) => Object.hasOwn(set, key));
		if (both !== undefined) throw new UsageError(`--meta and --unset-meta both name "${both}"`);
		if (replace && active === undefined)
			throw new UsageError(
				'--replace needs --active or --inactive: without either, a PUT would activate the subscriber',
			);
		const patch = given({ email, name, is_active: active });
		const columns = await withMetaColumns(cx, subscriberColumns);
		const wanted = { patch, set, unset, replaceMeta };
		const within = await inList(cx, options);
		const current = await resolveSubscriber(cx, within, args.subscriber);
		const meta = { ...replaceMeta, ...set };
		const whole = { email: current.email, ...patch, meta };
		const merged = metaAfter(current, wanted);
		const plan = replace ? whole : { ...patch, ...(merged !== null && { meta: merged }) };
		const what = `change ${current.email}`;
		const isLifted = active === true && unsubscribedOf([current]) !== '';
		const changed = await change(cx, {
			what,
			plan: { update: current.id, with: plan },
			question: isLifted ? { kind: 'mild', what: `${what} and lift the unsubscription` } : undefined,
			input: { ...patch, meta },
			make: () =>
				replace
					? within.subscribers.replace(current.id, whole, { signal: cx.signal })
					: patchMerged(cx, within, current, wanted),
		});
		if (changed !== null) await cx.out.record(changed, columns);
	},
});

export const activate = toggle('activate', true);
export const deactivate = toggle('deactivate', false);

function toggle(name: 'activate' | 'deactivate', is_active: boolean) {
	return command({
		name,
		summary: `${name} subscribers`,
		...(is_active && { description: 'Activating a person who unsubscribed must be confirmed (--yes).' }),
		args: [manyArg],
		options: listOption,
		columns: subscriberColumns,
		writes: true,
		output: 'an array of the changed subscribers',
		exits: [3, 9],
		examples: [`mailctl subscribers ${name} ann@example.com -l 12`],
		run: async (cx, { args, options }) => {
			const columns = await withMetaColumns(cx, subscriberColumns);
			const within = await inList(cx, options);
			const found = await findAll(cx, within, args.subscriber);
			const lifted = is_active && !cx.dryRun ? unsubscribedOf(found) : '';
			const and = lifted === '' ? '' : ` and lift the unsubscription of ${lifted}`;
			const { exit } = await changeEach(cx, found, {
				what: (some) => `${name} ${describe(some)}${and}`,
				few: lifted === '' ? 'go on' : 'ask',
				plan: (ids) => (is_active ? { activate: ids } : { deactivate: ids }),
				make: ({ id }) => {
					const patched = within.subscribers.patch(id, { is_active }, { signal: cx.signal });
					// Do not use `explained` for several subscribers: after its `CliError`, `changeEach` does not continue.
					return found.length === 1 ? explained(patched, { input: { is_active } }) : patched;
				},
				columns,
			});
			if (lifted !== '') await cx.warn(`lifted the unsubscription of ${lifted}`);
			return exit;
		},
	});
}

function unsubscribedOf(found: readonly Subscriber[]): string {
	const [first, ...others] = found.filter(({ disable_reason }) => disable_reason === 'UNSUBSCRIBED');
	if (first === undefined) return '';
	return `${first.email}${others.length === 0 ? '' : ` and ${others.length} more`}`;
}

export const remove = command({
	name: 'delete',
	summary: 'delete subscribers',
	description: 'An address that unsubscribed or bounced stays suppressed.',
	args: [manyArg],
	options: listOption,
	writes: true,
	severity: 'mild',
	...answers({ deleted: '[ids]' }),
	exits: [3, 9],
	examples: [
		'mailctl subscribers delete ann@example.com -l 12 --yes',
		'mailctl subscribers delete - -l 12 --confirm 250 < ids.txt',
	],
	run: async (cx, { args, options }) => {
		const within = await inList(cx, options);
		const { list, subscribers } = within;
		const found = await findAll(cx, within, args.subscriber);
		if (cx.dryRun) return cx.wouldDo(`delete ${describe(found)}`, { delete: found.map(({ id }) => id) });
		const what = `delete ${describe(found)} of list ${list.id} "${list.name}"`;
		await agreeToAll(cx, { what, count: found.length, few: 'ask' });
		return deleteEach(cx, found, 'subscriber', ({ id }) => subscribers.delete(id, { signal: cx.signal }));
	},
});

function describe(found: readonly Subscriber[]): string {
	const names = found.map(({ email }) => email);
	return nameOrCount(names, 'subscribers');
}

function findAll(cx: CommandContext, within: InList, texts: readonly string[]) {
	return findEach(namesOf(cx, texts), (text) => resolveSubscriber(cx, within, text));
}

interface Wanted {
	patch: Partial<Omit<SubscriberInput, 'meta'>>;
	set: Meta;
	unset: readonly string[];
	replaceMeta: Meta | null;
}

async function patchMerged(cx: CommandContext, within: InList, current: Subscriber, wanted: Wanted) {
	const { list, subscribers } = within;
	const { patch, set, unset, replaceMeta } = wanted;
	const call = { signal: cx.signal };
	const meta = metaAfter(current, wanted);
	if (meta === null) return subscribers.patch(current.id, patch, call);
	const { ext } = await (await cx.api()).capabilities();
	if (ext.subscribers !== undefined && replaceMeta === null)
		return ext.subscribers.merge(list.id, current.id, { patch, set, unset }, call);
	const changed = await subscribers.patch(current.id, { ...patch, meta }, call);
	if (ext.subscribers !== undefined) return changed;
	const after = await subscribers.get(current.id, call);
	if (!isDeepStrictEqual(after.meta, changed.meta)) {
		const text = `another call changed the meta of ${current.email} at the same time; check the meta and try again`;
		throw new CliError('conflict', exits.refused, text, { retryable: true });
	}
	// A service may store a value in another form. Only an unchanged value shows that the service ignored the change.
	const textOf = (of: Readonly<Record<string, unknown>>, key: string) => String(of[key] ?? '');
	const ignored = Object.keys({ ...current.meta, ...meta }).filter(
		(key) =>
			textOf(after.meta, key) !== textOf(meta, key) && textOf(after.meta, key) === textOf(current.meta, key),
	);
	if (ignored.length === 0) return after;
	const text = `the service answered 200, but did not change the meta of ${current.email}: ${ignored.join(', ')}`;
	throw new CliError('bad_answer', exits.server, text);
}

function metaAfter(current: Subscriber, { set, unset, replaceMeta }: Wanted): Meta | null {
	if (replaceMeta !== null) return { ...replaceMeta, ...set };
	if (Object.keys(set).length === 0 && unset.length === 0) return null;
	const kept = Object.entries(current.meta).filter(([key]) => !unset.includes(key));
	return { ...Object.fromEntries(kept), ...set } as Meta;
}

type MetaOptions = Pick<OptionValues<typeof metaOptions>, 'meta' | 'metaJson'>;

async function readMeta({ meta, metaJson }: MetaOptions): Promise<Meta | undefined> {
	if (metaJson !== undefined) return { ...(await parseMeta(metaJson)), ...meta };
	return Object.keys(meta).length === 0 ? undefined : { ...meta };
}

async function parseMeta(source: ContentSource): Promise<Meta> {
	const { isRecord, parseJson, withoutExactNumbers } = await import('../../../api/json.js');
	const parsed = parseJson(await source.text(), { numbers: 'exact' });
	const value = parsed.kind === 'valid' ? withoutExactNumbers(parsed.value, numberOf) : null;
	if (!isRecord(value)) throw new UsageError('--meta-json is not a JSON object');
	return value as Meta;
}

/** Requests send numbers as doubles, so reject one that would lose digits. */
function numberOf(number: JsonNumber): number {
	const value = number.toNumber();
	if (value !== null) return value;
	throw new UsageError(`--meta-json: ${shorten(number.text, 60)}: ${texts.digits}`);
}
