import { command } from '../frame/command.js';
import { UsageError } from '../frame/errors.js';
import type { ExitCode } from '../frame/exit.js';
import { answers } from '../render/columns.js';

const demo = command({
	name: 'demo',
	summary: 'import, send and report on a temporary database',
	description:
		'Creates a temporary database and a test mail server, imports 1,000 subscribers, sends them an HTML mail, and shows a ' +
		'received mail, the report and the commands. Leaves nothing behind.',
	options: {
		keep: { kind: 'path', placeholder: 'DIR', summary: 'keep the database, files and mails in this folder' },
	},
	reach: [],
	needsNoTarget: true,
	...answers(['delivered', 'seconds', 'report', 'commands', 'kept']),
	examples: ['mailctl demo', 'mailctl demo --keep ./mailctl-demo'],
	run: async (cx, { options }): Promise<ExitCode> => {
		if (cx.dryRun) throw new UsageError('demo has no dry run: it works on a temporary database');
		const { runDemo } = await import('../demo/run.js');
		return runDemo(cx, options.keep ?? null);
	},
});

export { demo as command };
