/** The subscribers of lists as the recipients of a campaign. */

import type {
	Campaign,
	CampaignSession,
	CampaignSpec,
	LeftOutNames,
	ListCounts,
	Audience as Narrowing,
} from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { iterateSlices } from '../../../api/pages.js';
import type { List, Subscriber } from '../../../api/records.js';
import { flagOf } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { assertAllowed, isLimited } from '../../verbs/allowed.js';
import { findEach } from '../../verbs/changing.js';
import { readConditions } from '../../verbs/conditions.js';
import { walk } from '../../verbs/listing.js';
import { resolveList } from '../../verbs/resolve.js';
import { findCampaign } from '../campaigns/record.js';
import { subscribersByKey } from '../subscribers/lookup.js';
import { asSubscriber, type Draft, type First } from './draft.js';
import type { SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import { isShown, shownKey } from './preview.js';
import { Findings, reasonsOf, sayCounts } from './report.js';
import { prepare } from './request.js';
import type { Audience, Depth, Source, Survey } from './stage.js';

type RunList = Pick<List, 'id' | 'name'> & Partial<Pick<List, 'overall_subscribers_count'>>;

export interface Selection<L extends RunList = RunList> {
	lists: readonly [L, ...L[]];
	audience: Narrowing;
	names: LeftOutNames;
}

export async function select(cx: CommandContext, options: SendOptions): Promise<Selection<List>> {
	const { list, excludeList, where, whereOpened, whereNotOpened } = options;
	const api = await cx.api();
	const narrowing = ['excludeList', 'where', 'whereOpened', 'whereNotOpened'] as const;
	const wanted = narrowing.find((key) => options[key].length > 0);
	if (wanted !== undefined || list.length > 1)
		await need(api, 'audiences', wanted === undefined ? '--list twice' : flagOf(wanted));
	const conditions = (await readConditions(cx, where)).map(({ text }) => text);
	const resolve = (text: string) => resolveList(api, text, { signal: cx.signal });
	const [first, ...others] = await findEach(list, resolve);
	if (first === undefined) throw new UsageError('no list: give --list');
	const lists = [first, ...others] as const;
	const excluded = await findEach(excludeList, resolve);
	const find = async (name: string) => findCampaign(cx, await need(api, 'campaigns', '--where-opened'), name);
	const opened = await findEach(whereOpened, find);
	const notOpened = await findEach(whereNotOpened, find);
	const keys = new Map([...opened, ...notOpened].map(({ id, key }) => [id, key]));
	return {
		lists,
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

/** Allows deleted lists if the campaign is released. */
export async function selectionOf(cx: CommandContext, campaign: Campaign, first: number): Promise<Selection> {
	const api = await cx.api();
	const { audience = {} } = campaign;
	const nameOf = async (id: number) =>
		api.lists.get(id, { signal: cx.signal }).catch((error: unknown) => {
			if (campaign.state === 'staged') throw error;
			return { id, name: '' };
		});
	const [, ...more] = audience.lists ?? [];
	const one = await nameOf(audience.lists?.[0] ?? first);
	const others = await Promise.all(more.map(nameOf));
	const excluded = await Promise.all((audience.exclude_lists ?? []).map(nameOf));
	return {
		lists: [one, ...others],
		audience,
		names: { list: namesOf([one, ...others, ...excluded]), campaign: (id) => id },
	};
}

export function sayListNames({ lists }: Selection): string {
	const names = lists.map(({ id, name }) => `${id} "${name}"`);
	return `${lists.length === 1 ? 'list' : 'lists'} ${names.join(', ')}`;
}

export async function assertListsAllowed(cx: CommandContext, { lists }: Selection): Promise<void> {
	if (!isLimited(cx)) return;
	for (const { id } of lists) {
		const people = await subscribersByKey(await cx.api(), id);
		for await (const { email } of walk(people, { is_active: true }, { signal: cx.signal }))
			assertAllowed(cx, [email]);
	}
}

/** The longest staging call. Short calls show progress, and end before the timeout of a proxy or `--timeout`. */
const longestPartMs = 1_000;

/** Stages each list in several calls. The last answer for a list has the first rejects of the whole list. */
export async function stageLists(
	cx: CommandContext,
	{ campaigns }: CampaignPlace,
	{ id }: CampaignSession,
	{ lists }: Selection,
): Promise<readonly string[]> {
	const forMs = Math.min(longestPartMs, Math.floor(cx.settings.timeoutMs.value / 4));
	const errors: string[] = [];
	for (const list of lists) {
		const progress = cx.progress('staging', list.overall_subscribers_count ?? null);
		try {
			for (let read = 0, isPartial = true; isPartial; ) {
				const ack = await campaigns.addList(id, list.id, { signal: cx.signal, forMs });
				isPartial = ack.is_partial === true;
				read += readIn(ack.counts);
				if (isPartial) progress.update(read, '');
				else errors.push(...ack.rejects.map(({ error }) => error));
			}
		} finally {
			progress.stop();
		}
	}
	return errors;
}

function readIn({ staged, suppressed, rejected, left_out = 0 }: Omit<ListCounts, 'list_id' | 'reasons'>) {
	return staged + suppressed + rejected + left_out;
}

export async function listSource(cx: CommandContext, options: SendOptions): Promise<Source> {
	const selection = await select(cx, options);
	const draft = await prepare(cx, options);
	const strict_vars = options.strictVars ?? true;
	await draft.warnOfVariables(strict_vars);
	const of = sayListNames(selection);
	// With the list in the spec, a command for another list cannot continue a campaign of the same name.
	const spec = { ...draft.spec, list_id: selection.lists[0].id, ...selection.audience, strict_vars };
	const audience: Audience = {
		...{ of, selection, draft, spec, files: draft.files, isBulk: options.bulk },
		subject: draft.content.subject,
		stage: (place, session) => stageLists(cx, place, session, selection),
		survey: (depth) => survey(cx, options, { selection, draft, spec }, depth),
		close: async () => undefined,
	};
	const open = async () => {
		await assertListsAllowed(cx, selection);
		return audience;
	};
	return { of, open };
}

/**
 * Asks a mailctl service whom staging would leave out. A dry run always asks; a preview asks only if filters or missing
 * values may leave people out.
 */
async function survey(
	cx: CommandContext,
	options: SendOptions,
	{ selection, draft, spec }: { selection: Selection<List>; draft: Draft; spec: CampaignSpec },
	depth: Depth,
): Promise<Survey> {
	const { lists, audience } = selection;
	const api = await cx.api();
	const findings = new Findings(cx);
	const list_id = lists[0].id;
	const send = draft.request;
	const key = shownKey(options);
	const firstOf = ({ email_reason }: List, person: Subscriber): First => {
		return { draft, addressee: asSubscriber(person, email_reason) };
	};
	const findFirst = async (): Promise<First | null> => {
		const filter = { is_active: true, ...(key !== null && { email__exact: key }) };
		for (const list of lists) {
			const people = walk(api.subscribers(list.id), filter, {
				signal: cx.signal,
				...(key === null && { limit: 1 }),
			});
			for await (const person of people) if (isShown(key, person.email)) return firstOf(list, person);
		}
		return null;
	};
	// If variables depend on fields, some subscribers may lack a value.
	const isChecked = spec.strict_vars === true && !draft.isOpaque && draft.open().length > 0;
	const isOurs = (await api.capabilities()).ext.audiences !== undefined;
	const isNarrowed = Object.keys(audience).length > 0;
	if (!isOurs || !(depth === 'all' || isNarrowed || (depth === 'look' && isChecked))) {
		const recipients = lists[0].active_subscribers_count;
		const first = recipients === 0 ? null : await findFirst();
		const isUnread = isChecked && depth === 'all';
		const notes = isUnread ? ['a dry run does not check the variables of subscribers on this service'] : [];
		const plan = { list_id, recipients, rejected: 0, send };
		return { recipients, findings, first, isPart: false, plan, notes };
	}
	const { counts, first: anyone, errors } = await foreseeLists(cx, lists, spec);
	findings.addOfLists(counts, errors);
	const { rejected } = findings;
	const suppressed = counts.reduce((sum, one) => sum + one.suppressed, 0);
	const recipients = counts.reduce((sum, { staged }) => sum + staged, suppressed);
	const isSought = key !== null || (anyone === null && rejected > 0);
	const first = isSought
		? await findFirst()
		: anyone && firstOf(anyone.list, await api.subscribers(anyone.list.id).get(anyone.id));
	const plan = { list_id, recipients, rejected, suppressed, lists: counts, send };
	return { recipients, findings, first, isPart: false, plan, notes: sayCounts(counts, selection) };
}

async function foreseeLists(cx: CommandContext, lists: Selection<List>['lists'], spec: CampaignSpec) {
	const audiences = await need(await cx.api(), 'audiences', '--dry-run');
	const total = lists.reduce((sum, { overall_subscribers_count: size }) => sum + size, 0);
	const progress = cx.progress('reading', total);
	const counts: ListCounts[] = [];
	const errors: string[] = [];
	let first: { list: List; id: number } | null = null;
	let read = 0;
	try {
		for (const list of lists) {
			let whole: ListCounts | null = null;
			const slices = iterateSlices(0, (after) =>
				audiences.foresee(spec, { list_id: list.id, after }, { signal: cx.signal }),
			);
			for await (const { counts: part, next, findings, first: id } of slices) {
				whole = whole === null ? part : sum(whole, part);
				read += readIn(part);
				if (next !== null) progress.update(read);
				errors.push(...findings);
				if (id !== null) first ??= { list, id };
			}
			if (whole !== null) counts.push(whole);
		}
	} finally {
		progress.stop();
	}
	return { counts, first, errors };
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
