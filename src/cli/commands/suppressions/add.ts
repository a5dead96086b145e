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
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
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

const addOptions = {
	reason: { kind: 'choice', choices: suppressionReasons, default: 'MANUAL', summary: 'why' },
	list: {
		kind: 'text',
		placeholder: 'LIST',
		summary: 'of this list alone (id or name), with --reason UNSUBSCRIBED',
	},
	expires: expiresOption,
} as const;

export const suppressionAdd = command({
	name: 'add',
	summary: 'stop mail to addresses',
	description:
		'The subscribers with these addresses become inactive, in all lists or that of --list; with --expires they stay as they are and mail ' +
		'passes them over until then. COMPLAINED and HARDBOUNCED stop all mail, the others bulk mail. Adding never ' +
		'weakens: of two ends the later one stands. Many addresses are faster with "suppressions import".',
	args: [addressesArg],
	options: addOptions,
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
		if (options.list !== undefined && options.reason !== 'UNSUBSCRIBED')
			throw new UsageError(`--list: only UNSUBSCRIBED can be of one list, not ${options.reason}`, {
				hint: 'add --reason UNSUBSCRIBED, or leave --list out',
			});
		const suppressions = await need(await cx.api(), 'suppressions');
		const of = await listOf(cx, options.list);
		const end: { expires_at?: string } =
			options.expires === undefined ? {} : { expires_at: parseExpires(cx, options.expires) };
		const named = await readAddresses(cx, args.address);
		const inputs = named.map((email): Named => {
			return { id: email, email, reason: options.reason, ...of, ...end };
		});
		if (cx.dryRun) return foreseen(cx, suppressions, inputs);
		const made: Suppression[] = [];
		const add = async ({ id: _, ...input }: Named) => {
			const creation = suppressions.create(input, { signal: cx.signal });
			// Of several, a refused one is reported by its address, and the others follow.
			made.push(await (named.length === 1 ? explained(creation, { input }) : creation));
		};
		const { failed } = await eachOf(cx, inputs, add);
		const [only] = made;
		if (cx.out.isBare) await cx.out.raw(made.map(({ email }) => `${email}\n`).join(''));
		else if (inputs.length === 1 && only !== undefined) await cx.out.record(only, suppressionColumns);
		else await cx.out.rows(made, suppressionColumns, { all: true });
		// A requested end has no effect where the stored suppression ends later, or never. Times of the wire are in the order of their texts.
		for (const { email, reason, expires_at } of end.expires_at === undefined ? [] : made)
			if (expires_at === null || expires_at > (end.expires_at ?? '')) {
				const until = expires_at === null ? 'without an end' : `until ${expires_at}`;
				await cx.note(`${email} was suppressed ${until} already (${reason}), which is stronger and stays`);
			}
		return failed === 0 ? exits.done : exits.partly;
	},
});

type Named = SuppressionInput & { id: string; email: string };

/** Compares without a write, on every deployment. Ends as the addition would, 9 where one of several is refused. */
async function foreseen(
	cx: CommandContext,
	suppressions: Suppressions,
	inputs: readonly Named[],
): Promise<ExitCode> {
	const { done, failed } = await eachOf(cx, inputs, async ({ id: _, ...input }) => {
		const { rejects } = await suppressions.check([{ ...input, source: 'API' }], { signal: cx.signal });
		const [refused] = rejects;
		if (refused === undefined) return;
		const refusal = Promise.reject(invalid(rejectErrors(refused)));
		await (inputs.length === 1 ? explained(refusal, { input }) : refusal);
	});
	const [{ id: _, email: __, ...how } = { id: '', email: '' }] = inputs;
	const addresses = done.map(({ email }) => email);
	await cx.wouldDo(`stop mail to ${describeAddresses(addresses)}`, { suppress: addresses, with: how });
	return failed === 0 ? exits.done : exits.partly;
}
