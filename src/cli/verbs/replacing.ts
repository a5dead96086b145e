/** Files that a person lets a command replace. */
import { stat } from 'node:fs/promises';
import type { CommandContext } from '../frame/context.js';

/** False: there is nothing of that name, or a script has not given `--force`. Throws `Declined`. */
export async function mayReplace(cx: CommandContext, file: string, force: boolean): Promise<boolean> {
	const there = await stat(file).catch(() => null);
	if (there === null || !there.isFile()) return false;
	if (force) return true;
	if (!cx.canAsk && cx.globals.yes !== true) return false;
	await cx.confirm({ kind: 'mild', what: `replace ${file}` });
	return true;
}
