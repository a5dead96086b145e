import { shownDatabase } from '../../store/url.js';
import { type Command, command, type OptionValues } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isForPeople } from '../frame/globals.js';
import { clean } from '../render/clean.js';
import { type Columns, column } from '../render/columns.js';
import { shorten } from '../render/width.js';
import type { Change, Value } from './apply/plan.js';

const options = {
	file: {
		kind: 'file',
		short: 'f',
		required: true,
		summary: 'read this YAML or JSON file; - is standard input',
		ask: 'YAML or JSON file:',
	},
	prune: { kind: 'flag', summary: 'delete records that the file does not have' },
} as const;

const aboutFile =
	'The file can have lists, fields, webhooks, senders, templates (mailctl only) and settings (local database only). Keys ' +
	// biome-ignore lint/suspicious/noTemplateCurlyInString: shows how the file names a variable
	'that the file omits stay unchanged. Secrets come from the environment (${NAME}) or from files (password_file).';

const columns: Columns<Change> = [
	column('action', 'ACTION'),
	column('kind', 'KIND'),
	column('name', 'NAME', { isName: true }),
	column('changes', 'CHANGES', { value: ({ changes }) => textsOf(changes).join('; ') }),
];

export const apply: Command = command({
	name: 'apply',
	summary: 'change lists, fields, webhooks and more to match a file',
	description: `${aboutFile} Deleting lists and fields needs --confirm prune.`,
	options,
	writes: true,
	asksItself: true,
	columns,
	output: 'an array of {"action", "kind", "name", "changes"}: what was changed',
	exits: [5],
	examples: [
		'mailctl apply -f mail.yaml',
		'mailctl apply -f mail.yaml --prune --confirm prune',
		'mailctl apply -f - -n < mail.yaml',
	],
	run: async (cx, { options }) => {
		const { file } = options;
		const { agree, carryOut, sentence } = await import('./apply/plan.js');
		const { target, local } = await cx.connection();
		if (!cx.dryRun) {
			// Names of lists are not unique, so two runs at the same time would create each list twice.
			const { holdAlone } = await import('../verbs/importing.js');
			const where = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
			await holdAlone(cx, ['apply', where], `an apply to ${where}`);
		}
		const { steps, changes, goes } = await planOf(cx, options);
		if (cx.dryRun) {
			if (local !== null) for (const step of steps) await step.make();
			if (cx.out.format === 'table') await print(cx, changes);
			if (goes !== null) await cx.note(`This would ${goes}.`);
			const what = `apply ${file.name}: ${sentence(changes) ?? 'change nothing'}`;
			return cx.wouldDo(what, { apply: file.name, changes });
		}
		if (goes !== null) await cx.confirm({ kind: 'mild', what: goes });
		await agree(cx, 'apply', steps);
		await carryOut(cx, steps);
		await print(cx, changes);
		await cx.note(sentence(changes, true) ?? 'nothing to change');
	},
});

export const diff: Command = command({
	name: 'diff',
	summary: 'show what apply would change',
	description: `${aboutFile} Exits with 11 if something would change.`,
	options,
	columns,
	output: 'an array of {"action", "kind", "name", "changes": {key: {"from", "to"}}}',
	exits: [11],
	examples: ['mailctl diff -f mail.yaml', 'mailctl diff -f mail.yaml --prune -o json'],
	run: async (cx, { options }): Promise<ExitCode> => {
		const { steps, changes, goes } = await planOf(cx, options);
		await print(cx, changes);
		if (goes !== null) await cx.note(`This would ${goes}.`);
		return steps.length === 0 ? exits.done : exits.found;
	},
});

async function planOf(cx: CommandContext, { file, prune }: OptionValues<typeof options>) {
	const { readDeclaration } = await import('./apply/declared.js');
	const { planSteps, retentionIn } = await import('./apply/plan.js');
	const steps = await planSteps(cx, await readDeclaration(cx, file), prune);
	const changes = steps.map(({ change }) => change);
	return { steps, changes, goes: await retentionIn(cx, changes) };
}

const mostShown = 60;

function textsOf(changes: Change['changes']): string[] {
	const textOf = (value: Value) => {
		const text = value === null ? '(nothing)' : String(value);
		return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
	};
	return Object.entries(changes).map(([key, { from, to }]) => `${key}: ${textOf(from)} → ${textOf(to)}`);
}

/** Prints a line per key, because a table cell is too narrow for the old and the new value. */
async function print(cx: CommandContext, changes: readonly Change[]): Promise<void> {
	if (!isForPeople(cx) || cx.out.format === 'wide')
		return void (await cx.out.rows(changes, columns, { all: true }));
	const lines = changes.flatMap(({ action, kind, name, changes }) => [
		`${action} ${kind.slice(0, -1)} ${clean(name)}`,
		...textsOf(changes).map((text) => shorten(clean(`  ${text}`), cx.io.stdout.columns)),
	]);
	await cx.out.page(lines.map((line) => `${line}\n`).join(''));
}
