import { confirmChange } from '../config/profiles.js';
import { command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import type { ExitCode } from '../frame/exit.js';
import { answer } from '../render/columns.js';
import { groups, reporterNames } from '../smoke/model.js';

const smoke = command({
	name: 'smoke',
	summary: 'check a service in CI',
	description:
		'Changes nothing, unless you pass --full or --send-to. --full also creates, changes and deletes records named ' +
		'mailctl-smoke-…, and removes them at the end, on Ctrl-C and after the deadline (2m). An answer that breaks the ' +
		'service document fails a check. A difference that the document allows is listed as a deviation.',
	options: {
		full: { kind: 'flag', summary: 'also create, change and delete temporary records' },
		only: {
			kind: 'choices',
			choices: groups,
			summary: 'run only these groups of checks, such as lists,fields',
		},
		skip: { kind: 'choices', choices: groups, summary: 'leave these groups of checks out' },
		sendTo: {
			kind: 'text',
			placeholder: 'ADDRESS',
			summary: 'send one message to this address (needs --from)',
		},
		from: { kind: 'text', placeholder: 'ADDRESS', summary: 'send the --send-to message from this address' },
		reporter: { kind: 'choice', choices: reporterNames, summary: 'print the report in this format' },
		reportFile: { kind: 'path', summary: 'write the report to a file' },
		cleanupOnly: { kind: 'flag', summary: 'only delete records left behind by killed runs' },
	},
	writes: true,
	createsDatabase: false,
	asksItself: true,
	columns: answer(
		...['id', 'outcome', 'title', 'detail', 'duration_ms'],
		...['run', 'target', 'started', 'checks', 'deviations', 'leftovers', 'counts'],
	),
	output: '{"run", "target", "started", "duration_ms", "checks", "deviations", "leftovers", "counts"}',
	exits: [4, 6, 11, 12],
	examples: [
		'mailctl smoke',
		'mailctl smoke --base-url https://mail.example.com --token-file token.txt --only connection',
		'mailctl smoke --full --reporter junit --report-file smoke.xml',
		'mailctl smoke --only lists --only report -o json',
		'mailctl smoke --full --send-to sink@example.com --from news@example.com',
		'mailctl smoke --cleanup-only',
	],
	run: async (cx, { options }): Promise<ExitCode> => {
		assertSensible(options);
		if (cx.globals.fields !== undefined && (options.reporter ?? options.reportFile) !== undefined)
			throw new UsageError('use --fields without --reporter and --report-file');
		// Connect first, so that a missing database is an error: the checks would create it and pass.
		await cx.connection();
		await assertAllowedToChange(cx, options);
		const { smokeCommand } = await import('../smoke/command.js');
		return smokeCommand(cx, options);
	},
});

type Options = Pick<
	Parameters<typeof import('../smoke/command.js').smokeCommand>[1],
	'full' | 'only' | 'skip' | 'sendTo' | 'from' | 'cleanupOnly'
>;

function assertSensible({ full, only, skip, sendTo, from, cleanupOnly }: Options): void {
	if (from === undefined && sendTo !== undefined) throw new UsageError('--send-to needs --from');
	if (from !== undefined && sendTo === undefined) throw new UsageError('--from needs --send-to');
	if (cleanupOnly && (full || sendTo !== undefined || only.length > 0 || skip.length > 0))
		throw new UsageError('use --cleanup-only without --full, --only, --skip and --send-to');
}

async function assertAllowedToChange(cx: CommandContext, options: Options): Promise<void> {
	if (options.sendTo !== undefined) {
		const { parseMailbox } = await import('../../api/address.js');
		for (const [flag, text] of [
			['--send-to', options.sendTo],
			['--from', options.from ?? ''],
		] as const)
			if (parseMailbox(text) === null) throw new UsageError(`${flag}: "${text}" is not an address`);
		const { assertAllowed } = await import('../verbs/allowed.js');
		assertAllowed(cx, [options.sendTo]);
	}
	const changes = options.full || options.cleanupOnly || options.sendTo !== undefined;
	if (changes) await confirmChange(cx, 'smoke');
}

export { smoke as command };
