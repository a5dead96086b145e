import { shownDatabase } from '../../store/url.js';
import { type Command, command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { aboutFile, changeColumns, declaredOptions, printChanges } from './apply/changes.js';

const apply: Command = command({
	name: 'apply',
	summary: 'make lists, fields, webhooks and more as a file has them',
	description: `${aboutFile} Run again it changes nothing. What \`--prune\` and a shorter retention delete is asked about: --yes agrees, but lists and fields, with what subscribers hold, want --confirm prune.`,
	options: declaredOptions,
	writes: true,
	asksItself: true,
	columns: changeColumns,
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
		if (!cx.dryRun) await holdTarget(cx);
		const steps = await planSteps(cx, await readDeclaration(cx, file), { prune });
		const changes = steps.map(({ change }) => change);
		const goes = await retentionIn(cx, changes);
		if (cx.dryRun) {
			if ((await cx.connection()).local !== null) for (const step of steps) await step.make();
			if (cx.out.format === 'table') await printChanges(cx, changes);
			if (goes !== null) await cx.note(`This would ${goes}.`);
			return cx.wouldDo(`${sentence(changes) ?? 'change nothing'} by ${file.name}`, {
				apply: file.name,
				changes,
			});
		}
		if (goes !== null) await cx.confirm({ kind: 'mild', what: goes });
		await agree(cx, 'apply', steps);
		await carryOut(cx, steps);
		await printChanges(cx, changes);
		await cx.note(sentence(changes, true) ?? 'nothing to change');
	},
});

/** Names of lists are not unique: two that plan at the same time would make each of them twice. */
async function holdTarget(cx: CommandContext): Promise<void> {
	const [{ holdAlone }, { target }] = await Promise.all([import('../verbs/importing.js'), cx.connection()]);
	const where = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
	await holdAlone(cx, ['apply', where], `an apply to ${where}`);
}

export { apply as command };
