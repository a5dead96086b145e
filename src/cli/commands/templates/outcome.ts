/** What `templates push` and `templates pull` do to each template. */
import type { CommandContext } from '../../frame/context.js';
import { type Columns, column } from '../../render/columns.js';

/** One template. */
export interface Outcome {
	action: 'created' | 'updated' | 'unchanged' | 'deleted';
	name: string;
	/** Within the directory; null: it has none. */
	folder: string | null;
	/** The files that differed. */
	files: readonly string[];
}

export const outcomeColumns: Columns<Outcome> = [
	column('action', 'ACTION'),
	column('name', 'NAME (SUBJECT)', { isKept: 'name', isName: true }),
	column('folder', 'FOLDER', { isKept: 'name' }),
	{ key: 'files', header: 'FILES', value: ({ files }) => files.join(', ') },
];

/** The answer of a dry run: the lines too where people read them. */
export async function foretell(
	cx: CommandContext,
	verb: 'push' | 'pull',
	{ directory, outcomes }: { directory: string; outcomes: readonly Outcome[] },
): Promise<void> {
	const isRead = cx.out.format === 'table' || cx.out.format === 'wide';
	if (isRead) await cx.out.rows(outcomes, outcomeColumns, { all: true });
	const plan = { with: { templates: outcomes } };
	const what = `${verb} ${directory}: ${tally(outcomes)}`;
	await (verb === 'push'
		? cx.wouldDo(what, { push: directory, ...plan })
		: cx.wouldDo(what, { pull: directory, ...plan }));
}

/** `1 created, 2 unchanged`. */
export function tally(outcomes: readonly Outcome[]): string {
	const counts = (['created', 'updated', 'unchanged', 'deleted'] as const).flatMap((action) => {
		const count = outcomes.filter((one) => one.action === action).length;
		return count === 0 ? [] : [`${count} ${action}`];
	});
	return counts.length === 0 ? 'no templates' : counts.join(', ');
}
