/** Runs a command; `--help` and `--version` do not load this file. */

import { loadNode, type TreeEntry } from '../tree.js';
import type { RunOptions } from './context.js';
import type { ExitCode } from './exit.js';
import { fitHelp } from './help.js';
import { parse } from './parse.js';
import { run } from './run.js';

/** Parses the words behind the program's name for this entry, then prints help or runs. */
export async function invoke(
	entry: TreeEntry,
	argv: readonly string[],
	options: RunOptions,
): Promise<ExitCode> {
	const parsed = parse(await loadNode(entry), argv);
	if (parsed.kind === 'run') return run(parsed, options);
	await options.io.stdout.write(fitHelp(parsed.text, options.io.stdout));
	return 0;
}
