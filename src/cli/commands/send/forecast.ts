/** What a send to lists would do: foreseen where the service is ours, read client-side where it tells its lists alone. */

import { parseAddress } from '../../../api/address.js';
import type { CampaignSpec, ListCounts } from '../../../api/campaigns.js';
import type { List, Subscriber } from '../../../api/records.js';
import { texts } from '../../../api/schema/texts.js';
import type { Person } from '../../../engine/rules/meta.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { counted, numberText } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { subscribersByKey } from '../subscribers/walk.js';
import { assertFindings, assertListAllowed, lacking, requestFor, Survey, showPlan } from './audience.js';
import { type Found, findingsFor, lacks } from './findings.js';
import { warnOfContent, warnOfLinks } from './lint.js';
import type { SendOptions } from './options.js';
import { asSubscriber, assertAcceptable, compose } from './preview.js';
import { isShown, notAmong, shownKey } from './preview-as.js';
import { assertExpected } from './report.js';
import { contentOf, isOpaque, openVariables, type Prepared } from './request.js';
import {
	addOfLists,
	type Forecast,
	foreseeLists,
	noneOf,
	reasonsOf,
	type Selection,
	sayListNames,
	sayLists,
	sayReasons,
	whereOf,
} from './selection.js';

/** Lists, and what their subscribers are to be sent. */
export interface ListSending {
	prepared: Prepared;
	selection: Selection;
	/** The first of the lists. */
	list: List;
	spec: CampaignSpec;
	options: SendOptions;
}

/** Ends as the job would: `UsageError` for findings, or 9 with `--skip-invalid`. */
export async function dryRun(cx: CommandContext, sending: ListSending): Promise<ExitCode> {
	if ((await (await cx.api()).capabilities()).ext.audiences !== undefined) return forecast(cx, sending);
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
	return conclude(cx, sending, { recipients, rejected, first: first && { list, person: first }, plan: {} });
}

/** On an engine or server of ours: what staging would come to, suppressions too. */
async function forecast(cx: CommandContext, sending: ListSending): Promise<ExitCode> {
	const { prepared, selection, spec, options } = sending;
	for (const list of selection.lists) await assertListAllowed(cx, list);
	const foreseen = await foreseeLists(cx, selection, spec);
	const { staged, suppressed, rejected } = totalOf(foreseen.lists);
	const left = sayReasons(reasonsOf(foreseen.lists), selection.names);
	const leftOut = left === '' ? null : `left out: ${left}`;
	if (staged + suppressed + rejected === 0 && options.expectCount !== 0)
		throw new UsageError(noneOf(selection), leftOut === null ? {} : { hint: leftOut });
	const anyone = foreseen.first && {
		list: foreseen.first.list,
		person: await (await cx.api()).subscribers(foreseen.first.list.id).get(foreseen.first.id),
	};
	const first = options.previewAs === undefined ? anyone : await shownOf(cx, sending);
	if (first !== null) await assertAcceptable(cx, { ...prepared.request, to: [first.person.email] });
	const findings = findingsFor(cx);
	addOfLists(findings, { reasons: reasonsOf(foreseen.lists), errors: foreseen.findings });
	await assertFindings(cx, { findings, recipients: staged + suppressed }, options);
	for (const line of sayLists(foreseen.lists, selection)) await cx.note(line);
	if (leftOut !== null) await cx.note(leftOut);
	const plan = { suppressed, lists: foreseen.lists };
	return conclude(cx, sending, { recipients: staged + suppressed, rejected, first, plan });
}

async function conclude(
	cx: CommandContext,
	sending: ListSending,
	found: {
		recipients: number;
		rejected: number;
		first: { list: List; person: Subscriber } | null;
		/** Facts beside the request. */
		plan: object;
	},
): Promise<ExitCode> {
	const { prepared, selection, list, options } = sending;
	const { recipients, rejected, first, plan } = found;
	assertExpected({ found: recipients, where: whereOf(selection), options });
	await warnOfContent(cx, prepared);
	await warnOfLinks(cx, { bulk: options.bulk, list: list.name });
	const isPlain = Object.keys(selection.audience).length === 0;
	const people = counted(recipients, isPlain ? 'active subscriber' : 'recipient');
	await showPlan(cx, {
		prepared,
		options,
		what: (subject) =>
			`send ${subject} to the ${people} of ${sayListNames(selection)}${caveat(sending, rejected)}`,
		plan: { list_id: list.id, recipients, rejected, ...plan, send: prepared.request },
		first: first && {
			request: () => requestFor(prepared, personOf(first.person, first.list)),
			message: () => composeFor(cx, prepared, first),
		},
	});
	return rejected > 0 ? exits.partly : exits.done;
}

/**
 * What staging would come to, where a subscriber could be refused and the service is ours; null: none can be, or only
 * staging tells. The lists are read to their end.
 */
export async function foreseeFindings(
	cx: CommandContext,
	{ prepared, selection, spec, options }: Omit<ListSending, 'list'>,
): Promise<(Found & { forecast: Forecast }) | null> {
	if (options.strictVars === false || variablesOfPeople(prepared).length === 0) return null;
	if ((await (await cx.api()).capabilities()).ext.audiences === undefined) return null;
	const forecast = await foreseeLists(cx, selection, spec);
	const findings = findingsFor(cx);
	addOfLists(findings, { reasons: reasonsOf(forecast.lists), errors: forecast.findings });
	const { staged, suppressed, rejected } = totalOf(forecast.lists);
	return { findings, of: staged + suppressed + rejected, forecast };
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
	const found = new Survey<Subscriber>(findingsFor(cx));
	const people = walk(await subscribersByKey(api, list.id), { is_active: true }, { signal: cx.signal });
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

/** The message of one. */
export function composeFor(
	cx: CommandContext,
	prepared: Prepared,
	{ list, person }: { list: List; person: Subscriber },
) {
	return compose(cx, prepared, asSubscriber(person, list.email_reason));
}

/** The first that would get a message. Throws `UsageError` where there is none. */
export async function firstSelected(
	cx: CommandContext,
	sending: ListSending,
): Promise<{ list: List; person: Subscriber }> {
	const { selection, list, spec, options } = sending;
	if (options.previewAs !== undefined) return shownOf(cx, sending);
	if (Object.keys(selection.audience).length === 0)
		return { list, person: await firstOf(cx, list, sending.options) };
	const { first } = await foreseeLists(cx, selection, { ...spec, strict_vars: false });
	if (first === null) throw new UsageError(noneOf(selection));
	const person = await (await cx.api()).subscribers(first.list.id).get(first.id, { signal: cx.signal });
	return { list: first.list, person };
}

function personOf({ email, name, meta }: Subscriber, { email_reason }: List): Person {
	return { email: parseAddress(email)?.address ?? email, name, email_reason, meta };
}

/** The first active subscriber, or the one to be shown. Throws `UsageError` where there is none. */
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

/** The one to be shown, in the first of the lists that has it. */
async function shownOf(
	cx: CommandContext,
	{ selection, options }: ListSending,
): Promise<{ list: List; person: Subscriber }> {
	for (const list of selection.lists) {
		const person = await firstOf(cx, list, options).catch(orNullWhereMissing);
		if (person !== null) return { list, person };
	}
	throw notAmong(options, `the active subscribers of ${sayListNames(selection)}`);
}

function orNullWhereMissing(error: unknown): null {
	if (error instanceof CliError && error.exit === exits.notFound) return null;
	throw error;
}

function totalOf(lists: readonly ListCounts[]): { staged: number; suppressed: number; rejected: number } {
	const sum = { staged: 0, suppressed: 0, rejected: 0 };
	for (const { staged, suppressed, rejected } of lists) {
		sum.staged += staged;
		sum.suppressed += suppressed;
		sum.rejected += rejected;
	}
	return sum;
}
