/** Adding suppressions by hand, and lifting them by name. */
import { createInterface } from 'node:readline';
import { emailKey, parseAddress } from '../../../api/address.js';
import { need } from '../../../api/capabilities.js';
import { notFound } from '../../../api/errors.js';
import {
	type Suppression,
	type SuppressionInput,
	type SuppressionRemoval,
	suppressionReasons,
} from '../../../api/suppressions.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { explained } from '../../refusals.js';
import { missing, orNull } from '../../resolve.js';
import { eachOf } from '../../several.js';
import { expiresOption, parseExpires, suppressionColumns } from './filters.js';

/** More than this is a severe change: the count has to be typed. */
const severeCount = 100;

const addresses = {
	name: 'address',
	summary: 'e-mail addresses; - reads them from standard input, one a line',
	many: true,
} as const;

export const suppressionAdd = command({
	name: 'add',
	summary: 'stop mail to addresses',
	description:
		'The subscribers with these addresses become inactive, in all lists; with --expires they stay as they are and mail ' +
		'passes them over until then. COMPLAINED and HARDBOUNCED stop all mail, the others bulk mail. Adding never ' +
		'weakens: of two ends the later one stands. Many addresses are faster with "suppressions import".',
	args: [addresses],
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
		const end = options.expires === undefined ? {} : { expires_at: parseExpires(cx, options.expires) };
		const named = await readAddresses(cx, args.address);
		const inputs = named.map((email): SuppressionInput & { id: string; email: string } => {
			return { id: email, email, reason: options.reason, ...end };
		});
		if (cx.dryRun) {
			const rows = inputs.map(({ id: _, ...row }) => row);
			await cx.wouldDo(`stop mail to ${describe(named)}`, { suppress: rows });
			return undefined;
		}
		const made: Suppression[] = [];
		const { failed } = await eachOf(cx, inputs, async ({ id: _, ...input }) => {
			const creation = suppressions.create(input, { signal: cx.signal });
			// One of several that is refused is told by its address, and the rest goes on.
			made.push(await (named.length === 1 ? explained(creation, { input, hint }) : creation));
		});
		await sayMade(cx, made, inputs.length);
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

export const suppressionRemove = command({
	name: 'remove',
	aliases: ['rm', 'delete'],
	summary: 'let mail go to addresses again',
	description:
		'Lifts all reasons, or the one of --reason. Whoever unsubscribed or complained should have asked for it. ' +
		'Subscribers stay inactive: "subscribers activate" lets single ones be written to again.',
	args: [addresses],
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
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		const suppressions = await need(await cx.api(), 'suppressions');
		const named = await readAddresses(cx, args.address);
		const what = `let mail go to ${describe(named)} again`;
		const { reason } = options;
		if (cx.dryRun) {
			await cx.wouldDo(what, { remove: named, ...(reason !== undefined && { reason }) });
			return undefined;
		}
		await consent(cx, what, named.length);
		const removals: SuppressionRemoval[] = [];
		const { done, failed } = await eachOf(
			cx,
			named.map((email) => ({ id: email })),
			async ({ id: email }) => {
				const which = { email, ...(reason !== undefined && { reason }) };
				const removal = await orNull(suppressions.remove(which, { signal: cx.signal }));
				if (removal === null) throw named.length === 1 ? notThere(email, reason) : notFound();
				removals.push(removal);
			},
		);
		await sayRemoved(
			cx,
			done.map(({ id }) => id),
			removals,
		);
		return failed === 0 ? exits.done : exits.partly;
	},
});

function notThere(email: string, reason: string | undefined) {
	const kind = reason === undefined ? 'suppression of' : `suppression ${reason} of`;
	return missing(kind, email, `mailctl suppressions list --email ${email}`);
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
		`mail may go to ${describe(deleted)} again`,
	);
	const [first] = deleted;
	if (inactive === 0 || first === undefined) return;
	const who = inactive === 1 ? '1 subscriber stays' : `${inactive} subscribers stay`;
	await cx.hint(`${who} inactive: mailctl subscribers activate ${first} --list LIST`);
}

function consent(cx: CommandContext, what: string, count: number): Promise<void> {
	// A script that names the count has agreed, few as they are today.
	const isSevere = count > severeCount || cx.globals.confirm !== undefined;
	return isSevere
		? cx.confirm({ kind: 'severe', what, name: String(count) })
		: cx.confirm({ kind: 'mild', what });
}

function hint({ message }: { message: string }): string | undefined {
	return message.includes('was erased')
		? 'no bulk mail goes to an erased address; mailctl subscribers erase ADDRESS --lift takes it again'
		: undefined;
}

function describe(named: readonly string[]): string {
	const [only] = named;
	return named.length === 1 && only !== undefined ? only : `${named.length} addresses`;
}

/** Each once, however often it is named; all are looked at before anything is done. */
async function readAddresses(cx: CommandContext, texts: readonly string[]): Promise<readonly string[]> {
	const found = new Map<string, string>();
	for await (const text of namesOf(cx, texts)) {
		const address = parseAddress(text);
		if (address === null) throw new UsageError(`"${text}" is no e-mail address`);
		found.set(emailKey(text), address.address);
	}
	if (found.size === 0) throw new UsageError('no address was given');
	return [...found.values()];
}

async function* namesOf(cx: CommandContext, texts: readonly string[]): AsyncGenerator<string> {
	for (const text of texts) {
		if (text !== '-') {
			yield text;
			continue;
		}
		const input = cx.sources.stdin('-');
		for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
			if (line.trim() !== '') yield line.trim();
		}
	}
}
