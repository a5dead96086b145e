import { shownDatabase } from '../../store/url.js';
import { type Command, command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isForPeople } from '../frame/globals.js';
import { clean } from '../render/clean.js';
import { type Columns, column } from '../render/columns.js';
import { shorten } from '../render/width.js';
import type { Change, Step, Value } from './apply/plan.js';

const options = {
	file: {
		kind: 'file',
		short: 'f',
		required: true,
		summary: 'read this YAML or JSON file; - is standard input',
		ask: 'File, YAML or JSON:',
	},
	prune: { kind: 'flag', summary: 'delete records that the file does not have' },
} as const;

const aboutFile =
	'The file has lists, fields, webhooks and senders, on mailctl also templates, and settings of a local database. Other ' +
	// biome-ignore lint/suspicious/noTemplateCurlyInString: shows how the file names a variable
	'keys stay unchanged. Secrets come from the environment (${NAME}) or from files (password_file).';

const columns: Columns<Change> = [
	column('action', 'ACTION'),
	column('kind', 'KIND'),
	column('name', 'NAME', { isName: true }),
	{
		key: 'changes',
		header: 'CHANGES',
		value: ({ changes }) =>
			Object.entries(changes)
				.map(([key, change]) => `${key}: ${textOf(change)}`)
				.join('; '),
	},
];

export const apply: Command = command({
	name: 'apply',
	summary: 'make lists, fields, webhooks and more match a file',
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
	run: async (cx, { options: { file, prune } }) => {
		const { readDeclaration } = await import('./apply/declared.js');
		const { agree, carryOut, planSteps, retentionIn, sentence } = await import('./apply/plan.js');
		const { target, local } = await cx.connection();
		if (!cx.dryRun) {
			// Names of lists are not unique, so two runs at the same time would create each list twice.
			const { holdAlone } = await import('../verbs/importing.js');
			const where = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
			await holdAlone(cx, ['apply', where], `an apply to ${where}`);
		}
		const steps = await planSteps(cx, await readDeclaration(cx, file), { prune });
		const changes = steps.map(({ change }) => change);
		const goes = await retentionIn(cx, changes);
		if (cx.dryRun) {
			if (local !== null) for (const step of steps) await step.make();
			if (cx.out.format === 'table') await print(cx, steps);
			if (goes !== null) await cx.note(`This would ${goes}.`);
			const what = `${sentence(changes) ?? 'change nothing'} by ${file.name}`;
			return cx.wouldDo(what, { apply: file.name, changes });
		}
		if (goes !== null) await cx.confirm({ kind: 'mild', what: goes });
		await agree(cx, 'apply', steps);
		await carryOut(cx, steps);
		await print(cx, steps);
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
	run: async (cx, { options: { file, prune } }): Promise<ExitCode> => {
		const { readDeclaration } = await import('./apply/declared.js');
		const { planSteps, retentionIn } = await import('./apply/plan.js');
		const steps = await planSteps(cx, await readDeclaration(cx, file), { prune });
		await print(cx, steps);
		const goes = await retentionIn(
			cx,
			steps.map(({ change }) => change),
		);
		if (goes !== null) await cx.note(`This would ${goes}.`);
		return steps.length === 0 ? exits.done : exits.found;
	},
});

const mostShown = 60;

function textOf({ from, to }: { from: Value; to: Value }): string {
	const [old, wanted] = [from, to].map((value) => {
		const text = value === null ? '(nothing)' : String(value);
		return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
	});
	return `${old} → ${wanted}`;
}

/** Prints a line per key, because a cell of a table has too little space for two texts. */
async function print(cx: CommandContext, steps: readonly Step[]): Promise<void> {
	const changes = steps.map(({ change }) => change);
	if (!isForPeople(cx) || cx.out.format === 'wide')
		return void (await cx.out.rows(changes, columns, { all: true }));
	const lines = changes.flatMap(({ action, kind, name, changes }) => [
		`${action} ${kind.slice(0, -1)} ${clean(name)}`,
		...Object.entries(changes).map(([key, change]) =>
			shorten(clean(`  ${key}: ${textOf(change)}`), cx.io.stdout.columns),
		),
	]);
	await cx.out.page(lines.map((line) => `${line}\n`).join(''));
}
