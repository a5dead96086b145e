/** `send --list`: the subscribers of a list as the recipients of a campaign, staged beside the data. */

import { parseAddress } from '../../../api/address.js';
import type { CampaignSpec } from '../../../api/capabilities.js';
import type { List, Subscriber } from '../../../api/records.js';
import { texts } from '../../../api/schema/texts.js';
import type { Person } from '../../../engine/rules/meta.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { counted, numberText } from '../../render/counted.js';
import { walk } from '../../verbs/listing.js';
import { resolveList } from '../../verbs/resolve.js';
import {
	assertAllowed,
	assertFindings,
	assertListAllowed,
	lacking,
	lacks,
	mostFindings,
	requestFor,
	Survey,
	showPlan,
} from './audience.js';
import { beginCampaign, foreseeCampaign, openCampaign } from './begin.js';
import { assertCanDeliver, warnOfLinks } from './deliver.js';
import { linted, warnOfContent } from './lint.js';
import type { SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import { asSubscriber, assertAcceptable, compose, sendTrial, showPreview, wantsPreview } from './preview.js';
import { isShown, notAmong, shownKey } from './preview-as.js';
import { assertExpected } from './report.js';
import { contentOf, isOpaque, openVariables, type Prepared, prepare, specOf } from './request.js';
import { type ResultsHow, writeResults, writeRowResults } from './results.js';
import { type CampaignRun, type RunOptions, runCampaign } from './run.js';

/** A list, and what its subscribers are to be sent. */
interface ListSending {
	prepared: Prepared;
	list: List;
	options: SendOptions;
}

export async function sendToList(
	cx: CommandContext,
	options: SendOptions,
	text: string,
): Promise<ExitCode | undefined> {
	assertOptions(options);
	const list = await resolveList(await cx.api(), text, { signal: cx.signal });
	const strict = options.strictVars ?? true;
	const prepared = await linted(cx, await prepare(cx, options), { strict });
	const sending: ListSending = { prepared, list, options };
	const spec = listSpec(prepared, list, options);
	if (options.testTo !== undefined) {
		assertAllowed(cx, [options.testTo]);
		return sendTest(cx, sending, options.testTo);
	}
	if (cx.dryRun) {
		if (await foreseeCampaign(cx, { options, of: 'a list', spec })) return undefined;
		return dryRun(cx, sending);
	}
	if (wantsPreview(options)) return preview(cx, sending).then(() => undefined);
	await assertListAllowed(cx, list);
	const beginning = await beginCampaign(cx, options, 'a list');
	const { place } = beginning;
	const { id, key: name, isMadeUp } = await openCampaign(cx, beginning, spec);
	const subject = prepared.template?.name ?? prepared.request.subject ?? '';
	const { bulk } = options;
	const campaign = listJob(cx, { place, id, name, list, subject, bulk, options });
	const warn = async () => {
		await warnOfContent(cx, prepared);
		await campaign.warn();
	};
	return runCampaign(cx, { ...campaign, warn, isMadeUp });
}

/** Ends as the campaign would: `UsageError` for findings, or 9 with `--skip-invalid`. */
async function dryRun(cx: CommandContext, sending: ListSending): Promise<ExitCode> {
	const { prepared, list, options } = sending;
	// An empty list is fine with `--expect-count 0`.
	const isEmpty = list.active_subscribers_count === 0 && options.expectCount === 0;
	const anyone = isEmpty ? null : await firstOf(cx, list, options);
	if (anyone !== null) await assertAcceptable(cx, { ...prepared.request, to: [anyone.email] });
	await assertListAllowed(cx, list);
	// The list is read to its end only where a subscriber could be refused.
	const used = (options.strictVars ?? true) ? variablesOfPeople(prepared) : [];
	const {
		recipients,
		rejected,
		first: one,
	} = used.length === 0
		? { recipients: list.active_subscribers_count, rejected: 0, first: anyone }
		: await surveyed(cx, sending, used);
	const first = options.previewAs === undefined ? one : anyone;
	assertExpected({ found: recipients, where: 'the list', options });
	await warnOfContent(cx, prepared);
	await warnOfLinks(cx, { bulk: options.bulk, list: list.name });
	const of = `the ${counted(recipients, 'active subscriber')} of list ${list.id} "${list.name}"`;
	await showPlan(cx, {
		prepared,
		options,
		what: (subject) => `send ${subject} to ${of}${caveat(sending, rejected)}`,
		plan: { list_id: list.id, recipients, rejected, send: prepared.request },
		first: first && {
			request: () => requestFor(prepared, personOf(first, list)),
			message: () => composeFor(cx, sending, first),
		},
	});
	return rejected > 0 ? exits.partly : exits.done;
}

/** The variables whose values differ between the people of a list; empty too where only the service knows. */
function variablesOfPeople(prepared: Prepared): string[] {
	if (isOpaque(prepared)) return [];
	return openVariables(contentOf(prepared), prepared.request.context ?? {});
}

/** Every active subscriber is read. */
async function surveyed(
	cx: CommandContext,
	{ list, options }: ListSending,
	used: readonly string[],
): Promise<Survey<Subscriber>> {
	const api = await cx.api();
	const found = new Survey<Subscriber>(mostFindings(cx));
	const people = walk(api.subscribers(list.id), { is_active: true }, { signal: cx.signal });
	for await (const person of people) {
		const { email } = person;
		const address = parseAddress(email)?.address ?? null;
		// What is shared was left out of `used` before.
		const missing = lacking(personOf(person, list), { used, context: {} });
		if (address === null) found.reject({ code: 'invalid', error: `${email}: ${texts.email}` }, { to: email });
		else if (missing.length > 0) found.reject(lacks(address, missing), { to: address });
		else found.add(person);
	}
	await assertFindings(cx, found, options);
	return found;
}

/** What the number leaves open. */
function caveat({ prepared, options }: ListSending, rejected: number): string {
	if (rejected > 0) return `, ${numberText(rejected)} left out`;
	if (options.strictVars !== false || variablesOfPeople(prepared).length === 0) return '';
	return '; with --no-strict-vars their variables are not checked one by one';
}

/** `--preview` and `--eml`: what the first would get. */
async function preview(cx: CommandContext, sending: ListSending): Promise<void> {
	const { prepared, list, options } = sending;
	const subscriber = await firstOf(cx, list, options);
	await assertAcceptable(cx, { ...prepared.request, to: [subscriber.email] });
	await warnOfContent(cx, prepared);
	await showPreview(cx, await composeFor(cx, sending, subscriber), options);
}

/** To an address of one's own: with the first subscriber's variables, in no campaign. */
async function sendTest(
	cx: CommandContext,
	{ prepared, list, options }: ListSending,
	to: string,
): Promise<ExitCode> {
	await assertCanDeliver(cx, options);
	const addressee = asSubscriber(await firstOf(cx, list, options), list.email_reason);
	return sendTrial(cx, { prepared, addressee, to, options });
}

function composeFor(cx: CommandContext, { prepared, list }: ListSending, subscriber: Subscriber) {
	return compose(cx, prepared, asSubscriber(subscriber, list.email_reason));
}

function personOf({ email, name, meta }: Subscriber, { email_reason }: List): Person {
	return { email: parseAddress(email)?.address ?? email, name, email_reason, meta };
}

/** The first active subscriber, or the one of `--preview-as`. Throws `UsageError` where there is none, `not_found` for that one. */
async function firstOf(
	cx: CommandContext,
	list: List,
	options: Pick<SendOptions, 'previewAs'>,
): Promise<Subscriber> {
	const api = await cx.api();
	const key = shownKey(options);
	if (key !== null) {
		const filter = { email__exact: key, is_active: true };
		for await (const one of walk(api.subscribers(list.id), filter, { signal: cx.signal }))
			if (isShown(key, one.email)) return one;
		throw notAmong(options, `the active subscribers of list ${list.id} "${list.name}"`);
	}
	const people = walk(api.subscribers(list.id), { is_active: true }, { signal: cx.signal, limit: 1 });
	for await (const one of people) return one;
	throw new UsageError(`list ${list.id} "${list.name}" has no active subscribers`);
}

/** A campaign over a list, begun now or earlier. */
export function listJob(
	cx: CommandContext,
	{
		place,
		id,
		name,
		list,
		subject,
		bulk,
		options,
	}: {
		place: CampaignPlace;
		id: string;
		name: string;
		list: Pick<List, 'id' | 'name'>;
		subject: string;
		bulk: boolean;
		options: RunOptions;
	},
): Omit<CampaignRun, 'isMadeUp'> {
	let rejects: readonly { error: string }[] = [];
	return {
		place,
		id,
		name,
		options,
		of: `list ${list.id} "${list.name}"`,
		where: 'the list',
		subject,
		stage: async () => {
			({ rejects } = await place.campaigns.addList(id, list.id, { signal: cx.signal }));
		},
		hasRejectLines: false,
		findings: async (most) => rejects.slice(0, most).map(({ error }) => error),
		// Addresses were checked when people were added: that a value is missing is all there is to find.
		lacksValues: async () => true,
		sample: (most) => firstAddresses(cx, list, most),
		writeResults: (path, how) => writeListResults(cx, { place, id }, path, how),
		warn: () => warnOfLinks(cx, { bulk, list: list.name }),
		noRecipients: `list ${list.id} "${list.name}" has no active subscribers; nothing was sent`,
	};
}

/** Where the service tells of its messages they are asked for; a campaign kept on this machine knows each recipient by itself. */
async function writeListResults(
	cx: CommandContext,
	{ place, id }: { place: CampaignPlace; id: string },
	path: string,
	how: ResultsHow,
): Promise<void> {
	const { ext } = await (await cx.api()).capabilities();
	if (ext.messages !== undefined) return writeResults(cx, path, { campaign: id }, how);
	return writeRowResults(cx, { place, id }, path, how);
}

async function firstAddresses(cx: CommandContext, list: { id: number }, most: number): Promise<string[]> {
	const api = await cx.api();
	const shown: string[] = [];
	const people = walk(api.subscribers(list.id), { is_active: true }, { signal: cx.signal, limit: most });
	for await (const { email } of people) shown.push(email);
	return shown;
}

/** The list is in it, so that a campaign's name cannot go on with another list. */
function listSpec(prepared: Prepared, list: List, options: SendOptions): CampaignSpec {
	return { ...specOf(prepared), list_id: list.id, strict_vars: options.strictVars ?? true };
}

function assertOptions(options: SendOptions): void {
	if (options.to.length > 0)
		throw new UsageError('--to and --list both name recipients; give one', {
			hint: 'a trial to yourself: --list LIST --test-to you@example.com',
		});
	if (options.cc.length + options.bcc.length > 0)
		throw new UsageError('--cc and --bcc do not go with --list: a copy of every message is never meant');
	if (options.idempotencyKey !== undefined)
		throw new UsageError('--idempotency-key does not go with --list; --campaign NAME plays that part');
	if (options.map.length > 0) throw new UsageError('--map goes with --csv only');
	if (options.encoding !== undefined) throw new UsageError('--encoding goes with --csv only');
}
