/** `suppressions remove`: letting mail go to addresses again. */
import { need } from '../../../api/capabilities.js';
import {
	type SuppressionReason,
	type SuppressionRemoval,
	type Suppressions,
	suppressionReasons,
} from '../../../api/suppressions.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { CliError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { missing } from '../../resolve.js';
import { agreeToAll, eachOf } from '../../several.js';
import { shellWord } from '../../shell-word.js';
import { findInAllLists } from '../subscribers/walk.js';
import { addressesArg, describeAddresses, readAddresses } from './addresses.js';

export const suppressionRemove = command({
	name: 'remove',
	aliases: ['rm', 'delete'],
	summary: 'let mail go to addresses again',
	description:
		'Lifts all reasons, or the one of --reason. Whoever unsubscribed or complained should have asked for it. ' +
		'Subscribers stay inactive: "subscribers activate" lets single ones be written to again.',
	args: [addressesArg],
	options: {
		reason: { kind: 'choice', choices: suppressionReasons, summary: 'only this one of the reasons' },
	},
	writes: true,
	severity: 'mild',
	output: '{"deleted": [addresses], "suppressions": 2, "inactive_subscribers": 1}',
	exits: [3, 9],
	examples: [
		'mailctl suppressions remove ann@example.com --yes',
		'mailctl suppressions remove bob@example.com --reason HARDBOUNCED --yes',
	],
	run: async (cx, { args, options: { reason } }): Promise<ExitCode> => {
		const suppressions = await need(await cx.api(), 'suppressions');
		const named = await readAddresses(cx, args.address);
		const standing = await findStanding(cx, suppressions, { named, reason });
		const what = `let mail go to ${describeAddresses(standing)} again`;
		if (cx.dryRun) {
			await cx.wouldDo(what, { remove: standing, ...(reason !== undefined && { reason }) });
			return exits.done;
		}
		await agreeToAll(cx, { what, count: standing.length, few: 'ask' });
		const removals: SuppressionRemoval[] = [];
		const { done } = await eachOf(
			cx,
			standing.map((email) => ({ id: email })),
			async ({ id: email }) => {
				removals.push(await suppressions.remove(whichOf(email, reason), { signal: cx.signal }));
			},
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
	reason: SuppressionReason | undefined;
}

/** Those that are suppressed; each other one is told. Throws `not_found` (exit 3) when there is none to go on with. */
async function findStanding(
	cx: CommandContext,
	suppressions: Suppressions,
	{ named, reason }: Sought,
): Promise<readonly string[]> {
	const standing: string[] = [];
	const others: string[] = [];
	const progress = cx.progress('looking up', named.length);
	try {
		for (const email of named) {
			const filter = { email__exact: email, ...(reason !== undefined && { reason }) };
			const { count } = await suppressions.page({ ...filter, page_size: 1 }, { signal: cx.signal });
			(count > 0 ? standing : others).push(email);
			progress.update(standing.length + others.length);
		}
	} finally {
		progress.stop();
	}
	if (standing.length === 0) throw noneOf(others, reason);
	for (const email of others) await cx.warn(`${email} is not suppressed${forReason(reason)}`);
	return standing;
}

function noneOf(named: readonly string[], reason: SuppressionReason | undefined): CliError {
	const [only] = named;
	const kind = reason === undefined ? 'suppression of' : `suppression ${reason} of`;
	if (named.length === 1 && only !== undefined)
		return missing(kind, only, `mailctl suppressions list --email ${shellWord(only)}`);
	const message = `none of the ${describeAddresses(named)} is suppressed${forReason(reason)}`;
	return new CliError('not_found', exits.notFound, message, { hint: 'mailctl suppressions list' });
}

function forReason(reason: SuppressionReason | undefined): string {
	return reason === undefined ? '' : ` for ${reason}`;
}

function whichOf(email: string, reason: SuppressionReason | undefined) {
	return { email, ...(reason !== undefined && { reason }) };
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
	const list = deleted.length === 1 && inactive === 1 ? await listOf(cx, first) : null;
	await cx.hint(`${who} inactive: mailctl subscribers activate ${shellWord(first)} --list ${list ?? 'LIST'}`);
}

/** The one list the address is inactive in; null where they are others by now, or nobody would be told. */
async function listOf(cx: CommandContext, email: string): Promise<number | null> {
	if (cx.quiet) return null;
	const lists: number[] = [];
	for await (const { is_active, list_id } of findInAllLists(await cx.api(), email, cx.signal))
		if (!is_active) lists.push(list_id);
	const [only = null, ...others] = lists;
	return others.length === 0 ? only : null;
}
