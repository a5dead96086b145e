import { type Command, command } from '../frame/command.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { aboutFile, changeColumns, declaredOptions, printChanges } from './apply/changes.js';

const diff: Command = command({
	name: 'diff',
	summary: 'what apply would change',
	description: `${aboutFile} Exit 0: nothing, 11: something.`,
	options: declaredOptions,
	columns: changeColumns,
	output: 'an array of {"action", "kind", "name", "changes": {key: {"from", "to"}}}',
	exits: [11],
	examples: ['mailctl diff -f mail.yaml', 'mailctl diff -f mail.yaml --prune -o json'],
	run: async (cx, { options: { file, prune } }): Promise<ExitCode> => {
		const { readDeclaration } = await import('./apply/declared.js');
		const { planSteps, retentionIn } = await import('./apply/plan.js');
		const steps = await planSteps(cx, await readDeclaration(cx, file), { prune });
		const changes = steps.map(({ change }) => change);
		await printChanges(cx, changes);
		const goes = await retentionIn(cx, changes);
		if (goes !== null) await cx.note(`This would ${goes}.`);
		return steps.length === 0 ? exits.done : exits.found;
	},
});

export { diff as command };
