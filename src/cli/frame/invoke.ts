/** Runs a command; `--help` and `--version` do not load this file. */

import { loadNode, type TreeEntry } from '../tree.js';
import type { RunOptions } from './context.js';
import type { ExitCode } from './exit.js';
import { fitHelp } from './help.js';
import { printPage } from './io.js';
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
	const { io } = options;
	await printPage(io, fitHelp(parsed.text, io.stdout), !argv.includes('--no-pager'));
	return 0;
}
