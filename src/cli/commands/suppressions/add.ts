import { need } from '../../../api/capabilities.js';
import { invalid } from '../../../api/errors.js';
import {
	rejectErrors,
	type Suppression,
	type SuppressionInput,
	type Suppressions,
	suppressionReasons,
} from '../../../api/suppressions.js';
import { command } from '../../frame/command.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { eachOf } from '../../verbs/bulk.js';
import { explained } from '../../verbs/refusals.js';
import {
	addressesArg,
	describeAddresses,
	expiresOption,
	listOf,
	parseExpires,
	readAddresses,
	suppressionColumns,
} from './filters.js';

export const suppressionAdd = command({
	name: 'add',
	summary: 'stop mail to addresses',
	description:
		'The subscribers with these addresses become inactive, in all lists or that of --list; with --expires they stay as they are and mail ' +
		'passes them over until then. COMPLAINED and HARDBOUNCED stop all mail, the others bulk mail. Adding never ' +
		'weakens: of two ends the later one stands. Many addresses are faster with "suppressions import".',
	args: [addressesArg],
	options: {
		reason: { kind: 'choice', choices: suppressionReasons, default: 'MANUAL', summary: 'why' },
		list: {
			kind: 'text',
			placeholder: 'LIST',
			summary: 'of this list alone (id or name), with --reason UNSUBSCRIBED',
		},
		expires: expiresOption,
	},
	columns: suppressionColumns,
	writes: true,
	output: 'the suppression; an array of them when several are added',
	exits: [5, 9],
	examples: [
		'mailctl suppressions add ann@example.com',
		'mailctl suppressions add bob@example.com --reason COMPLAINED',
		'mailctl suppressions add carl@example.com --expires 30d',
		'mailctl suppressions add dora@example.com --reason UNSUBSCRIBED --list 12',
	],
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		const suppressions = await need(await cx.api(), 'suppressions');
		const of = await listOf(cx, options.list);
		const end: { expires_at?: string } =
			options.expires === undefined ? {} : { expires_at: parseExpires(cx, options.expires) };
		const named = await readAddresses(cx, args.address);
		const inputs = named.map((email): Named => {
			return { id: email, email, reason: options.reason, ...of, ...end };
		});
		const made: Suppression[] = [];
		const add = async ({ id: _, ...input }: Named) => {
			// Of several, a refused one is reported by its address, and the others follow.
			const explain = <T>(work: Promise<T>) => (named.length === 1 ? explained(work, { input }) : work);
			if (!cx.dryRun) made.push(await explain(suppressions.create(input, { signal: cx.signal })));
			else await explain(assertTaken(suppressions, input, cx.signal));
		};
		const { done, failed } = await eachOf(cx, inputs, add);
		const [only] = made;
		if (cx.dryRun) {
			const addresses = done.map(({ email }) => email);
			const how = { reason: options.reason, ...of, ...end };
			await cx.wouldDo(`stop mail to ${describeAddresses(addresses)}`, { suppress: addresses, with: how });
		} else if (cx.out.isBare) await cx.out.raw(made.map(({ email }) => `${email}\n`).join(''));
		else if (inputs.length === 1 && only !== undefined) await cx.out.record(only, suppressionColumns);
		else await cx.out.rows(made, suppressionColumns, { all: true });
		return failed === 0 ? exits.done : exits.partly;
	},
});

type Named = SuppressionInput & { id: string; email: string };

/** A comparison without a write, on every deployment. */
async function assertTaken(
	suppressions: Suppressions,
	input: SuppressionInput,
	signal: AbortSignal,
): Promise<void> {
	const { rejects } = await suppressions.check([{ ...input, source: 'API' }], { signal });
	const [refused] = rejects;
	if (refused !== undefined) throw invalid(rejectErrors(refused));
}
