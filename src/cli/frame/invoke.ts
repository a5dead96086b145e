/** Runs a command; `--help` and `--version` of the whole do not load this file. */

import { loadNode, type TreeEntry } from '../tree.js';
import type { RunOptions } from './context.js';
import type { ExitCode } from './exit.js';
import { isFormat, isMachine, type RawGlobals } from './globals.js';
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
	const { node, path, globals } = parsed;
	if (wantsJson(globals)) {
		const { command } = await import('../commands/help.js');
		return run({ kind: 'run', command, path: ['help'], words: path, options: {}, globals }, options);
	}
	const { io } = options;
	await printPage(io, fitHelp(nodeHelp(node, path), io.stdout), globals.pager !== false);
	return 0;
}

/** A format of the environment does not take a person's help away. */
function wantsJson({ json, output = '', query }: RawGlobals): boolean {
	return json === true || query !== undefined || (isFormat(output) && isMachine(output));
}
