import { need } from '../../../api/capabilities.js';
import {
	type RemovedSuppressions,
	type SuppressionRemoval,
	type Suppressions,
	suppressionReasons,
} from '../../../api/suppressions.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { agreeToAll, eachOf } from '../../verbs/bulk.js';
import { addressesArg, describeAddresses, listOf, readAddresses } from './filters.js';

const removeOptions = {
	reason: { kind: 'choice', choices: suppressionReasons, summary: 'only this one of the reasons' },
	list: { kind: 'text', placeholder: 'LIST', summary: 'only what is of this list alone (id or name)' },
} as const;

export const suppressionRemove = command({
	name: 'remove',
	aliases: ['rm', 'delete'],
	summary: 'let mail go to addresses again',
	description:
		'Lifts all reasons, or the one of --reason, or with --list what is of that list alone. People who unsubscribed or ' +
		'complained should have asked for it. ' +
		'Subscribers stay inactive: "subscribers activate" lets single ones be written to again.',
	args: [addressesArg],
	options: removeOptions,
	writes: true,
	severity: 'mild',
	columns: answer('deleted', 'suppressions', 'inactive_subscribers'),
	output: '{"deleted": [addresses], "suppressions": 2, "inactive_subscribers": 1}',
	exits: [3, 9],
	examples: [
		'mailctl suppressions remove ann@example.com --yes',
		'mailctl suppressions remove bob@example.com --reason HARDBOUNCED --yes',
	],
	run: async (cx, { args, options }): Promise<ExitCode> => {
		const { reason, list } = options;
		const suppressions = await need(await cx.api(), 'suppressions');
		const named = await readAddresses(cx, args.address);
		const which = { ...(reason !== undefined && { reason }), ...(await listOf(cx, list)) };
		const standing = await findStanding(cx, suppressions, named, which);
		const what = `let mail go to ${describeAddresses(standing)} again`;
		if (cx.dryRun) {
			await cx.wouldDo(what, { delete: standing, with: which });
			return standing.length === named.length ? exits.done : exits.partly;
		}
		await agreeToAll(cx, { what, count: standing.length, few: 'ask' });
		const removals: SuppressionRemoval[] = [];
		const remove = async ({ id: email }: { id: string }) => {
			removals.push(await suppressions.remove({ email, ...which }, { signal: cx.signal }));
		};
		const records = standing.map((id) => ({ id }));
		const { done } = await eachOf(cx, records, remove);
		const deleted = done.map(({ id }) => id);
		const lifted = removals.reduce((sum, { removed }) => sum + removed.length, 0);
		const inactive = removals.reduce((sum, removal) => sum + removal.inactive_subscribers, 0);
		await cx.out.document(
			{ deleted, suppressions: lifted, inactive_subscribers: inactive },
			`mail may go to ${describeAddresses(deleted)} again`,
		);
		const [first] = deleted;
		const who = inactive === 1 ? '1 subscriber stays' : `${inactive} subscribers stay`;
		if (inactive > 0 && first !== undefined)
			await cx.hint([`${who} inactive: `, mailctl('subscribers', 'activate', first, '--list', 'LIST')]);
		return done.length === named.length ? exits.done : exits.partly;
	},
});

/** The suppressed addresses; reports the others. Throws `not_found` (exit 3) when none is left. */
async function findStanding(
	cx: CommandContext,
	suppressions: Suppressions,
	named: readonly string[],
	which: Omit<RemovedSuppressions, 'email'>,
): Promise<readonly string[]> {
	const standing: string[] = [];
	const others: string[] = [];
	const progress = cx.progress('looking up', named.length);
	try {
		for (const email of named) {
			const filter = { email__exact: email, ...which, page_size: 1 };
			const { count } = await suppressions.page(filter, { signal: cx.signal });
			(count > 0 ? standing : others).push(email);
			progress.update(standing.length + others.length);
		}
	} finally {
		progress.stop();
	}
	const { reason, list_id } = which;
	const list = list_id === undefined ? '' : ` in list ${list_id} alone`;
	const as = `${reason === undefined ? '' : ` for ${reason}`}${list}`;
	const [only] = others;
	if (standing.length === 0)
		throw new CliError(
			'not_found',
			exits.notFound,
			named.length === 1
				? `${only} is not suppressed${as}`
				: `none of the ${describeAddresses(named)} is suppressed${as}`,
			{ hint: mailctl('suppressions', 'list', ...(named.length === 1 ? ['--email', `${only}`] : [])) },
		);
	for (const email of others) await cx.warn(`${email} is not suppressed${as}`);
	return standing;
}
