import { need } from '../../api/capabilities.js';
import { ApiError, invalid } from '../../api/errors.js';
import {
	rejectErrors,
	type Suppression,
	type SuppressionInput,
	type SuppressionRemoval,
	type Suppressions,
	suppressionReasons,
} from '../../api/suppressions.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { answer } from '../render/columns.js';
import { counted } from '../render/units.js';
import { assertAddress } from '../verbs/address-faults.js';
import { agreeToAll, eachOf, nameOrCount, namesOf } from '../verbs/bulk.js';
import { listOptions, listRows, walk } from '../verbs/listing.js';
import { explained } from '../verbs/refusals.js';
import { suppressionExport } from './suppressions/export.js';
import {
	expiresOption,
	filterOf,
	filterOptions,
	listOf,
	parseExpires,
	suppressionColumns,
} from './suppressions/filters.js';
import { suppressionImport } from './suppressions/import.js';

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'show the addresses that get no mail, and why',
	description:
		'COMPLAINED and HARDBOUNCED stop all mail to an address; UNSUBSCRIBED, SOFTBOUNCED and MANUAL (added by hand) ' +
		'stop bulk mail. An UNSUBSCRIBED with a LIST is for that list, all others are for every list. Expired ones ' +
		'are not shown.',
	options: {
		...filterOptions,
		sort: listOptions.sort,
		limit: listOptions.limit,
		all: listOptions.all,
	},
	columns: suppressionColumns,
	output: 'an array of suppressions',
	examples: [
		'mailctl suppressions list',
		'mailctl suppressions list --reason HARDBOUNCED --match @example.com -o csv',
	],
	run: async (cx, { options }) => {
		const suppressions = await need(await cx.api(), 'suppressions');
		const { sort, limit, all } = options;
		const filter = await filterOf(cx, options);
		await listRows(
			cx,
			{ sort, limit, all },
			{
				columns: suppressionColumns,
				rows: (most) => walk(suppressions, filter, { signal: cx.signal, limit: most }),
			},
		);
	},
});

const addressesArg = {
	name: 'address',
	summary: 'e-mail addresses; - reads them from standard input, one a line',
	many: true,
	of: 'address',
	ask: 'E-mail addresses:',
} as const;

async function readAddresses(cx: CommandContext, texts: readonly string[]): Promise<readonly string[]> {
	const found = new Map<string, string>();
	for await (const text of namesOf(cx, texts)) {
		const { address, key } = assertAddress(text);
		found.set(key, address);
	}
	if (found.size === 0) throw new UsageError('no address was given');
	return [...found.values()];
}

const add = command({
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
		const how = { reason: options.reason, ...of, ...end };
		const made: Suppression[] = [];
		const addOne = async ({ id: email }: { id: string }) => {
			const input = { email, ...how };
			const explain = <T>(work: Promise<T>) => (named.length === 1 ? explained(work, { input }) : work);
			if (!cx.dryRun) made.push(await explain(suppressions.create(input, { signal: cx.signal })));
			else await explain(assertAccepted(suppressions, input, cx.signal));
		};
		const records = named.map((id) => ({ id }));
		const { done, failed } = await eachOf(cx, records, addOne);
		const [only] = made;
		if (cx.dryRun) {
			const addresses = done.map(({ id }) => id);
			const what = `stop mail to ${nameOrCount(addresses, 'addresses')}`;
			await cx.wouldDo(what, { suppress: addresses, with: how });
		} else if (cx.out.isBare) await cx.out.raw(made.map(({ email }) => `${email}\n`).join(''));
		else if (named.length === 1 && only !== undefined) await cx.out.record(only, suppressionColumns);
		else await cx.out.rows(made, suppressionColumns, { all: true });
		return failed === 0 ? exits.done : exits.partly;
	},
});

async function assertAccepted(
	suppressions: Suppressions,
	input: SuppressionInput,
	signal: AbortSignal,
): Promise<void> {
	const { rejects } = await suppressions.check([{ ...input, source: 'API' }], { signal });
	const [refused] = rejects;
	if (refused !== undefined) throw invalid(rejectErrors(refused));
}

const remove = command({
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
		const what = `let mail go to ${nameOrCount(named, 'addresses')} again`;
		const removals: SuppressionRemoval[] = [];
		if (!cx.dryRun) await agreeToAll(cx, { what, count: named.length, few: 'ask' });
		const records = named.map((id) => ({ id }));
		const { done, failed } = await eachOf(cx, records, async ({ id: email }) => {
			// Read first: a removal would make the default database.
			const filter = { email__exact: email, ...which, page_size: 1 };
			const { count } = await suppressions.page(filter, { signal: cx.signal });
			if (count === 0)
				throw new ApiError('not_found', `${named.length === 1 ? `${email} is ` : ''}not suppressed`);
			if (!cx.dryRun) removals.push(await suppressions.remove({ email, ...which }, { signal: cx.signal }));
		});
		const deleted = done.map(({ id }) => id);
		if (cx.dryRun) await cx.wouldDo(what, { delete: deleted, with: which });
		else {
			const lifted = removals.reduce((sum, { removed }) => sum + removed.length, 0);
			const inactive = removals.reduce((sum, removal) => sum + removal.inactive_subscribers, 0);
			await cx.out.document(
				{ deleted, suppressions: lifted, inactive_subscribers: inactive },
				`mail may go to ${nameOrCount(deleted, 'addresses')} again`,
			);
			const [first] = deleted;
			if (inactive > 0 && first !== undefined)
				await cx.hint([
					`${counted(inactive, 'subscriber stays', 'subscribers stay')} inactive: `,
					mailctl('subscribers', 'activate', first, '--list', 'LIST'),
				]);
		}
		return failed === 0 ? exits.done : exits.partly;
	},
});

export const group: CommandGroup = {
	name: 'suppressions',
	summary: 'addresses that get no mail',
	examples: [
		'mailctl suppressions add ann@example.com',
		'mailctl suppressions import bounced.csv --reason HARDBOUNCED',
		'mailctl suppressions list --reason HARDBOUNCED --match @example.com -o csv',
	],
	commands: [list, add, remove, suppressionImport, suppressionExport],
};
