import { need } from '../../api/capabilities.js';
import { ApiError } from '../../api/errors.js';
import type { Field } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { type Hint, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { answer, type Columns, column } from '../render/columns.js';
import { counted } from '../render/units.js';
import { mayBreakOff, maybeCreated } from '../verbs/changing.js';
import { foresee, notTaken } from '../verbs/dry-run.js';
import { walk } from '../verbs/listing.js';
import { explained, type Refused } from '../verbs/refusals.js';

const columns: Columns<Field> = [
	column('id', 'ID', { align: 'right' }),
	column('variable', 'VARIABLE', { isName: true }),
	column('name', 'NAME'),
	column('date_created', 'CREATED', { time: 'text', wide: true }),
];

const fieldArg = { name: 'field', summary: 'an id or a variable', of: 'field', ask: 'Which field:' } as const;

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'list the additional fields',
	examples: ['mailctl fields list', 'mailctl fields list -o json'],
	output: 'an array of fields',
	columns,
	async run(cx) {
		const api = await cx.api();
		await cx.out.rows(walk(api.fields, {}, { signal: cx.signal }), columns, { all: true });
	},
});

const get = command({
	name: 'get',
	summary: 'show one field',
	args: [fieldArg],
	examples: ['mailctl fields get city'],
	output: 'the field',
	exits: [3],
	columns,
	async run(cx, { args }) {
		await cx.out.record(await find(cx, args.field), columns);
	},
});

const create = command({
	name: 'create',
	summary: 'add a field',
	options: {
		variable: {
			kind: 'text',
			summary: 'its name in meta and in #variables#',
			required: true,
			of: 'variable',
			ask: 'Variable:',
		},
		name: { kind: 'text', summary: 'its name for people', required: true, ask: 'Name:' },
	},
	examples: ['mailctl fields create --variable city --name City'],
	output: 'the new field',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { options }) {
		const input = { variable: options.variable, name: options.name };
		if (cx.dryRun) {
			const { fieldFields } = await import('../../api/fields.js');
			const how = { fields: fieldFields, input, mode: 'create', hint: fieldHint } as const;
			await foresee(cx, (api) => api.fields.create(input), { ...how, beside: () => taken(cx, input, null) });
			return cx.wouldDo(`create the field ${input.variable}`, { create: input });
		}
		const api = await cx.api();
		const creating = explained(api.fields.create(input, { signal: cx.signal }), { input, hint: fieldHint });
		const created = await maybeCreated(creating, {
			what: `the field ${input.variable}`,
			look: mailctl('fields', 'get', input.variable),
			isUnique: true,
		});
		await cx.out.created(created, columns);
	},
});

const update = command({
	name: 'update',
	summary: 'change a field',
	description:
		'A new variable renames the key in the meta of every subscriber, in one transaction: two to four seconds for each ' +
		'million, in which other writers wait. Ctrl-C ends it, and nothing is renamed.',
	args: [fieldArg],
	options: {
		variable: { kind: 'text', summary: 'a new variable' },
		name: { kind: 'text', summary: 'a new name' },
		replace: { kind: 'flag', summary: 'PUT: both values are given anew' },
	},
	changes: ['variable', 'name'],
	examples: [
		'mailctl fields update city --name Town',
		'mailctl fields update city --variable town --confirm city',
	],
	output: 'the changed field',
	exits: [3, 5],
	writes: true,
	severity: 'severe',
	columns,
	async run(cx, { args, options }) {
		const field = await find(cx, args.field);
		const change = {
			...(options.variable !== undefined && { variable: options.variable }),
			...(options.name !== undefined && { name: options.name }),
		};
		const renames = options.variable !== undefined && options.variable !== field.variable;
		const uses = renames ? await countUses(cx, field.id) : 0;
		const api = await cx.api();
		// A PUT is sent as given: the service refuses a missing field in its own words.
		const call = { signal: cx.signal };
		const write = () =>
			options.replace
				? api.fields.replace(field.id, change as { variable: string; name: string }, call)
				: api.fields.patch(field.id, change, call);
		if (cx.dryRun) {
			const { fieldFields } = await import('../../api/fields.js');
			const mode = options.replace ? 'create' : 'patch';
			const how = { fields: fieldFields, input: change, mode, hint: fieldHint } as const;
			await foresee(cx, write, { ...how, beside: () => taken(cx, change, field.id) });
			return cx.wouldDo(`change the field ${field.variable}${usesNote(uses)}`, {
				update: field.id,
				with: change,
			});
		}
		if (uses !== 0) await confirm(cx, `rename ${field.variable} to ${options.variable}`, field, uses);
		await cx.out.record(await explained(cx.undoable(write), { input: change, hint: fieldHint }), columns);
	},
});

const remove = command({
	name: 'delete',
	aliases: ['rm'],
	summary: 'delete a field',
	description:
		'Its values are removed from every subscriber: this reads all of them, a few thousand at a time, while others write. ' +
		'After Ctrl-C or a kill the field is still there, and some subscribers hold it: the same command goes on.',
	args: [fieldArg],
	examples: ['mailctl fields delete city --confirm city'],
	columns: answer('deleted'),
	output: '{"deleted": [ids]}',
	exits: [3],
	writes: true,
	severity: 'severe',
	async run(cx, { args }) {
		const field = await find(cx, args.field);
		const uses = await countUses(cx, field.id);
		if (cx.dryRun)
			return cx.wouldDo(`delete the field ${field.variable}${usesNote(uses)}`, { delete: [field.id] });
		// A script that names the field has agreed, however many hold it today.
		if (uses === 0 && cx.globals.confirm === undefined)
			await cx.confirm({ kind: 'mild', what: `delete the field ${field.variable}` });
		else await confirm(cx, `delete the field ${field.variable}`, field, uses);
		const api = await cx.api();
		await mayBreakOff(cx, api.fields.delete(field.id, { signal: cx.signal }), {
			left: async (signal) => {
				const isGone = await api.fields.get(field.id, { signal }).then(
					() => false,
					(error: unknown) => error instanceof ApiError && error.code === 'not_found',
				);
				return isGone ? null : `the field ${field.variable} is still there, and some subscribers hold it`;
			},
			again: () => mailctl('fields', 'delete', field.variable, '--confirm', field.variable),
		});
		await cx.out.document({ deleted: [field.id] }, `deleted the field ${field.variable}`);
	},
});

export const group: CommandGroup = {
	name: 'fields',
	summary: 'additional fields: the variables of subscribers',
	examples: ['mailctl fields create --variable city --name City', 'mailctl fields list'],
	commands: [list, get, create, update, remove],
};

async function find(cx: CommandContext, text: string): Promise<Field> {
	const { resolveField } = await import('../verbs/resolve.js');
	return resolveField(await cx.api(), text, cx.signal);
}

/** `id`: the field that may have it; null: none. */
async function taken(cx: CommandContext, { variable }: { variable?: string }, id: number | null) {
	const { fields } = await cx.api();
	return notTaken(walk(fields, {}, { signal: cx.signal }), {
		field: 'variable',
		isTaken: (one) => one.variable === variable && one.id !== id,
	});
}

function fieldHint({ path, code }: Refused): Hint | undefined {
	if (path !== 'variable') return undefined;
	if (code === 'unique') return mailctl('fields', 'list');
	return code === 'required' || code === 'blank'
		? undefined
		: 'a letter or _, then letters, digits and _, at most 64 in all: city, first_name';
}

/** How many subscribers hold a value; null where a deployment cannot say. */
async function countUses(cx: CommandContext, id: number): Promise<number | null> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	if (ext.fields === undefined) return null;
	const fields = await need(api, 'fields');
	return await cx.killable(() => fields.countUses(id));
}

function usesNote(uses: number | null): string {
	if (uses === 0) return '';
	return uses === null
		? ' (how many subscribers hold it is not known here)'
		: `, held by ${counted(uses, 'subscriber')}`;
}

function confirm(cx: CommandContext, what: string, { variable }: Field, uses: number | null): Promise<void> {
	return cx.confirm({ kind: 'severe', what: `${what}${usesNote(uses)}`, name: variable });
}
