import { need } from '../../api/capabilities.js';
import { builtInVariables } from '../../api/inputs.js';
import type { Template } from '../../api/records.js';
import { type CommandGroup, command, type FileSource } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { isMachine } from '../frame/globals.js';
import { given } from '../frame/values.js';
import { cleanLines } from '../render/clean.js';
import { answers, type Columns, column } from '../render/columns.js';
import { change, create as createRecord } from '../verbs/changing.js';
import { readMarkdown } from '../verbs/content.js';
import { walk } from '../verbs/listing.js';

const parts = ['text', 'html'] as const;

const columns: Columns<Template> = [
	column('id', 'ID', { isKept: 'id' }),
	column('name', 'NAME (SUBJECT)', { isKept: 'name', isName: true }),
	{
		key: 'parts',
		header: 'PARTS',
		value: (one) => parts.filter((part) => one[`${part}_body`] !== '').join('+'),
	},
	column('date_created', 'CREATED', { time: 'text', wide: true }),
	column('date_updated', 'CHANGED', { time: 'text', wide: true }),
];

const templateArg = {
	name: 'template',
	summary: 'a UUID or an exact name',
	of: 'template',
	ask: 'Which template:',
} as const;

const bodies = {
	textFile: { kind: 'file', summary: 'read the text body from a file' },
	htmlFile: { kind: 'file', summary: 'read the HTML body from a file' },
	markdownFile: { kind: 'file', summary: 'read both bodies from a Markdown file' },
} as const;

const list = command({
	name: 'list',
	summary: 'list templates',
	examples: ['mailctl templates list'],
	output: 'an array of templates',
	columns,
	async run(cx) {
		const templates = await need(await cx.api(), 'templates');
		await cx.out.rows(walk(templates, {}, { signal: cx.signal }), columns, { all: true });
	},
});

const get = command({
	name: 'get',
	summary: 'show one template',
	args: [templateArg],
	examples: ['mailctl templates get Welcome -o json'],
	output: 'the template, bodies included',
	exits: [3],
	columns,
	async run(cx, { args }) {
		await cx.out.record(await find(cx, args.template), columns);
	},
});

const create = command({
	name: 'create',
	summary: 'add a template',
	options: {
		name: { kind: 'text', summary: 'set the name, which is the subject too', required: true, ask: 'Name:' },
		...bodies,
	},
	examples: ['mailctl templates create --name Welcome --html-file welcome.html'],
	output: 'the new template',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { options }) {
		const written = await readBodies(options);
		const hasBody = Object.keys(written).length > 0;
		if (!hasBody && !cx.canAsk)
			throw new UsageError('a template needs a body: --text-file, --html-file, or --markdown-file');
		const check = async (text: string) => (text.trim() === '' ? 'a text is needed' : null);
		const body = hasBody ? written : { text_body: await cx.askText('Text:', { check }) };
		const input = { name: options.name, ...body };
		await lint(cx, input);
		const templates = await need(await cx.api(), 'templates');
		const created = await createRecord(cx, {
			what: `create the template ${input.name}`,
			plan: { create: input },
			input,
			make: () => templates.create(input, { signal: cx.signal }),
		});
		if (created !== null) await cx.out.created(created, columns);
	},
});

const update = command({
	name: 'update',
	summary: 'change a template',
	args: [templateArg],
	options: { name: { kind: 'text', summary: 'change the name' }, ...bodies },
	changes: ['name', 'textFile', 'htmlFile', 'markdownFile'],
	examples: ['mailctl templates update Welcome --html-file welcome.html'],
	output: 'the changed template',
	exits: [3, 5],
	writes: true,
	columns,
	async run(cx, { args, options }) {
		const input = { ...given({ name: options.name }), ...(await readBodies(options)) };
		const { id, name } = await find(cx, args.template);
		await lint(cx, { name, ...input });
		const templates = await need(await cx.api(), 'templates');
		const changed = await change(cx, {
			what: `change the template ${name}`,
			plan: { update: id, with: input },
			input,
			make: () => templates.patch(id, input, { signal: cx.signal }),
		});
		if (changed !== null) await cx.out.record(changed, columns);
	},
});

const remove = command({
	name: 'delete',
	summary: 'delete a template',
	description: 'Waiting messages that use the template are sent unchanged.',
	args: [templateArg],
	examples: ['mailctl templates delete Welcome --yes'],
	...answers({ deleted: '[ids]' }),
	exits: [3],
	writes: true,
	severity: 'mild',
	async run(cx, { args }) {
		const { id, name } = await find(cx, args.template);
		const templates = await need(await cx.api(), 'templates');
		const what = `delete the template ${name}`;
		const deleted = await change(cx, {
			what,
			plan: { delete: [id] },
			question: { kind: 'mild', what },
			make: () => templates.delete(id, { signal: cx.signal }).then(() => [id]),
		});
		if (deleted !== null) await cx.out.document({ deleted }, `deleted the template ${name}`);
	},
});

const render = command({
	name: 'render',
	summary: 'fill in a template and print it',
	args: [templateArg],
	options: {
		context: { kind: 'pairs', summary: 'set a variable' },
		part: {
			kind: 'choice',
			choices: parts,
			summary: 'print this part (default: html if there is one)',
		},
	},
	examples: ['mailctl templates render Welcome --context name=Ann > welcome.html'],
	output: '{"subject", "text", "html", "missing": [variables without a value]}',
	exits: [3],
	async run(cx, { args, options }) {
		const template = await find(cx, args.template);
		const { name: subject, text_body, html_body } = template;
		const { render } = await cx.connection();
		const rendered = await render(
			{ subject, text: text_body || null, html: html_body || null, disable_inline: true },
			options.context,
		);
		// Each send fills in the built-in variables, but `name` only for a recipient that has a name.
		const missing = rendered.missing.filter((name) => name === 'name' || !builtInVariables.includes(name));
		if (missing.length > 0) await cx.warn(`no value for ${missing.map((name) => `#${name}#`).join(', ')}`);
		if (isMachine(cx.out.format) || cx.globals.fields !== undefined) return cx.out.document(rendered);
		if (options.part === 'html' && rendered.html === null)
			throw new UsageError(`the template ${template.name} has no HTML`, { hint: '--part text' });
		const part = options.part === 'text' ? rendered.text : (rendered.html ?? rendered.text);
		const text = cx.io.stdout.isTTY ? cleanLines(part) : part;
		await cx.out.raw(text.endsWith('\n') ? text : `${text}\n`);
	},
});

export interface Outcome {
	action: 'created' | 'updated' | 'unchanged' | 'deleted';
	name: string;
	folder: string | null;
	files: readonly string[];
}

export const outcomeColumns: Columns<Outcome> = [
	column('action', 'ACTION'),
	column('name', 'NAME (SUBJECT)', { isKept: 'name', isName: true }),
	column('folder', 'FOLDER', { isKept: 'name' }),
	{ key: 'files', header: 'FILES', value: ({ files }) => files.join(', ') },
];

const directoryArg = {
	name: 'directory',
	summary: 'a directory with a folder for each template',
	ask: 'Directory:',
} as const;
const namesArg = { name: 'name', summary: 'templates (default: all)', optional: true, many: true } as const;

const aboutFolders =
	'A template is a folder with subject.txt, body.html and body.txt, or some of them, in UTF-8. Without subject.txt the ' +
	'name of the folder is the subject, with %2F for a slash.';

const push = command({
	name: 'push',
	summary: 'update templates from a directory',
	description: `${aboutFolders} Templates without a folder stay, unless --prune is given.`,
	args: [{ ...directoryArg, of: 'directory' }, namesArg],
	options: { prune: { kind: 'flag', summary: 'delete templates without a folder' } },
	examples: ['mailctl templates push mails', 'mailctl templates push mails Welcome -n'],
	output:
		'an array of {"action", "name", "folder", "files"}; "action" is created, updated, unchanged or deleted',
	exits: [5],
	writes: true,
	asksItself: true,
	columns: outcomeColumns,
	async run(cx, { args: { directory, name: names }, options: { prune } }) {
		const { push } = await import('./templates/folders.js');
		await push(cx, { directory, names, prune });
	},
});

const pull = command({
	name: 'pull',
	summary: 'write templates to a directory',
	description: `${aboutFolders} Asks before it replaces changed files, unless --force is given.`,
	args: [directoryArg, namesArg],
	options: { force: { kind: 'flag', summary: 'replace changed files without asking' } },
	examples: ['mailctl templates pull mails', 'mailctl templates pull mails Welcome --force'],
	output: 'an array of {"action", "name", "folder", "files"}; "action" is created, updated or unchanged',
	exits: [3, 74],
	columns: outcomeColumns,
	async run(cx, { args: { directory, name: names }, options: { force } }) {
		const { pull } = await import('./templates/folders.js');
		await pull(cx, { directory, names, force });
	},
});

export const group: CommandGroup = {
	name: 'templates',
	summary: 'manage message templates',
	examples: [
		'mailctl templates create --name Welcome --html-file welcome.html',
		'mailctl templates render Welcome --context name=Ann > welcome.html',
		'mailctl templates pull mails',
	],
	commands: [list, get, create, update, remove, render, push, pull],
};

async function find(cx: CommandContext, text: string): Promise<Template> {
	const { resolveTemplate } = await import('../verbs/resolve.js');
	return resolveTemplate(await cx.api(), text, cx.signal);
}

type BodyFiles = Partial<Record<keyof typeof bodies, FileSource | undefined>>;

async function readBodies(options: BodyFiles): Promise<{ text_body?: string; html_body?: string }> {
	if (options.htmlFile !== undefined && options.markdownFile !== undefined)
		throw new UsageError('use either --html-file or --markdown-file, not both');
	const { subject: _, ...markdown } = (await readMarkdown(options.markdownFile)) ?? { subject: null };
	return {
		...markdown,
		...given({ text_body: await options.textFile?.text(), html_body: await options.htmlFile?.text() }),
	};
}

async function lint(cx: CommandContext, input: { name: string; text_body?: string; html_body?: string }) {
	const { name: subject, text_body: text = null, html_body: html = null } = input;
	const { warnOfFindings } = await import('../verbs/content.js');
	await warnOfFindings(cx, { subject, text, html }, { bulk: false, isTemplate: true });
}
