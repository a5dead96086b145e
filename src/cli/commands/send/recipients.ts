import { parseAddress } from '../../../api/address.js';
import {
	type Campaign,
	type CampaignSpec,
	type LeftOutNames,
	type ListCounts,
	type Audience as Narrowing,
	sayLeftOut,
} from '../../../api/campaigns.js';
import { need, type Reject } from '../../../api/capabilities.js';
import { iterateSlices } from '../../../api/pages.js';
import type { List, Subscriber } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import { type CliError, UsageError } from '../../frame/errors.js';
import { counted, numberText } from '../../render/units.js';
import { readConditions } from '../../verbs/conditions.js';
import { walk } from '../../verbs/listing.js';
import { resolveList } from '../../verbs/resolve.js';
import { findCampaign } from '../campaigns/find.js';
import { subscribersByKey } from '../subscribers/walk.js';
import type { CampaignPlace } from './begin.js';
import { Findings } from './findings.js';
import { linted, warnOfLinks } from './lint.js';
import type { SendOptions } from './options.js';
import { asSubscriber, isShown, notAmong, shownKey } from './preview.js';
import type { CampaignRun, RunOptions } from './release.js';
import { contentOf, isOpaque, openVariables, type Prepared, prepare, specOf } from './request.js';
import { eachResult, writeCampaign } from './results.js';
import { type Audience, assertAllowed, type First, isLimited, requestFor, type Survey } from './stage.js';

interface Selection {
	lists: readonly [List, ...List[]];
	/** Empty for one list without conditions, which any service takes. */
	audience: Narrowing;
	names: LeftOutNames;
}

type SelectionOptions = Pick<
	SendOptions,
	'list' | 'excludeList' | 'where' | 'whereOpened' | 'whereNotOpened'
>;

/** Throws `UsageError` for what cannot be read, and `MissingExtension` where the service knows one list alone. */
export async function select(cx: CommandContext, options: SelectionOptions): Promise<Selection> {
	const { list, excludeList, where, whereOpened, whereNotOpened } = options;
	const api = await cx.api();
	const wanted = wantedFlag(options);
	if (wanted !== null) await need(api, 'audiences', wanted);
	const conditions = (await readConditions(cx, where)).map(({ text }) => text);
	const resolve = (text: string) => resolveList(api, text, { signal: cx.signal });
	const lists = await eachOnce(list, resolve);
	const excluded = await eachOnce(excludeList, resolve);
	const [first, ...others] = lists;
	if (first === undefined) throw new UsageError('no list: give --list');
	const both = lists.find(({ id }) => excluded.some((other) => other.id === id));
	if (both !== undefined)
		throw new UsageError(`list ${both.id} "${both.name}" is sent to and excluded; give it once`);
	const find = async (name: string) => findCampaign(cx, await need(api, 'campaigns', '--where-opened'), name);
	const opened = await eachOnce(whereOpened, find);
	const notOpened = await eachOnce(whereNotOpened, find);
	const known = new Map([...opened, ...notOpened].map(({ id, key }) => [id, key]));
	const listNames = new Map([...lists, ...excluded].map((one) => [String(one.id), one.name]));
	return {
		lists: [first, ...others],
		audience: {
			...(others.length > 0 && { lists: lists.map(({ id }) => id) }),
			...(excluded.length > 0 && { exclude_lists: excluded.map(({ id }) => id) }),
			...(conditions.length > 0 && { where: conditions }),
			...(opened.length > 0 && { where_opened: opened.map(({ id }) => id) }),
			...(notOpened.length > 0 && { where_not_opened: notOpened.map(({ id }) => id) }),
		},
		names: {
			list: (id) => JSON.stringify(listNames.get(id) ?? id),
			campaign: (id) => known.get(id) ?? id,
		},
	};
}

/** The first option that one list at any service does without. */
function wantedFlag(options: SelectionOptions): string | null {
	if (options.excludeList.length > 0) return '--exclude-list';
	if (options.where.length > 0) return '--where';
	if (options.whereOpened.length > 0) return '--where-opened';
	if (options.whereNotOpened.length > 0) return '--where-not-opened';
	return options.list.length > 1 ? '--list twice' : null;
}

async function eachOnce<T extends { id: unknown }>(
	texts: readonly string[],
	find: (text: string) => Promise<T>,
): Promise<T[]> {
	const found = new Map<unknown, T>();
	for (const text of texts) {
		const one = await find(text);
		if (!found.has(one.id)) found.set(one.id, one);
	}
	return [...found.values()];
}

export async function listAudience(cx: CommandContext, options: SendOptions): Promise<Audience> {
	const selection = await select(cx, options);
	const prepared = await linted(cx, await prepare(cx, options), { strict: options.strictVars ?? true });
	return new ListAudience(cx, options, selection, prepared);
}

class ListAudience implements Audience {
	readonly name = 'a list';
	readonly where: string;
	readonly noRecipients: string;
	readonly prepared: Prepared;
	readonly files: Audience['files'];
	readonly #cx: CommandContext;
	readonly #options: SendOptions;
	readonly #selection: Selection;

	constructor(cx: CommandContext, options: SendOptions, selection: Selection, prepared: Prepared) {
		this.#cx = cx;
		this.#options = options;
		this.#selection = selection;
		this.prepared = prepared;
		this.files = prepared.files ?? [];
		this.where = whereOf(selection);
		this.noRecipients = noneOf(selection);
	}

	/** The list is in it, so that a campaign's name cannot go on with another list. */
	get spec(): CampaignSpec {
		const { lists, audience } = this.#selection;
		const strict_vars = this.#options.strictVars ?? true;
		return { ...specOf(this.prepared), list_id: lists[0].id, ...audience, strict_vars };
	}

	async open(): Promise<void> {
		for (const { id } of this.#selection.lists) await assertListAllowed(this.#cx, id);
	}

	async close(): Promise<void> {}

	/** The service foresees lists where it is ours, and they are read only where a person can be left out. */
	async survey(depth: Parameters<Audience['survey']>[0]): Promise<Survey> {
		const cx = this.#cx;
		const api = await cx.api();
		const [list] = this.#selection.lists;
		const findings = new Findings(cx);
		const isPlain = Object.keys(this.#selection.audience).length === 0;
		const isChecked = (this.#options.strictVars ?? true) && this.#variables().length > 0;
		const isOurs = (await api.capabilities()).ext.audiences !== undefined;
		const isRead = depth === 'all' || !isPlain || (depth === 'look' && isChecked);
		if (!isOurs || !isRead) {
			const first = list.active_subscribers_count === 0 ? null : await this.#first();
			const recipients = list.active_subscribers_count;
			const notes =
				isChecked && depth === 'all'
					? ['a dry run reads no subscriber here: their variables and suppressions are not checked']
					: [];
			return { recipients, findings, first, shown: first, isPart: false, notes, hint: null, plan: {} };
		}
		const { lists, first: anyone, errors } = await foreseeLists(cx, this.#selection.lists, this.spec);
		findings.addOfLists(reasonsOf(lists), errors);
		const sum = (key: 'staged' | 'suppressed') => lists.reduce((all, one) => all + one[key], 0);
		const first =
			anyone === null || this.#options.previewAs !== undefined
				? null
				: this.#firstOf(anyone.list, await api.subscribers(anyone.list.id).get(anyone.id));
		const isShownApart = this.#options.previewAs !== undefined || (first === null && findings.rejected > 0);
		const shown = isShownApart ? await this.#first() : first;
		const left = sayReasons(reasonsOf(lists), this.#selection.names);
		const hint = left === '' ? null : `left out: ${left}`;
		return {
			recipients: sum('staged') + sum('suppressed'),
			findings,
			first: this.#options.previewAs === undefined ? first : shown,
			shown,
			isPart: false,
			notes: [...sayLists(lists, this.#selection), ...(hint === null ? [] : [hint])],
			hint,
			plan: { suppressed: sum('suppressed'), lists },
		};
	}

	run(place: CampaignPlace, { id, key }: { id: string; key: string }): Omit<CampaignRun, 'begun'> {
		const subject = this.prepared.template?.name ?? this.prepared.request.subject ?? '';
		const { bulk } = this.#options;
		const run = { place, id, name: key, selection: this.#selection, subject, bulk, options: this.#options };
		return listCampaign(this.#cx, run);
	}

	sentence(subject: string, { recipients, findings: { rejected } }: Survey): string {
		const isPlain = Object.keys(this.#selection.audience).length === 0;
		const people = counted(recipients, isPlain ? 'active subscriber' : 'recipient');
		const isLoose = this.#options.strictVars === false && this.#variables().length > 0;
		const caveat =
			rejected > 0
				? `, ${numberText(rejected)} left out`
				: isLoose
					? '; with --no-strict-vars their variables are not checked one by one'
					: '';
		return `send ${subject} to the ${people} of ${sayListNames(this.#selection)}${caveat}`;
	}

	plan({ recipients, findings: { rejected }, plan }: Survey) {
		const list_id = this.#selection.lists[0].id;
		return { list_id, recipients, rejected, ...plan, send: this.prepared.request };
	}

	warn(): Promise<void> {
		return warnOfLinks(this.#cx, { bulk: this.#options.bulk, list: this.#selection.lists[0].name });
	}

	noFirst(): CliError {
		if (this.#options.previewAs === undefined) return new UsageError(this.noRecipients);
		return notAmong(this.#options, `the active subscribers of ${sayListNames(this.#selection)}`);
	}

	/** The variables whose values differ between people; none where only the service knows. */
	#variables(): string[] {
		if (isOpaque(this.prepared)) return [];
		return openVariables(contentOf(this.prepared), this.prepared.request.context ?? {});
	}

	/** The first active subscriber, or the one to be shown, in the first of the lists that has it. */
	async #first(): Promise<First | null> {
		const { signal } = this.#cx;
		const api = await this.#cx.api();
		const key = shownKey(this.#options);
		for (const list of this.#selection.lists) {
			const filter = { is_active: true, ...(key !== null && { email__exact: key }) };
			const people = walk(api.subscribers(list.id), filter, { signal, ...(key === null && { limit: 1 }) });
			for await (const person of people) if (isShown(key, person.email)) return this.#firstOf(list, person);
		}
		return null;
	}

	#firstOf({ email_reason }: List, person: Subscriber): First {
		const { prepared } = this;
		const email = parseAddress(person.email)?.address ?? person.email;
		const { name, meta } = person;
		return {
			prepared,
			addressee: asSubscriber(person, email_reason),
			checked: { ...prepared.request, to: [person.email] },
			call: () => requestFor(prepared, { email, name, email_reason, meta }),
		};
	}
}

/** Throws `UsageError` for an active subscriber that the profile may not write to. */
export async function assertListAllowed(cx: CommandContext, id: number): Promise<void> {
	if (!isLimited(cx)) return;
	const people = await subscribersByKey(await cx.api(), id);
	for await (const { email } of walk(people, { is_active: true }, { signal: cx.signal }))
		assertAllowed(cx, [email]);
}

/** The result of staging the lists, without a write. `first`: the first person that would get a message. */
async function foreseeLists(cx: CommandContext, lists: Selection['lists'], spec: CampaignSpec) {
	const audiences = await need(await cx.api(), 'audiences', '--dry-run');
	const total = lists.reduce((sum, { overall_subscribers_count: size }) => sum + size, 0);
	const progress = cx.progress('reading', total);
	const found = new Map<number, ListCounts>();
	const errors: string[] = [];
	let first: { list: List; id: number } | null = null;
	let read = 0;
	try {
		for (const list of lists) {
			const parts = iterateSlices(0, (after) =>
				audiences.foresee(spec, { list_id: list.id, after }, { signal: cx.signal }),
			);
			for await (const { counts, next, findings, first: id } of parts) {
				const before = found.get(list.id);
				found.set(list.id, before === undefined ? counts : sum(before, counts));
				read += counts.staged + counts.suppressed + counts.rejected + (counts.left_out ?? 0);
				// What is read at once needs no line.
				if (next !== null) progress.update(read);
				errors.push(...findings);
				if (id !== null) first ??= { list, id };
			}
		}
	} finally {
		progress.stop();
	}
	return { lists: [...found.values()], first, errors };
}

/** Parts of one list as one. */
function sum(a: ListCounts, b: ListCounts): ListCounts {
	return {
		list_id: a.list_id,
		staged: a.staged + b.staged,
		suppressed: a.suppressed + b.suppressed,
		rejected: a.rejected + b.rejected,
		left_out: (a.left_out ?? 0) + (b.left_out ?? 0),
		reasons: reasonsOf([a, b]),
	};
}

type Reasons = ListCounts['reasons'];

function reasonsOf(lists: readonly Pick<ListCounts, 'reasons'>[]): Reasons {
	const all = new Map<string, Reasons[number]>();
	for (const one of lists.flatMap(({ reasons }) => reasons)) {
		const key = `${one.code} ${one.detail}`;
		all.set(key, { ...one, count: one.count + (all.get(key)?.count ?? 0) });
	}
	return [...all.values()];
}

/** `3 inactive, 2 in excluded list "Staff"`; empty where no one is left out. */
function sayReasons(reasons: Reasons, names: LeftOutNames): string {
	return reasons.map((one) => `${numberText(one.count)} ${sayLeftOut(one, names)}`).join(', ');
}

type RunList = Pick<List, 'id' | 'name'> & Partial<Pick<List, 'overall_subscribers_count'>>;

type RunSelection = Omit<Selection, 'lists'> & { lists: readonly [RunList, ...RunList[]] };

/** A line a list where there are several: `list 1 "Readers": 12 recipients; left out: 3 inactive`. */
function sayLists(counts: readonly ListCounts[], { lists, names }: Omit<RunSelection, 'audience'>): string[] {
	if (counts.length < 2) return [];
	return counts.map(({ list_id, staged, suppressed, reasons }) => {
		const name = lists.find(({ id }) => id === list_id)?.name ?? '';
		const left = sayReasons(reasons, names);
		const all = counted(staged + suppressed, 'recipient');
		return `list ${list_id} ${JSON.stringify(name)}: ${all}${left === '' ? '' : `; left out: ${left}`}`;
	});
}

/** `list 1 "Readers"`, `lists 1 "Readers", 2 "Guests"`. */
function sayListNames({ lists }: Pick<RunSelection, 'lists'>): string {
	const names = lists.map(({ id, name }) => `${id} "${name}"`);
	return `${lists.length === 1 ? 'list' : 'lists'} ${names.join(', ')}`;
}

function whereOf({ lists, audience }: Pick<RunSelection, 'lists' | 'audience'>): string {
	if (lists.length > 1) return 'what is left of the lists';
	return Object.keys(audience).length === 0 ? 'the list' : 'what is left of the list';
}

function noneOf(selection: Pick<RunSelection, 'lists' | 'audience'>): string {
	const names = sayListNames(selection);
	if (Object.keys(selection.audience).length === 0) return `${names} has no active subscribers`;
	return `${names}: no subscriber is left to send to`;
}

export function listCampaign(
	cx: CommandContext,
	campaign: {
		place: CampaignPlace;
		id: string;
		name: string;
		selection: RunSelection;
		subject: string;
		bulk: boolean;
		options: RunOptions;
	},
): Omit<CampaignRun, 'begun'> {
	const { place, id, name, selection, subject, bulk, options } = campaign;
	const rejects: string[] = [];
	return {
		...{ place, id, name, options, subject },
		of: sayListNames(selection),
		where: whereOf(selection),
		stage: async () => {
			for (const one of selection.lists)
				for (const { error } of await stageList(cx, place, { id, list: one })) rejects.push(error);
		},
		findings: async (into) => {
			// Kept on this machine, a campaign has the outcome of each recipient.
			if (place.isForeign) return addFindings(cx, place, id, into);
			const { lists = [] } = await place.campaigns.status(id);
			into.addOfLists(reasonsOf(lists), rejects);
		},
		sample: (most) => firstAddresses(cx, selection, id, most),
		writeResults: (path) => writeCampaign(cx, { place, id, isRows: false }, path),
		warn: () => warnOfLinks(cx, { bulk, list: selection.lists[0].name }),
		sayCounts: ({ lists = [] }) => {
			const left = sayReasons(reasonsOf(lists), selection.names);
			return [...(left === '' ? [] : [`left out: ${left}`]), ...sayLists(lists, selection)];
		},
		noRecipients: `${noneOf(selection)}; nothing was sent`,
	};
}

export async function addFindings(
	cx: CommandContext,
	{ campaigns }: CampaignPlace,
	id: string,
	into: Findings,
): Promise<void> {
	for await (const { line, to, code, text } of eachResult(cx, campaigns, id, { only: 'findings' }))
		into.add({ line, to, code, text: text ?? '' });
}

/** A call stages for about so long: a person sees how far it is, and proxies and `--timeout` wait for no million. */
const longestPartMs = 1_000;

/** Calls until the list was read to its end; the last answer has the first rejects of all parts. */
async function stageList(
	cx: CommandContext,
	{ campaigns }: CampaignPlace,
	{ id, list }: { id: string; list: RunList },
): Promise<readonly Reject[]> {
	const forMs = Math.min(longestPartMs, Math.floor(cx.settings.timeoutMs.value / 4));
	const progress = cx.progress('staging', list.overall_subscribers_count ?? null);
	try {
		for (let read = 0; ; ) {
			const { counts, rejects, is_partial } = await campaigns.addList(id, list.id, {
				signal: cx.signal,
				forMs,
			});
			if (!is_partial) return rejects;
			read += counts.staged + counts.suppressed + counts.rejected + (counts.left_out ?? 0);
			progress.update(read, '');
		}
	} finally {
		progress.stop();
	}
}

async function firstAddresses(
	cx: CommandContext,
	{ lists: [list] }: RunSelection,
	campaign_unique_id: string,
	limit: number,
): Promise<string[]> {
	const api = await cx.api();
	const options = { signal: cx.signal, limit };
	const { messages } = (await api.capabilities()).ext;
	const shown: string[] = [];
	// Not every active subscriber gets one.
	if (messages !== undefined)
		for await (const { to } of walk(messages, { campaign_unique_id }, options)) shown.push(to);
	else
		for await (const { email } of walk(api.subscribers(list.id), { is_active: true }, options))
			shown.push(email);
	return shown;
}

/** The lists of a campaign that was begun earlier; one may be gone once it is released. */
export async function selectionOf(
	cx: CommandContext,
	campaign: Campaign,
	first: number,
): Promise<RunSelection> {
	const api = await cx.api();
	const { audience = {} } = campaign;
	const nameOf = async (id: number) =>
		api.lists.get(id, { signal: cx.signal }).catch((error: unknown) => {
			if (campaign.state === 'staged') throw error;
			return { id, name: '' };
		});
	const ids = audience.lists?.length ? audience.lists : [first];
	const [one, ...others] = await Promise.all(ids.map(nameOf));
	if (one === undefined) throw new Error(`campaign ${campaign.id} has no list`);
	const excluded = await Promise.all((audience.exclude_lists ?? []).map(nameOf));
	const names = new Map([one, ...others, ...excluded].map(({ id, name }) => [String(id), name]));
	const isNarrowed = Object.entries(audience).some(
		([key, values]) => values.length > (key === 'lists' ? 1 : 0),
	);
	return {
		lists: [one, ...others],
		audience: isNarrowed ? audience : {},
		names: { list: (id) => JSON.stringify(names.get(id) ?? id), campaign: (id) => id },
	};
}
