/** A row of text holds the scalars of a record alone: whoever pipes one is told where the rest is. */
import type { CommandContext } from './context.js';

/**
 * A hint that `-o json` has `what` too, where TSV was nobody's choice: a pipe was. Who names a format or columns knows
 * what he gets.
 */
export async function sayWhatIsLeftOut(cx: CommandContext, what: string): Promise<void> {
	const isChosen = cx.settings.output.value !== null || cx.globals.fields !== undefined;
	if (cx.out.format === 'tsv' && !isChosen) await cx.hint(`-o json has ${what} too`);
}
