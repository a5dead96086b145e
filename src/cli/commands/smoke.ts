import { confirmChange } from '../config/profiles.js';
import { command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import type { ExitCode } from '../frame/exit.js';
import { answer } from '../render/columns.js';
import { groups, reporterNames } from '../smoke/model.js';

const smoke = command({
	name: 'smoke',
	summary: 'checks against a deployment, for CI',
	description:
		'Reads only, unless --full or --send-to is given. --full creates, reads, changes, filters and deletes lists, ' +
		'subscribers, fields and webhooks named mailctl-smoke-… and removes them in the end, on Ctrl-C and past the ' +
		'deadline (2m) too. An answer that breaks the documented contract fails. A difference that the document leaves open is listed as a ' +
		'deviation.',
	options: {
		full: { kind: 'flag', summary: 'also create, change and delete temporary records' },
		only: {
			kind: 'choices',
			choices: groups,
			summary: 'these groups of checks: one, or several with commas',
		},
		skip: { kind: 'choices', choices: groups, summary: 'all but these groups' },
		sendTo: { kind: 'text', placeholder: 'ADDRESS', summary: 'send one message there; needs --from' },
		from: { kind: 'text', placeholder: 'ADDRESS', summary: 'the sender of that message' },
		reporter: {
			kind: 'choice',
			choices: reporterNames,
			summary: 'form of the report: text, or json with -o json',
		},
		reportFile: { kind: 'path', summary: 'write the report there, whole or not at all' },
		cleanupOnly: { kind: 'flag', summary: 'only delete what runs that were killed have left' },
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
			throw new UsageError('--fields does not go with --reporter and --report-file: their form is fixed');
		// A database that is made for the checks would pass them all.
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
	if (from === undefined && sendTo !== undefined)
		throw new UsageError('--send-to alone sends nothing: it needs --from');
	if (from !== undefined && sendTo === undefined)
		throw new UsageError('--from alone sends nothing: it needs --send-to');
	if (cleanupOnly && (full || sendTo !== undefined || only.length > 0 || skip.length > 0))
		throw new UsageError(
			'--cleanup-only checks nothing: it goes without --full, --only, --skip and --send-to',
		);
}

/** Reading needs no consent; a protected profile asks first, and names the change. */
async function assertAllowedToChange(cx: CommandContext, options: Options): Promise<void> {
	if (options.sendTo !== undefined) {
		const { parseMailbox } = await import('../../api/address.js');
		for (const [flag, text] of [
			['--send-to', options.sendTo],
			['--from', options.from ?? ''],
		] as const)
			if (parseMailbox(text) === null) throw new UsageError(`${flag}: "${text}" is not an address`);
		const { assertAllowed } = await import('./send/accept.js');
		assertAllowed(cx, [options.sendTo]);
	}
	const changes = options.full || options.cleanupOnly || options.sendTo !== undefined;
	if (changes) await confirmChange(cx, 'smoke');
}

export { smoke as command };
