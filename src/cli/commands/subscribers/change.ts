/** Creating, changing and deleting subscribers. */
import type { SubscriberInput } from '../../../api/inputs.js';
import type { Subscriber } from '../../../api/records.js';
import { assertChange } from '../../change.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { namesOf } from '../../names.js';
import { explained, type Refused } from '../../refusals.js';
import { agreeToAll, deleteEach, eachOf, findEach, nameOrCount } from '../../several.js';
import { shellWord } from '../../shell-word.js';
import {
	findSubscriber,
	type InList,
	inList,
	listOption,
	resolveSubscriber,
	subscriberArg,
	subscriberColumns,
} from './lookup.js';
import { assertMeta, change, readMeta } from './meta.js';

const manyArg = {
	name: 'subscriber',
	summary: 'ids or addresses; - reads them from standard input',
	many: true,
} as const;

const metaOptions = {
	meta: { kind: 'pairs', summary: 'a variable and its value, a text' },
	metaJson: { kind: 'content', summary: 'meta as a JSON object: itself, @FILE or -' },
} as const;

export const create = command({
	name: 'create',
	summary: 'add a subscriber',
	options: {
		...listOption,
		email: { kind: 'text', summary: 'the address', required: true, ask: 'E-mail address:' },
		name: { kind: 'text', summary: 'the name' },
		...metaOptions,
		inactive: { kind: 'flag', summary: 'not to be written to' },
		ifExists: {
			kind: 'choice',
			choices: ['error', 'skip', 'update'],
			default: 'error',
			summary: 'when the address is in the list already',
		},
	},
	columns: subscriberColumns,
	writes: true,
	output: 'the subscriber',
	exits: [3, 5],
	examples: ['mailctl subscribers create -l 12 --email ann@example.com --name Ann --meta city=Oslo'],
	run: async (cx, { options }) => {
		const { list, subscribers } = await inList(cx, options);
		const meta = await readMeta(options);
		const input: SubscriberInput = {
			email: options.email,
			...(options.name !== undefined && { name: options.name }),
			...(meta !== null && { meta }),
			...(options.inactive && { is_active: false }),
		};
		const existing =
			options.ifExists === 'error' ? null : await findSubscriber(subscribers, options.email, cx.signal);
		if (existing !== null && options.ifExists === 'skip') return cx.out.created(existing, subscriberColumns);
		if (cx.dryRun)
			return cx.wouldDo(`${existing === null ? 'add' : 'update'} ${input.email} in list ${list.id}`, {
				create: input,
			});
		if (existing === null)
			return cx.out.created(
				await explained(subscribers.create(input, { signal: cx.signal }), { input, hint: creationHint }),
				subscriberColumns,
			);
		const { email: _, meta: merged, ...patch } = input;
		const changed = await change(cx, list, existing, {
			patch,
			set: merged ?? {},
			unset: [],
			replaceMeta: null,
		});
		await cx.out.created(changed, subscriberColumns);
	},
});

export const update = command({
	name: 'update',
	summary: 'change a subscriber',
	description: '--meta and --unset-meta change single variables; --meta-json replaces them all.',
	args: [subscriberArg],
	options: {
		...listOption,
		email: { kind: 'text', summary: 'a new address' },
		name: { kind: 'text', summary: 'a new name' },
		...metaOptions,
		unsetMeta: { kind: 'list', placeholder: 'KEY', summary: 'remove a variable' },
		active: { kind: 'tri', off: 'inactive', summary: 'to be written to, or not' },
		replace: {
			kind: 'flag',
			summary: 'PUT: what is not given returns to its default; wants --active or --inactive',
		},
	},
	columns: subscriberColumns,
	writes: true,
	output: 'the changed subscriber',
	exits: [3, 5],
	examples: [
		'mailctl subscribers update ann@example.com -l 12 --meta city=Bergen',
		'mailctl subscribers update 7 -l 12 --inactive',
	],
	run: async (cx, { args, options }) => {
		const { list, subscribers } = await inList(cx, options);
		const replaceMeta =
			options.metaJson === undefined ? null : await readMeta({ metaJson: options.metaJson, meta: {} });
		const patch = {
			...(options.email !== undefined && { email: options.email }),
			...(options.name !== undefined && { name: options.name }),
			...(options.active !== undefined && { is_active: options.active }),
		};
		const wanted = { patch, set: options.meta, unset: options.unsetMeta, replaceMeta };
		assertChange(
			{
				...patch,
				...options.meta,
				...Object.fromEntries(options.unsetMeta.map((key) => [key, null])),
				...(replaceMeta !== null && { meta: replaceMeta }),
			},
			['--email', '--name', '--meta', '--unset-meta', '--active', '--inactive'],
		);
		assertMeta(options);
		if (options.replace && options.active === undefined) {
			throw new UsageError(
				'--replace needs --active or --inactive: a PUT without it would activate the subscriber',
			);
		}
		const current = await resolveSubscriber(subscribers, args.subscriber, list, cx.signal);
		if (cx.dryRun) return cx.wouldDo(`change ${current.email}`, { update: current.id, with: wanted });
		const meta = { ...replaceMeta, ...options.meta };
		const changed = options.replace
			? subscribers.replace(current.id, { email: current.email, ...patch, meta }, { signal: cx.signal })
			: change(cx, list, current, wanted);
		const record = await explained(changed, { input: { ...patch, meta }, hint: subscriberHint });
		await cx.out.record(record, subscriberColumns);
	},
});

export const activate = toggle('activate', true);
export const deactivate = toggle('deactivate', false);

function toggle(name: 'activate' | 'deactivate', is_active: boolean) {
	return command({
		name,
		summary: is_active ? 'let subscribers be written to again' : 'no longer write to subscribers',
		args: [manyArg],
		options: listOption,
		columns: subscriberColumns,
		writes: true,
		output: 'an array of the changed subscribers',
		exits: [3, 9],
		examples: [`mailctl subscribers ${name} ann@example.com -l 12`],
		run: async (cx, { args, options }) => {
			const within = await inList(cx, options);
			const { subscribers } = within;
			const found = await findAll(cx, within, args.subscriber);
			if (cx.dryRun) return cx.wouldDo(`${name} ${describe(found)}`, { [name]: found.map(({ id }) => id) });
			await agreeToAll(cx, { what: `${name} ${describe(found)}`, count: found.length, few: 'go on' });
			const changed: Subscriber[] = [];
			const { failed } = await eachOf(cx, found, async ({ id }) => {
				const change = subscribers.patch(id, { is_active }, { signal: cx.signal });
				const told = { input: { is_active }, hint: subscriberHint };
				// One of several that is refused is told by its id, and the rest goes on.
				changed.push(await (found.length === 1 ? explained(change, told) : change));
			});
			await cx.out.rows(changed, subscriberColumns, { all: true });
			if (is_active) await sayLifted(cx, found);
			return failed === 0 ? exits.done : exits.partly;
		},
	});
}

/** It was their wish: whoever overrides it should have meant to. */
async function sayLifted(cx: CommandContext, before: readonly Subscriber[]): Promise<void> {
	const gone = before.filter(({ disable_reason }) => disable_reason === 'UNSUBSCRIBED');
	const [first] = gone;
	if (first === undefined) return;
	const others = gone.length === 1 ? '' : ` and ${gone.length - 1} more`;
	await cx.warn(`${first.email}${others} had unsubscribed; that is lifted`);
}

export const remove = command({
	name: 'delete',
	aliases: ['rm'],
	summary: 'delete subscribers',
	description: 'Who unsubscribed or bounced stays suppressed.',
	args: [manyArg],
	options: listOption,
	writes: true,
	severity: 'mild',
	output: '{"deleted": [ids]}',
	exits: [3, 9],
	examples: [
		'mailctl subscribers delete ann@example.com -l 12 --yes',
		'mailctl subscribers delete - -l 12 --confirm 250 < ids.txt',
	],
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		const { list, subscribers } = await inList(cx, options);
		const found = await findAll(cx, { list, subscribers }, args.subscriber);
		if (cx.dryRun) {
			await cx.wouldDo(`delete ${describe(found)}`, { delete: found.map(({ id }) => id) });
			return undefined;
		}
		const what = `delete ${describe(found)} of list ${list.id} "${list.name}"`;
		await agreeToAll(cx, { what, count: found.length, few: 'ask' });
		const remove = ({ id }: Subscriber) => subscribers.delete(id, { signal: cx.signal });
		return deleteEach(cx, found, { noun: 'subscriber', remove });
	},
});

function subscriberHint({ path, code, message }: Refused): string | undefined {
	// Over HTTP the code is the first complaint's alone.
	if (code === 'suppressed' || message.includes('is suppressed'))
		return 'mailctl suppressions remove ADDRESS, if it was asked for';
	const unknown = /^Unknown variable: (.*)\.$/.exec(message)?.[1];
	if (path.startsWith('meta') && unknown !== undefined)
		return `mailctl fields create --variable ${shellWord(unknown)} --name NAME`;
	return undefined;
}

function creationHint(refused: Refused): string | undefined {
	if (refused.code === 'unique') return '--if-exists update changes the one that is there';
	if (refused.message.includes('was erased'))
		return 'mailctl subscribers erase ADDRESS --lift takes the address again';
	return subscriberHint(refused);
}

function describe(found: readonly Subscriber[]): string {
	return nameOrCount(
		found.map(({ email }) => email),
		'subscribers',
	);
}

function findAll(
	cx: CommandContext,
	{ list, subscribers }: InList,
	texts: readonly string[],
): Promise<readonly Subscriber[]> {
	return findEach(namesOf(cx, texts), (text) => resolveSubscriber(subscribers, text, list, cx.signal));
}
