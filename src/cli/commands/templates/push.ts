import { join } from 'node:path';
import { need } from '../../../api/capabilities.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { didYouMean } from '../../frame/help.js';
import { warnOfFindings } from '../../verbs/content.js';
import { agree, carryOut, type Declared, planSteps, refuseFindings, type Step } from '../apply/plan.js';
import { templateName } from './folder-names.js';
import {
	fileOf,
	foretell,
	type Outcome,
	outcomeColumns,
	parts,
	readFolders,
	type TemplateFolder,
	tally,
} from './folders.js';

/** `names`: of templates or of folders; none: all. */
export async function push(
	cx: CommandContext,
	{ directory, names, prune }: { directory: string; names: readonly string[]; prune: boolean },
): Promise<void> {
	await need(await cx.api(), 'templates');
	const folders = await readFolders(directory);
	const chosen = folders.filter(
		({ folder, values }) => names.length === 0 || names.some((one) => one === values.name || one === folder),
	);
	refuseFindings(chosen.flatMap(({ findings }) => findings));
	const wanted = names.length === 0 ? null : new Set([...names, ...chosen.map(({ values }) => values.name)]);
	const templates = declaredOf(directory, folders);
	const steps = (await planSteps(cx, { templates }, { prune })).filter(
		({ change }) => wanted?.has(change.name) ?? true,
	);
	const outcomes = outcomesOf(chosen, steps);
	for (const name of names) {
		if (outcomes.some((one) => one.name === name || one.folder === name)) continue;
		const known = folders.flatMap(({ folder, values }) => [folder, values.name]);
		const hint = didYouMean(name, known);
		throw new UsageError(`${directory} has no folder of the template "${name}"`, { ...(hint && { hint }) });
	}
	await lint(cx, chosen, steps);
	if (cx.dryRun) {
		// On a database of this machine they are answered, and undone.
		if ((await cx.connection()).local !== null) await carryOut(cx, steps);
		return foretell(cx, 'push', { directory, outcomes });
	}
	await agree(cx, 'templates push', steps);
	await carryOut(cx, steps);
	await cx.out.rows(outcomes, outcomeColumns, { all: true });
	await cx.note(`pushed ${directory}: ${tally(outcomes)}`);
}

/** Without those that cannot be pushed: where they are meant they are refused. */
function declaredOf(directory: string, folders: readonly TemplateFolder[]): Declared[] {
	const names = new Set(folders.map(({ values }) => values.name));
	return folders
		.filter(({ findings }) => findings.length === 0)
		.map(({ folder, values }) => {
			// The subject was edited: the template is still known by its folder.
			const was = templateName(folder);
			return {
				name: values.name,
				values,
				where: join(directory, folder),
				...(!names.has(was) && { was }),
			};
		});
}

function outcomesOf(folders: readonly TemplateFolder[], steps: readonly Step[]): Outcome[] {
	const pushed = folders.map(({ folder, values }): Outcome => {
		const step = steps.find(({ change }) => change.action !== 'delete' && change.name === values.name);
		const differing = parts.filter((part) => {
			const change = step?.change.changes[part];
			return change !== undefined && (change.from ?? '') !== change.to;
		});
		return {
			action: step === undefined ? 'unchanged' : step.change.action === 'create' ? 'created' : 'updated',
			name: values.name,
			folder,
			files: differing.map((part) => fileOf[part]),
		};
	});
	const deleted = steps
		.filter(({ change }) => change.action === 'delete')
		.map(({ change: { name } }): Outcome => ({ action: 'deleted', name, folder: null, files: [] }));
	return [...pushed, ...deleted];
}

async function lint(
	cx: CommandContext,
	folders: readonly TemplateFolder[],
	steps: readonly Step[],
): Promise<void> {
	for (const { values } of folders) {
		if (!steps.some(({ change }) => change.action !== 'delete' && change.name === values.name)) continue;
		const { name, text_body, html_body } = values;
		// Whether it is for bulk mail is known when it is sent.
		await warnOfFindings(
			cx,
			{ subject: name, text: text_body || null, html: html_body || null },
			{ bulk: false, isTemplate: true, of: name },
		);
	}
}
