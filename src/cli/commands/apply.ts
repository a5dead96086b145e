/** `mailctl apply`: lists, fields, webhooks and more, as a file has them. */

import { confirmChange } from '../config/protection.js';
import { type Command, command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { counted } from '../render/counted.js';
import { type Change, changeColumns } from './apply/columns.js';
import { aboutFile, declaredOptions } from './apply/options.js';
import type { Step } from './apply/plan.js';

const apply: Command = command({
	name: 'apply',
	summary: 'make lists, fields, webhooks and more as a file has them',
	description: `${aboutFile} Run again it changes nothing. What \`--prune\` deletes is asked about: --yes agrees, but lists and fields, with what subscribers hold, want --confirm prune.`,
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
		const { planSteps } = await import('./apply/plan.js');
		const steps = await planSteps(cx, await readDeclaration(cx, file), { prune });
		const changes = steps.map(({ change }) => change);
		if (cx.dryRun) {
			// On a database of this machine they are answered, and undone.
			if ((await cx.connection()).local !== null) for (const step of steps) await step.make();
			return cx.wouldDo(`${sentence(changes)} by ${file.name}`, { apply: file.name, changes });
		}
		await agree(cx, changes);
		await carryOut(cx, steps);
		await cx.out.rows(changes, changeColumns, { all: true });
		await cx.note(changes.length === 0 ? 'nothing to change' : `done: ${sentence(changes)}`);
	},
});

async function agree(cx: CommandContext, changes: readonly Change[]): Promise<void> {
	const deleted = changes.filter(({ action, kind }) => action === 'delete' && kind !== 'settings');
	if (deleted.length === 0) {
		if (changes.length > 0) await confirmChange(cx, 'apply');
		return;
	}
	const names = deleted.slice(0, mostNamed).map(({ kind, name }) => `${kind.slice(0, -1)} "${name}"`);
	const more = deleted.length > mostNamed ? ` and ${deleted.length - mostNamed} more` : '';
	const what = `${sentence(changes)}; deleted: ${names.join(', ')}${more}`;
	const isSevere = deleted.some(({ kind }) => kind === 'lists' || kind === 'fields');
	await cx.confirm(isSevere ? { kind: 'severe', what, name: 'prune' } : { kind: 'mild', what });
}

const mostNamed = 10;

/** One after the other: what was made before a refusal stays, and the next run goes on from there. */
async function carryOut(cx: CommandContext, steps: readonly Step[]): Promise<void> {
	let made = 0;
	try {
		for (const step of steps) {
			cx.signal.throwIfAborted();
			await step.make();
			made += 1;
		}
	} catch (error) {
		const failed = steps[made]?.change;
		const at = failed === undefined ? '' : `, at the ${failed.action} of ${failed.kind} "${failed.name}"`;
		await cx.warn(`stopped after ${made} of ${counted(steps.length, 'change')}${at}: run it again to go on`);
		throw error;
	}
}

/** `create 2, update 1, delete 3`. */
function sentence(changes: readonly Change[]): string {
	const parts = (['create', 'update', 'delete'] as const).flatMap((action) => {
		const count = changes.filter((one) => one.action === action).length;
		return count === 0 ? [] : [`${action} ${count}`];
	});
	return parts.length === 0 ? 'change nothing' : parts.join(', ');
}

export { apply as command };
