/** `--list`, `--exclude-list`, `--where` and their like: to whom of the lists a campaign goes, and how many that is. */

import {
	type Audience,
	type Campaign,
	type CampaignSpec,
	type LeftOutNames,
	type ListCounts,
	sayLeftOut,
} from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { iterateSlices } from '../../../api/pages.js';
import type { List } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { counted, numberText } from '../../render/units.js';
import { readConditions } from '../../verbs/conditions.js';
import { resolveList } from '../../verbs/resolve.js';
import { findCampaign } from '../campaigns/find.js';
import { type Findings, missingVariable } from './findings.js';
import type { SendOptions } from './options.js';

/** The lists of a campaign in their order, and the rest of its audience. */
export interface Selection {
	lists: readonly [List, ...List[]];
	/** Empty for one list without conditions, which any service takes. */
	audience: Audience;
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

/** What a list would come to, without a write; of one on a service of others nothing is known but its size. */
export interface Forecast {
	lists: readonly ListCounts[];
	/** The first person that would get a message. */
	first: { list: List; id: number } | null;
	findings: readonly string[];
}

export async function foreseeLists(
	cx: CommandContext,
	{ lists }: Pick<Selection, 'lists'>,
	spec: CampaignSpec,
): Promise<Forecast> {
	const total = lists.reduce((sum, { overall_subscribers_count: size }) => sum + size, 0);
	const progress = cx.progress('reading', total);
	let read = 0;
	const seen = ({ staged, suppressed, rejected, left_out = 0 }: ListCounts, isLast: boolean) => {
		read += staged + suppressed + rejected + left_out;
		// What is read at once needs no line.
		if (!isLast) progress.update(read);
	};
	try {
		return await foreseeEach(cx, lists, { spec, seen });
	} finally {
		progress.stop();
	}
}

async function foreseeEach(
	cx: CommandContext,
	lists: Selection['lists'],
	{ spec, seen }: { spec: CampaignSpec; seen: (counts: ListCounts, isLast: boolean) => void },
): Promise<Forecast> {
	const audiences = await need(await cx.api(), 'audiences', '--dry-run');
	const all: ListCounts[] = [];
	const findings: string[] = [];
	let first: Forecast['first'] = null;
	for (const list of lists) {
		const parts = iterateSlices(0, (after) =>
			audiences.foresee(spec, { list_id: list.id, after }, { signal: cx.signal }),
		);
		for await (const part of parts) {
			all.push(part.counts);
			seen(part.counts, part.next === null);
			findings.push(...part.findings);
			if (part.first !== null) first ??= { list, id: part.first };
		}
	}
	return { lists: joined(all), first, findings };
}

/** Parts of one list as one. */
function joined(parts: readonly ListCounts[]): ListCounts[] {
	const lists = new Map<number, ListCounts>();
	for (const part of parts) {
		const before = lists.get(part.list_id);
		lists.set(part.list_id, before === undefined ? part : sum(before, part));
	}
	return [...lists.values()];
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

type Reasons = ListCounts['reasons'];

/** Subscribers without a value: all of them are counted, and the first named by their errors. */
export function addOfLists(
	into: Findings,
	{ reasons, errors }: { reasons: Reasons; errors: readonly string[] },
): void {
	for (const reason of reasons) into.count(reason);
	for (const error of errors) {
		const [to = ''] = error.split(': ', 1);
		into.name({ line: null, to, code: missingVariable, text: error });
	}
}

export function reasonsOf(lists: readonly Pick<ListCounts, 'reasons'>[]): Reasons {
	const all = new Map<string, Reasons[number]>();
	for (const one of lists.flatMap(({ reasons }) => reasons)) {
		const key = `${one.code} ${one.detail}`;
		all.set(key, { ...one, count: one.count + (all.get(key)?.count ?? 0) });
	}
	return [...all.values()];
}

/** `3 inactive, 2 in excluded list "Staff"`; empty where no one is left out. */
export function sayReasons(reasons: Reasons, names: LeftOutNames): string {
	return reasons.map((one) => `${numberText(one.count)} ${sayLeftOut(one, names)}`).join(', ');
}

/** A line a list where there are several: `list 1 "Readers": 12 recipients; left out: 3 inactive`. */
export function sayLists(
	lists: readonly ListCounts[],
	{ lists: named, names }: Pick<Selection, 'names'> & { lists: readonly Pick<List, 'id' | 'name'>[] },
): string[] {
	if (lists.length < 2) return [];
	return lists.map(({ list_id, staged, suppressed, reasons }) => {
		const name = named.find(({ id }) => id === list_id)?.name ?? '';
		const left = sayReasons(reasons, names);
		const all = counted(staged + suppressed, 'recipient');
		return `list ${list_id} ${JSON.stringify(name)}: ${all}${left === '' ? '' : `; left out: ${left}`}`;
	});
}

/** What a campaign over lists has to know of them. */
export type RunSelection = Omit<Selection, 'lists'> & { lists: readonly [RunList, ...RunList[]] };

/** A list that is gone has an id. */
type RunList = Pick<List, 'id' | 'name'> & Partial<Pick<List, 'overall_subscribers_count'>>;

/** `list 1 "Readers"`, `lists 1 "Readers", 2 "Guests"`. */
export function sayListNames({ lists }: RunSelection): string {
	const names = lists.map(({ id, name }) => `${id} "${name}"`);
	return `${lists.length === 1 ? 'list' : 'lists'} ${names.join(', ')}`;
}

/** Where recipients are counted. */
export function whereOf({ lists, audience }: RunSelection): string {
	if (lists.length > 1) return 'what is left of the lists';
	return Object.keys(audience).length === 0 ? 'the list' : 'what is left of the list';
}

/** That there are none. */
export function noneOf(selection: RunSelection): string {
	const names = sayListNames(selection);
	if (Object.keys(selection.audience).length === 0) return `${names} has no active subscribers`;
	return `${names}: no subscriber is left to send to`;
}

/** Of a campaign that was begun earlier; a list may be gone once it is released. */
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
