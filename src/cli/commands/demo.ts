/** `mailctl demo`: the whole job on a temporary database and a mail sink in this process. Nothing to set up. */
import { command } from '../command.js';
import { UsageError } from '../errors.js';
import type { ExitCode } from '../exit.js';

const demo = command({
	name: 'demo',
	summary: 'the whole job, nothing to set up',
	description:
		'Makes a temporary database and a mail sink on this machine, imports 1,000 subscribers, sends an HTML mail to all ' +
		'of them, shows one that arrived and the report, and the commands it ran. Leaves nothing behind.',
	options: {
		keep: {
			kind: 'text',
			placeholder: 'DIR',
			summary: 'keep the database, the files and the mails in this folder',
		},
	},
	output: '{"delivered", "seconds", "report", "commands", "kept"}',
	examples: ['mailctl demo', 'mailctl demo --keep ./mailctl-demo'],
	run: async (cx, { options }): Promise<ExitCode> => {
		// What the environment or a profile names is not meant for a demo; what is typed beside it is.
		if (cx.globals.baseUrl !== undefined)
			throw new UsageError('demo makes a database of its own on this machine: leave --base-url out');
		const { runDemo } = await import('../demo/run.js');
		return runDemo(cx, options.keep ?? null);
	},
});

export { demo as command };
