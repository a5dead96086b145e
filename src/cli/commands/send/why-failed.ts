/** Why messages of a job were refused, in the service's own words: a count alone helps nobody. */
import type { Mailings } from '../../../api/capabilities.js';
import type { CommandContext } from '../../context.js';
import { counted } from '../../render/counted.js';
import { shellWord } from '../../shell-word.js';

/** Reasons that are shown; `--results` has each. */
const shownReasons = 3;
/** Results that are looked through for them: a million are not read for a line on the screen. */
const mostResults = 10_000;

/** A warning for each of the first reasons, with how many it was said of. */
export async function sayWhyFailed(
	cx: Pick<CommandContext, 'warn' | 'hint'>,
	mailings: Pick<Mailings, 'results'>,
	{ id, job }: { id: string; job: string },
): Promise<void> {
	const reasons = new Map<string, number>();
	let after: number | null = 0;
	for (let read = 0; after !== null && read < mostResults; ) {
		const page: Awaited<ReturnType<Mailings['results']>> = await mailings.results(id, {
			after,
			limit: 1_000,
		});
		for (const { state, text, code } of page.results) {
			if (state !== 'failed') continue;
			const reason = text ?? code ?? 'no reason told';
			reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
		}
		read += page.results.length;
		after = page.results.length === 0 ? null : page.next;
	}
	const first = [...reasons].slice(0, shownReasons);
	for (const [reason, count] of first)
		await cx.warn(`the service refused ${counted(count, 'message')}: ${reason}`);
	if (reasons.size > first.length)
		await cx.hint(`mailctl send resume ${shellWord(job)} --results FILE names every message and its reason`);
}
