import { parseAddress } from '../../../api/address.js';
import type {
	Campaign,
	CampaignSession,
	CampaignSpec,
	LeftOutNames,
	ListCounts,
	Audience as Narrowing,
} from '../../../api/campaigns.js';
import { need, type Reject } from '../../../api/capabilities.js';
import { iterateSlices } from '../../../api/pages.js';
import type { List, Subscriber } from '../../../api/records.js';
import { flagOf } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { type CliError, UsageError } from '../../frame/errors.js';
import { counted, numberText } from '../../render/units.js';
import { readConditions } from '../../verbs/conditions.js';
import { walk } from '../../verbs/listing.js';
import { resolveList } from '../../verbs/resolve.js';
import { findCampaign } from '../campaigns/record.js';
import { subscribersByKey } from '../subscribers/walk.js';
import { assertAllowed, isLimited } from './accept.js';
import type { CampaignPlace } from './begin.js';
import { warnOfVariables } from './lint.js';
import type { SendOptions } from './options.js';
import { asSubscriber, isShown, notAmong, shownKey } from './preview.js';
import type { CampaignRun, RunOptions } from './release.js';
import { Findings, reasonsOf, sayCounts } from './report.js';
import { contentOf, isOpaque, openVariables, type Prepared, prepare, specOf } from './request.js';
import { type Audience, type First, requestFor, type Survey } from './stage.js';

type RunList = Pick<List, 'id' | 'name'> & Partial<Pick<List, 'overall_subscribers_count'>>;

export interface Selection<L extends RunList = RunList> {
	lists: readonly [L, ...L[]];
	audience: Narrowing;
	names: LeftOutNames;
}

type SelectionOptions = Pick<
	SendOptions,
	'list' | 'excludeList' | 'where' | 'whereOpened' | 'whereNotOpened'
>;

export async function select(cx: CommandContext, options: SelectionOptions): Promise<Selection<List>> {
	const { list, excludeList, where, whereOpened, whereNotOpened } = options;
	const api = await cx.api();
	const narrowing = ['excludeList', 'where', 'whereOpened', 'whereNotOpened'] as const;
	const wanted = narrowing.find((key) => options[key].length > 0);
	if (wanted !== undefined || list.length > 1)
		await need(api, 'audiences', wanted === undefined ? '--list twice' : flagOf(wanted));
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
	const keys = new Map([...opened, ...notOpened].map(({ id, key }) => [id, key]));
	return {
		lists: [first, ...others],
		audience: {
			...(others.length > 0 && { lists: lists.map(({ id }) => id) }),
			...(excluded.length > 0 && { exclude_lists: excluded.map(({ id }) => id) }),
			...(conditions.length > 0 && { where: conditions }),
			...(opened.length > 0 && { where_opened: opened.map(({ id }) => id) }),
			...(notOpened.length > 0 && { where_not_opened: notOpened.map(({ id }) => id) }),
		},
		names: { list: namesOf([...lists, ...excluded]), campaign: (id) => keys.get(id) ?? id },
	};
}

function namesOf(lists: readonly RunList[]): LeftOutNames['list'] {
	const names = new Map(lists.map((one) => [String(one.id), one.name]));
	return (id) => JSON.stringify(names.get(id) ?? id);
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

export async function selectionOf(cx: CommandContext, campaign: Campaign, first: number): Promise<Selection> {
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
	const isNarrowed = Object.entries(audience).some(
		([key, values]) => values.length > (key === 'lists' ? 1 : 0),
	);
	return {
		lists: [one, ...others],
		audience: isNarrowed ? audience : {},
		names: { list: namesOf([one, ...others, ...excluded]), campaign: (id) => id },
	};
}

export async function listAudience(cx: CommandContext, options: SendOptions): Promise<Audience> {
	const selection = await select(cx, options);
	const prepared = await prepare(cx, options);
	await warnOfVariables(cx, prepared, { strict: options.strictVars ?? true });
	return new ListAudience(cx, options, selection, prepared);
}

class ListAudience implements Audience {
	readonly name = 'a list';
	readonly where: string;
	readonly noRecipients: string;
	readonly prepared: Prepared;
	readonly files: Audience['files'];
	/** The list is in it, so that a campaign's name cannot go on with another list. */
	readonly spec: CampaignSpec;
	readonly #cx: CommandContext;
	readonly #options: SendOptions;
	readonly #selection: Selection<List>;
	readonly #isStrict: boolean;
	readonly #isNarrowed: boolean;
	readonly #variables: readonly string[];
	#foreseen: { suppressed: number; lists: readonly ListCounts[] } | null = null;

	constructor(cx: CommandContext, options: SendOptions, selection: Selection<List>, prepared: Prepared) {
		this.#cx = cx;
		this.#options = options;
		this.#selection = selection;
		this.#isStrict = options.strictVars ?? true;
		this.#isNarrowed = Object.keys(selection.audience).length > 0;
		this.#variables = isOpaque(prepared)
			? []
			: openVariables(contentOf(prepared), prepared.request.context ?? {});
		this.prepared = prepared;
		this.files = prepared.files ?? [];
		this.where = whereOf(selection);
		this.noRecipients = noneOf(selection);
		const list_id = selection.lists[0].id;
		this.spec = { ...specOf(prepared), list_id, ...selection.audience, strict_vars: this.#isStrict };
	}

	async open(): Promise<void> {
		for (const { id } of this.#selection.lists) await assertListAllowed(this.#cx, id);
	}

	async close(): Promise<void> {}

	/** Our service foresees the lists; they are read only where a person can be left out. */
	async survey(depth: Parameters<Audience['survey']>[0]): Promise<Survey> {
		const cx = this.#cx;
		const api = await cx.api();
		const findings = new Findings(cx);
		const isChecked = this.#isStrict && this.#variables.length > 0;
		const isOurs = (await api.capabilities()).ext.audiences !== undefined;
		const isRead = depth === 'all' || this.#isNarrowed || (depth === 'look' && isChecked);
		if (!isOurs || !isRead) {
			const recipients = this.#selection.lists[0].active_subscribers_count;
			const first = recipients === 0 ? null : await this.#first();
			const isUnread = isChecked && depth === 'all';
			const notes = isUnread
				? ['a dry run reads no subscriber here: their variables and suppressions are not checked']
				: [];
			return { recipients, findings, first, isPart: false, notes };
		}
		const { lists, first: anyone, errors } = await foreseeLists(cx, this.#selection.lists, this.spec);
		findings.addOfLists(reasonsOf(lists), errors);
		const recipients = lists.reduce((all, { staged, suppressed }) => all + staged + suppressed, 0);
		const suppressed = lists.reduce((all, one) => all + one.suppressed, 0);
		this.#foreseen = { suppressed, lists };
		let first: First | null = null;
		if (this.#options.previewAs !== undefined || (anyone === null && findings.rejected > 0))
			first = await this.#first();
		else if (anyone !== null)
			first = this.#firstOf(anyone.list, await api.subscribers(anyone.list.id).get(anyone.id));
		return { recipients, findings, first, isPart: false, notes: sayCounts(lists, this.#selection) };
	}

	run(place: CampaignPlace, session: CampaignSession): Omit<CampaignRun, 'begun'> {
		const selection = this.#selection;
		const subject = this.prepared.template?.name ?? this.prepared.request.subject ?? '';
		const run = { place, id: session.id, name: session.key, selection, subject, options: this.#options };
		return listCampaign(this.#cx, { ...run, content: this.prepared, isBulk: () => this.isBulk() });
	}

	sentence(subject: string, { recipients, findings: { rejected } }: Survey): string {
		const people = counted(recipients, this.#isNarrowed ? 'recipient' : 'active subscriber');
		const isLoose = !this.#isStrict && this.#variables.length > 0;
		const loose = isLoose ? '; with --no-strict-vars their variables are not checked one by one' : '';
		const caveat = rejected > 0 ? `, ${numberText(rejected)} left out` : loose;
		return `send ${subject} to the ${people} of ${sayListNames(this.#selection)}${caveat}`;
	}

	plan({ recipients, findings: { rejected } }: Survey) {
		const list_id = this.#selection.lists[0].id;
		return { list_id, recipients, rejected, ...this.#foreseen, send: this.prepared.request };
	}

	isBulk(): boolean {
		return this.#options.bulk;
	}

	noFirst(): CliError {
		if (this.#options.previewAs === undefined) return new UsageError(this.noRecipients);
		return notAmong(this.#options, `the active subscribers of ${sayListNames(this.#selection)}`);
	}

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
			request: () => requestFor(prepared, { email, name, email_reason, meta }),
		};
	}
}

export async function assertListAllowed(cx: CommandContext, id: number): Promise<void> {
	if (!isLimited(cx)) return;
	const people = await subscribersByKey(await cx.api(), id);
	for await (const { email } of walk(people, { is_active: true }, { signal: cx.signal }))
		assertAllowed(cx, [email]);
}

async function foreseeLists(cx: CommandContext, lists: Selection<List>['lists'], spec: CampaignSpec) {
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
				read += readIn(counts);
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

function readIn({ staged, suppressed, rejected, left_out = 0 }: Omit<ListCounts, 'list_id' | 'reasons'>) {
	return staged + suppressed + rejected + left_out;
}

function sayListNames({ lists }: Selection): string {
	const names = lists.map(({ id, name }) => `${id} "${name}"`);
	return `${lists.length === 1 ? 'list' : 'lists'} ${names.join(', ')}`;
}

function whereOf({ lists, audience }: Selection): string {
	if (lists.length > 1) return 'what is left of the lists';
	return Object.keys(audience).length === 0 ? 'the list' : 'what is left of the list';
}

function noneOf(selection: Selection): string {
	const names = sayListNames(selection);
	if (Object.keys(selection.audience).length === 0) return `${names} has no active subscribers`;
	return `${names}: no subscriber is left to send to`;
}

interface ListCampaign extends Pick<CampaignRun, 'place' | 'id' | 'name' | 'subject' | 'content' | 'isBulk'> {
	selection: Selection;
	options: RunOptions;
}

export function listCampaign(cx: CommandContext, campaign: ListCampaign): Omit<CampaignRun, 'begun'> {
	const { place, id, selection } = campaign;
	return {
		...campaign,
		of: sayListNames(selection),
		where: whereOf(selection),
		noRecipients: `${noneOf(selection)}; nothing was sent`,
		stage: async () => {
			const rejects: Reject[] = [];
			for (const one of selection.lists) rejects.push(...(await stageList(cx, place, id, one)));
			return rejects.map(({ error }) => error);
		},
	};
}

/** A call stages for about so long: a person sees how far it is, and proxies and `--timeout` wait for no million. */
const longestPartMs = 1_000;

/** Calls until the list was read to its end; the last answer has the first rejects of all parts. */
async function stageList(
	cx: CommandContext,
	{ campaigns }: CampaignPlace,
	id: string,
	list: RunList,
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
			read += readIn(counts);
			progress.update(read, '');
		}
	} finally {
		progress.stop();
	}
}
