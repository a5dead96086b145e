/** `suppressions remove`: letting mail go to addresses again. */
import { need } from '../../../api/capabilities.js';
import {
	type RemovedSuppressions,
	type SuppressionRemoval,
	type Suppressions,
	suppressionReasons,
} from '../../../api/suppressions.js';
import { command } from '../../frame/command.js';
import { mailctl, optionWords } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { agreeToAll, eachOf } from '../../verbs/bulk.js';
import { missing } from '../../verbs/resolve.js';
import { findInAllLists } from '../subscribers/walk.js';
import { addressesArg, describeAddresses, readAddresses } from './addresses.js';
import { listOf } from './filters.js';

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
		const standing = await findStanding(cx, suppressions, { named, which });
		const what = `let mail go to ${describeAddresses(standing)} again`;
		if (cx.dryRun) {
			await cx.wouldDo(what, { delete: standing, with: which });
			return standing.length === named.length ? exits.done : exits.partly;
		}
		await agreeToAll(cx, { what, count: standing.length, few: 'ask' });
		const removals: SuppressionRemoval[] = [];
		const { done } = await eachOf(
			cx,
			standing.map((email) => ({ id: email })),
			async ({ id: email }) => {
				removals.push(await suppressions.remove({ email, ...which }, { signal: cx.signal }));
			},
			(rest) =>
				mailctl(
					'suppressions',
					'remove',
					...rest.map(({ id }) => id),
					...optionWords(removeOptions, options, cx),
					'--yes',
				),
		);
		await sayRemoved(
			cx,
			done.map(({ id }) => id),
			removals,
		);
		return done.length === named.length ? exits.done : exits.partly;
	},
});

interface Sought {
	named: readonly string[];
	which: Which;
}

type Which = Omit<RemovedSuppressions, 'email'>;

/** The suppressed addresses; reports the others. Throws `not_found` (exit 3) when none is left. */
async function findStanding(
	cx: CommandContext,
	suppressions: Suppressions,
	{ named, which }: Sought,
): Promise<readonly string[]> {
	const standing: string[] = [];
	const others: string[] = [];
	const progress = cx.progress('looking up', named.length);
	try {
		for (const email of named) {
			const filter = { email__exact: email, ...which };
			const { count } = await suppressions.page({ ...filter, page_size: 1 }, { signal: cx.signal });
			(count > 0 ? standing : others).push(email);
			progress.update(standing.length + others.length);
		}
	} finally {
		progress.stop();
	}
	if (standing.length === 0) throw noneOf(others, which);
	for (const email of others) await cx.warn(`${email} is not suppressed${forWhich(which)}`);
	return standing;
}

function noneOf(named: readonly string[], which: Which): CliError {
	const [only] = named;
	const { reason, list_id } = which;
	const of = list_id === undefined ? 'of' : `of list ${list_id} for`;
	const kind = reason === undefined ? `suppression ${of}` : `suppression ${reason} ${of}`;
	if (named.length === 1 && only !== undefined)
		return missing(kind, only, mailctl('suppressions', 'list', '--email', only));
	const message = `none of the ${describeAddresses(named)} is suppressed${forWhich(which)}`;
	return new CliError('not_found', exits.notFound, message, { hint: mailctl('suppressions', 'list') });
}

function forWhich({ reason, list_id }: Which): string {
	const list = list_id === undefined ? '' : ` in list ${list_id} alone`;
	return reason === undefined ? list : ` for ${reason}${list}`;
}

async function sayRemoved(
	cx: CommandContext,
	deleted: readonly string[],
	removals: readonly SuppressionRemoval[],
): Promise<void> {
	const suppressions = removals.reduce((sum, { removed }) => sum + removed.length, 0);
	const inactive = removals.reduce((sum, removal) => sum + removal.inactive_subscribers, 0);
	await cx.out.document(
		{ deleted, suppressions, inactive_subscribers: inactive },
		`mail may go to ${describeAddresses(deleted)} again`,
	);
	const [first] = deleted;
	if (inactive === 0 || first === undefined) return;
	const who = inactive === 1 ? '1 subscriber stays' : `${inactive} subscribers stay`;
	const list = deleted.length === 1 && inactive === 1 ? await inactiveIn(cx, first) : null;
	await cx.hint([
		`${who} inactive: `,
		mailctl('subscribers', 'activate', first, '--list', String(list ?? 'LIST')),
	]);
}

/** The one list the address is inactive in; null where there is not exactly one, or `--quiet` hides the answer. */
async function inactiveIn(cx: CommandContext, email: string): Promise<number | null> {
	if (cx.quiet) return null;
	const lists: number[] = [];
	for await (const { is_active, list_id } of findInAllLists(await cx.api(), email, cx.signal))
		if (!is_active) lists.push(list_id);
	const [only = null, ...others] = lists;
	return others.length === 0 ? only : null;
}
