/** `suppressions add`: stopping mail to addresses by hand. */
import { need } from '../../../api/capabilities.js';
import { type Suppression, type SuppressionInput, suppressionReasons } from '../../../api/suppressions.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { type ExitCode, exits } from '../../exit.js';
import { explained } from '../../refusals.js';
import { eachOf } from '../../several.js';
import { addressesArg, describeAddresses, readAddresses } from './addresses.js';
import { expiresOption, parseExpires, suppressionColumns } from './filters.js';

export const suppressionAdd = command({
	name: 'add',
	summary: 'stop mail to addresses',
	description:
		'The subscribers with these addresses become inactive, in all lists; with --expires they stay as they are and mail ' +
		'passes them over until then. COMPLAINED and HARDBOUNCED stop all mail, the others bulk mail. Adding never ' +
		'weakens: of two ends the later one stands. Many addresses are faster with "suppressions import".',
	args: [addressesArg],
	options: {
		reason: {
			kind: 'choice',
			choices: suppressionReasons,
			default: 'MANUAL',
			summary: 'why',
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
	],
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		const suppressions = await need(await cx.api(), 'suppressions');
		const end: { expires_at?: string } =
			options.expires === undefined ? {} : { expires_at: parseExpires(cx, options.expires) };
		const named = await readAddresses(cx, args.address);
		const inputs = named.map((email): SuppressionInput & { id: string; email: string } => {
			return { id: email, email, reason: options.reason, ...end };
		});
		if (cx.dryRun) {
			const rows = inputs.map(({ id: _, ...row }) => row);
			await cx.wouldDo(`stop mail to ${describeAddresses(named)}`, { suppress: rows });
			return undefined;
		}
		const made: Suppression[] = [];
		const { failed } = await eachOf(cx, inputs, async ({ id: _, ...input }) => {
			const creation = suppressions.create(input, { signal: cx.signal });
			// One of several that is refused is told by its address, and the rest goes on.
			made.push(await (named.length === 1 ? explained(creation, { input, hint }) : creation));
		});
		await sayMade(cx, made, inputs.length);
		if (end.expires_at !== undefined) await sayStronger(cx, made, end.expires_at);
		return failed === 0 ? exits.done : exits.partly;
	},
});

/** One is an object and several are an array, by what was asked for; with `-q` the addresses alone. */
async function sayMade(cx: CommandContext, made: readonly Suppression[], asked: number): Promise<void> {
	const [only] = made;
	if (cx.quiet) await cx.out.raw(made.map(({ email }) => `${email}\n`).join(''));
	else if (asked === 1 && only !== undefined) await cx.out.record(only, suppressionColumns);
	else await cx.out.rows(made, suppressionColumns, { all: true });
}

/** An end that was asked for and does not hold, because a later one or none stood already. */
async function sayStronger(cx: CommandContext, made: readonly Suppression[], asked: string): Promise<void> {
	for (const { email, reason, expires_at } of made) {
		// Times of the wire are in the order of their texts.
		if (expires_at !== null && expires_at <= asked) continue;
		const end = expires_at === null ? 'without an end' : `until ${expires_at}`;
		await cx.note(`${email} was suppressed ${end} already (${reason}), which is stronger and stays`);
	}
}

function hint({ message }: { message: string }): string | undefined {
	return message.includes('was erased')
		? 'no bulk mail goes to an erased address; mailctl subscribers erase ADDRESS --lift takes it again'
		: undefined;
}
