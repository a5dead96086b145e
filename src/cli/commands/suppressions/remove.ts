import { need } from '../../../api/capabilities.js';
import { ApiError } from '../../../api/errors.js';
import { type SuppressionRemoval, suppressionReasons } from '../../../api/suppressions.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { counted } from '../../render/units.js';
import { agreeToAll, eachOf } from '../../verbs/bulk.js';
import { addressesArg, describeAddresses, listOf, readAddresses } from './filters.js';

export const suppressionRemove = command({
	name: 'remove',
	aliases: ['rm', 'delete'],
	summary: 'let mail go to addresses again',
	description:
		'Lifts all reasons, or the one of --reason, or with --list what is of that list alone. People who unsubscribed or ' +
		'complained should have asked for it. ' +
		'Subscribers stay inactive: "subscribers activate" lets single ones be written to again.',
	args: [addressesArg],
	options: {
		reason: { kind: 'choice', choices: suppressionReasons, summary: 'only this one of the reasons' },
		list: { kind: 'text', placeholder: 'LIST', summary: 'only what is of this list alone (id or name)' },
	},
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
		const what = `let mail go to ${describeAddresses(named)} again`;
		const removals: SuppressionRemoval[] = [];
		const remove = async ({ id: email }: { id: string }) => {
			// Read first: a removal would make the default database.
			const filter = { email__exact: email, ...which, page_size: 1 };
			const { count } = await suppressions.page(filter, { signal: cx.signal });
			if (count === 0) throw notSuppressed(named.length === 1 ? `${email} is ` : '');
			if (!cx.dryRun) removals.push(await suppressions.remove({ email, ...which }, { signal: cx.signal }));
		};
		if (!cx.dryRun) await agreeToAll(cx, { what, count: named.length, few: 'ask' });
		const { done, failed } = await eachOf(
			cx,
			named.map((id) => ({ id })),
			remove,
		);
		const deleted = done.map(({ id }) => id);
		if (cx.dryRun) await cx.wouldDo(what, { delete: deleted, with: which });
		else await sayRemoved(cx, deleted, removals);
		return failed === 0 ? exits.done : exits.partly;
	},
});

function notSuppressed(subject: string): ApiError {
	return new ApiError('not_found', `${subject}not suppressed`);
}

async function sayRemoved(
	cx: CommandContext,
	deleted: readonly string[],
	removals: readonly SuppressionRemoval[],
): Promise<void> {
	const lifted = removals.reduce((sum, { removed }) => sum + removed.length, 0);
	const inactive = removals.reduce((sum, removal) => sum + removal.inactive_subscribers, 0);
	await cx.out.document(
		{ deleted, suppressions: lifted, inactive_subscribers: inactive },
		`mail may go to ${describeAddresses(deleted)} again`,
	);
	const [first] = deleted;
	if (inactive > 0 && first !== undefined)
		await cx.hint([
			`${counted(inactive, 'subscriber stays', 'subscribers stay')} inactive: `,
			mailctl('subscribers', 'activate', first, '--list', 'LIST'),
		]);
}
