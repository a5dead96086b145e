/** A row of TSV holds only the scalars of a record: a hint names the format that has the rest. */
import type { CommandContext } from '../frame/context.js';

/**
 * Hints that `-o json` has `what` too, where TSV is the default of a pipe. No hint for a named format or named columns:
 * those are a choice.
 */
export async function sayWhatIsLeftOut(cx: CommandContext, what: string): Promise<void> {
	const isChosen = cx.settings.output.value !== null || cx.globals.fields !== undefined;
	if (cx.out.format === 'tsv' && !isChosen) await cx.hint(`-o json has ${what} too`);
}
