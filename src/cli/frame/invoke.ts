/** Runs a command; `--help` and `--version` of the whole do not load this file. */

import { loadNode, type TreeEntry } from '../tree.js';
import type { RunOptions } from './context.js';
import type { ExitCode } from './exit.js';
import { peek } from './globals.js';
import { fitHelp, nodeHelp } from './help.js';
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
	const pager = !argv.includes('--no-pager');
	// A format of the environment does not take a person's help away.
	const { format } = peek(argv, {});
	if (format === 'json' || format === 'ndjson') {
		const { describeNode, printDescription } = await import('./description.js');
		await printDescription(io, describeNode(parsed.node, parsed.path), { format, pager });
	} else await printPage(io, fitHelp(nodeHelp(parsed.node, parsed.path), io.stdout), pager);
	return 0;
}
