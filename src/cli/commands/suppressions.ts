import { need } from '../../api/capabilities.js';
import { ApiError, invalid } from '../../api/errors.js';
import {
	rejectErrors,
	type Suppression,
	type SuppressionRemoval,
	suppressionReasons,
} from '../../api/suppressions.js';
import type { SuppressionPart } from '../../tables/suppression-columns.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { given } from '../frame/values.js';
import { answers, parseFields, unknownField } from '../render/columns.js';
import { counted } from '../render/units.js';
import { assertAddress } from '../verbs/address-faults.js';
import { agreeToAll, eachOf, nameOrCount, namesOf } from '../verbs/changing.js';
import { destinationOf, exportArg, exportOptions, exportRecords } from '../verbs/exporting.js';
import { inSlices, listRows, pageOptions, walk } from '../verbs/listing.js';
import { explained, type Refused } from '../verbs/refusals.js';
import {
	expiresOption,
	filterOf,
	filterOptions,
	listOf,
	listOption,
	parseExpires,
	suppressionColumns,
} from './suppressions/filters.js';
import { suppressionImport } from './suppressions/import.js';

const list = command({
	name: 'list',
	summary: 'list suppressed addresses',
	description:
		'COMPLAINED and HARDBOUNCED stop all mail to an address; UNSUBSCRIBED, SOFTBOUNCED and MANUAL stop bulk mail. ' +
		'Only UNSUBSCRIBED can have a LIST, and then applies to that list only. All others apply to all lists. ' +
		'Leaves out expired suppressions.',
	options: { ...filterOptions, ...pageOptions },
	columns: suppressionColumns,
	output: 'an array of suppressions',
	examples: [
		'mailctl suppressions list',
		'mailctl suppressions list --reason HARDBOUNCED --match @example.com -o csv',
	],
	run: async (cx, { options }) => {
		const suppressions = await need(await cx.api(), 'suppressions');
		const filter = await filterOf(cx, options);
		const rows = (most: number | undefined) => walk(suppressions, filter, { signal: cx.signal, limit: most });
		await listRows(cx, { ...options, match: undefined }, { columns: suppressionColumns, rows });
	},
});

const addressesArg = {
	name: 'address',
	summary: 'e-mail addresses; - reads one per line from standard input',
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
	if (found.size === 0) throw new UsageError('no address given');
	return [...found.values()];
}

const add = command({
	name: 'add',
	summary: 'suppress addresses',
	description:
		'Subscribers with these addresses become inactive, in all lists or in --list. With --expires, these ' +
		'subscribers stay active, and the suppression ends at that time. COMPLAINED and HARDBOUNCED stop all mail, the ' +
		'other reasons stop bulk mail. Adding never weakens a suppression: of two expiry times, the later one counts.',
	args: [addressesArg],
	options: {
		reason: { kind: 'choice', choices: suppressionReasons, default: 'MANUAL', summary: 'set the reason' },
		list: { ...listOption, summary: 'suppress for this list only; needs --reason UNSUBSCRIBED' },
		expires: expiresOption,
	},
	columns: suppressionColumns,
	writes: true,
	output: 'the suppression; an array for several addresses',
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
		const end = given({ expires_at: options.expires && parseExpires(cx, options.expires) });
		const named = await readAddresses(cx, args.address);
		const how = { reason: options.reason, ...of, ...end };
		const made: Suppression[] = [];
		const hint = ({ path }: Refused) => (path === 'list_id' ? 'give --reason UNSUBSCRIBED' : undefined);
		const addOne = async ({ id: email }: { id: string }) => {
			const input = { email, ...how };
			const explain = <T>(work: Promise<T>) => (named.length === 1 ? explained(work, { input, hint }) : work);
			const call = { signal: cx.signal };
			if (!cx.dryRun) return void made.push(await explain(suppressions.create(input, call)));
			const { rejects } = await suppressions.check([{ ...input, source: 'API' }], call);
			for (const refused of rejects) await explain(Promise.reject(invalid(rejectErrors(refused))));
		};
		const records = named.map((id) => ({ id }));
		const { done, failed } = await eachOf(cx, records, addOne);
		const [only] = made;
		if (cx.dryRun) {
			const addresses = done.map(({ id }) => id);
			await cx.wouldDo(`suppress ${nameOrCount(addresses, 'addresses')}`, { suppress: addresses, with: how });
		} else if (cx.out.isBare) await cx.out.raw(made.map(({ email }) => `${email}\n`).join(''));
		else if (named.length === 1 && only !== undefined) await cx.out.record(only, suppressionColumns);
		else await cx.out.rows(made, suppressionColumns, { all: true });
		return failed === 0 ? exits.done : exits.partly;
	},
});

const remove = command({
	name: 'remove',
	summary: 'lift the suppressions of addresses',
	description:
		'Lifts all suppressions of an address, or only those that --reason or --list selects. Subscribers stay inactive until ' +
		'you run "subscribers activate". Lift UNSUBSCRIBED or COMPLAINED only if the person asks for mail.',
	args: [addressesArg],
	options: {
		reason: {
			kind: 'choice',
			choices: suppressionReasons,
			summary: 'lift only suppressions with this reason',
		},
		list: { ...listOption, summary: 'lift only suppressions of this list (id or name)' },
	},
	writes: true,
	severity: 'mild',
	...answers({ deleted: '[addresses]', suppressions: '2', inactive_subscribers: '1' }),
	exits: [3, 9],
	examples: [
		'mailctl suppressions remove ann@example.com --yes',
		'mailctl suppressions remove bob@example.com --reason HARDBOUNCED --yes',
	],
	run: async (cx, { args, options }): Promise<ExitCode> => {
		const { reason, list } = options;
		const suppressions = await need(await cx.api(), 'suppressions');
		const named = await readAddresses(cx, args.address);
		const which = { ...given({ reason }), ...(await listOf(cx, list)) };
		const what = `allow mail to ${nameOrCount(named, 'addresses')} again`;
		const removals: SuppressionRemoval[] = [];
		if (!cx.dryRun) await agreeToAll(cx, { what, count: named.length, few: 'ask' });
		const records = named.map((id) => ({ id }));
		const { done, failed } = await eachOf(cx, records, async ({ id: email }) => {
			// Read first, because a removal would create the default database.
			const filter = { email__exact: email, ...which, page_size: 1 };
			const { count } = await suppressions.page(filter, { signal: cx.signal });
			if (count === 0)
				throw new ApiError('not_found', `${named.length === 1 ? `${email} is ` : ''}not suppressed`);
			if (!cx.dryRun) removals.push(await suppressions.remove({ email, ...which }, { signal: cx.signal }));
		});
		const deleted = done.map(({ id }) => id);
		if (cx.dryRun) await cx.wouldDo(what, { delete: deleted, with: which });
		else {
			const suppressions = removals.reduce((sum, { removed }) => sum + removed.length, 0);
			const inactive = removals.reduce((sum, removal) => sum + removal.inactive_subscribers, 0);
			const lifted = { deleted, suppressions, inactive_subscribers: inactive };
			await cx.out.document(lifted, `lifted the suppression of ${nameOrCount(deleted, 'addresses')}`);
			const [first] = deleted;
			if (inactive > 0 && first !== undefined)
				await cx.hint([
					`${counted(inactive, 'subscriber stays', 'subscribers stay')} inactive: `,
					mailctl('subscribers', 'activate', first, '--list', list ?? 'LIST'),
				]);
		}
		return failed === 0 ? exits.done : exits.partly;
	},
});

const pieceSize = 1000;

const exportCommand = command({
	name: 'export',
	summary: 'export suppressions to a file or standard output',
	description:
		'Importing the file gives the same suppressions; expired ones are left out. An existing file is replaced only with ' +
		'--force. With --safe-csv the file is for spreadsheets, not for importing.',
	args: [exportArg],
	options: { ...filterOptions, ...exportOptions },
	columns: 'own',
	output: 'with a file: {"file", "format", "exported"}; else the suppressions themselves',
	exits: [74],
	examples: [
		'mailctl suppressions export stopped.csv',
		'mailctl suppressions export --reason UNSUBSCRIBED --format ndjson',
	],
	run: async (cx, { args, options }): Promise<ExitCode> => {
		const to = await destinationOf(cx, args.file, options);
		const parts = await partsOf(cx);
		const suppressions = await need(await cx.api(), 'suppressions');
		const filter = await filterOf(cx, options);
		const call = { signal: cx.signal };
		const { suppressionLine } = await import('../../tables/suppression-columns.js');
		return exportRecords(cx, to, {
			pieces: inSlices(cx.signal, '', (after) => {
				const cursor = after === '' ? undefined : after;
				return suppressions.slice({ ...filter, limit: pieceSize, ...given({ cursor }) }, call);
			}),
			header: `${parts.join(',')}\n`,
			line: (one) =>
				to.format === 'csv'
					? suppressionLine(one, parts, to.guard)
					: JSON.stringify(Object.fromEntries(parts.map((part) => [part, one[part]]))),
			total: null,
			noun: 'suppression',
		});
	},
});

async function partsOf(cx: CommandContext): Promise<readonly SuppressionPart[]> {
	const { suppressionParts } = await import('../../tables/suppression-columns.js');
	const named = parseFields(cx.globals.fields);
	if (named === null) return suppressionParts;
	return named.map((name) => {
		const part = suppressionParts.find((one) => one === name);
		if (part === undefined) throw unknownField(name, suppressionParts);
		return part;
	});
}

export const group: CommandGroup = {
	name: 'suppressions',
	summary: 'manage addresses that get no mail',
	examples: [
		'mailctl suppressions add ann@example.com',
		'mailctl suppressions import bounced.csv --reason HARDBOUNCED',
		'mailctl suppressions list --reason HARDBOUNCED --match @example.com -o csv',
	],
	commands: [list, add, remove, suppressionImport, exportCommand],
};
