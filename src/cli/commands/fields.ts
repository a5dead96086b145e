import type { FieldInput } from '../../api/inputs.js';
import type { Field } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import type { Question } from '../frame/prompts.js';
import { given } from '../frame/values.js';
import { answers, type Columns, column } from '../render/columns.js';
import { counted } from '../render/units.js';
import { change, create as createRecord } from '../verbs/changing.js';
import { walk } from '../verbs/listing.js';

const columns: Columns<Field> = [
	column('id', 'ID', { align: 'right' }),
	column('variable', 'VARIABLE', { isName: true }),
	column('name', 'NAME'),
	column('date_created', 'CREATED', { time: 'text', wide: true }),
];

const fieldArg = { name: 'field', summary: 'an id or a variable', of: 'field', ask: 'Which field:' } as const;

const list = command({
	name: 'list',
	summary: 'list the fields',
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
			summary: 'set the name in meta and in messages, such as city for #city#',
			required: true,
			of: 'variable',
			ask: 'Variable:',
		},
		name: { kind: 'text', summary: 'set the name that people see', required: true, ask: 'Name:' },
	},
	examples: ['mailctl fields create --variable city --name City'],
	output: 'the new field',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { options: input }) {
		const created = await createRecord(cx, {
			what: `create the field ${input.variable}`,
			plan: { create: input },
			input,
			hint: ({ code }) => (code === 'invalid' ? 'use letters A to Z, digits (not first) and _' : undefined),
			make: ({ fields }) => fields.create(input, { signal: cx.signal }),
		});
		if (created !== null) await cx.out.created(created, columns);
	},
});

const update = command({
	name: 'update',
	summary: 'change a field',
	description:
		'Changing the variable renames the key in the meta of every subscriber, in one transaction. Other writers wait meanwhile: about five ' +
		'seconds for a million subscribers. Ctrl-C undoes the change.',
	args: [fieldArg],
	options: {
		variable: { kind: 'text', summary: 'change the variable' },
		name: { kind: 'text', summary: 'change the name' },
		replace: { kind: 'flag', summary: 'send PUT, which needs --variable and --name' },
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
		const { variable, name } = options;
		const input = given({ variable, name });
		const renames = variable !== undefined && variable !== field.variable;
		const uses = renames ? await countUses(cx, field.id) : 0;
		const call = { signal: cx.signal };
		const changed = await change(cx, {
			what: `change the field ${field.variable}${usesNote(uses)}`,
			plan: { update: field.id, with: input },
			input,
			question: uses === 0 ? undefined : severe(`rename ${field.variable} to ${variable}`, field, uses),
			make: ({ fields }) => {
				const verb = options.replace ? 'replace' : 'patch';
				return cx.undoable(() => fields[verb](field.id, input as FieldInput, call));
			},
		});
		if (changed !== null) await cx.out.record(changed, columns);
	},
});

const remove = command({
	name: 'delete',
	summary: 'delete a field',
	description:
		'Removes the values of a few thousand subscribers at a time, so that other processes can write meanwhile. After ' +
		'Ctrl-C or a kill, the field and the other values remain. Run the same command again to continue.',
	args: [fieldArg],
	examples: ['mailctl fields delete city --confirm city'],
	...answers({ deleted: '[ids]' }),
	exits: [3],
	writes: true,
	severity: 'severe',
	async run(cx, { args }) {
		const field = await find(cx, args.field);
		const uses = await countUses(cx, field.id);
		const what = `delete the field ${field.variable}`;
		if (cx.dryRun) return cx.wouldDo(`${what}${usesNote(uses)}`, { delete: [field.id] });
		// If `--confirm` has a name, check the name even if no subscriber uses the field.
		const isMild = uses === 0 && cx.globals.confirm === undefined;
		await cx.confirm(isMild ? { kind: 'mild', what } : severe(what, field, uses));
		await (await cx.api()).fields.delete(field.id, { signal: cx.signal });
		await cx.out.document({ deleted: [field.id] }, `deleted the field ${field.variable}`);
	},
});

export const group: CommandGroup = {
	name: 'fields',
	summary: 'manage fields: the variables of subscribers',
	examples: ['mailctl fields create --variable city --name City', 'mailctl fields list'],
	commands: [list, get, create, update, remove],
};

async function find(cx: CommandContext, text: string): Promise<Field> {
	const { resolveField } = await import('../verbs/resolve.js');
	return resolveField(await cx.api(), text, cx.signal);
}

async function countUses(cx: CommandContext, id: number): Promise<number | null> {
	const { fields } = (await (await cx.api()).capabilities()).ext;
	return fields === undefined ? null : cx.killable(() => fields.countUses(id));
}

function usesNote(uses: number | null): string {
	if (uses === 0) return '';
	return uses === null
		? ' (this service does not say how many subscribers have it)'
		: ` (${counted(uses, 'subscriber')} ${uses === 1 ? 'has' : 'have'} it)`;
}

function severe(what: string, { variable }: Field, uses: number | null): Question {
	return { kind: 'severe', what: `${what}${usesNote(uses)}`, name: variable };
}
