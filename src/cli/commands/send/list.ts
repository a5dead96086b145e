/** `send --list`: the subscribers of lists as the recipients of a campaign, staged beside the data. */

import type { CampaignSpec, ListCounts } from '../../../api/campaigns.js';
import type { Reject } from '../../../api/capabilities.js';
import type { List, Subscriber } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import type { ExitCode } from '../../frame/exit.js';
import { walk } from '../../verbs/listing.js';
import { uploadAttachments } from './attach.js';
import { assertAllowed, assertListAllowed } from './audience.js';
import { beginCampaign, foreseeCampaign, openCampaign } from './begin.js';
import { assertCanDeliver } from './deliver.js';
import { type Found, warnOfFindings, withNamed } from './findings.js';
import { composeFor, dryRun, firstSelected, foreseeFindings, type ListSending } from './forecast.js';
import { linted, warnOfContent, warnOfLinks } from './lint.js';
import { assertListOptions, type SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import { asSubscriber, assertAcceptable, sendTrial, wantsPreview } from './preview.js';
import { countsOf, type PreviewCounts, showPreview } from './preview-output.js';
import type { CampaignRun, RunOptions } from './release.js';
import { type Prepared, prepare, specOf } from './request.js';
import { type ResultsHow, readFindings, writeResults, writeRowResults } from './results.js';
import { runCampaign } from './run.js';
import {
	addOfLists,
	foreseeLists,
	noneOf,
	type RunSelection,
	reasonsOf,
	type Selection,
	sayListNames,
	sayLists,
	sayReasons,
	select,
	whereOf,
} from './selection.js';

export async function sendToList(cx: CommandContext, options: SendOptions): Promise<ExitCode | undefined> {
	assertListOptions(options);
	const selection = await select(cx, options);
	const [list] = selection.lists;
	const strict = options.strictVars ?? true;
	const prepared = await linted(cx, await prepare(cx, options), { strict });
	const spec = listSpec(prepared, selection, options);
	const sending: ListSending = { prepared, selection, list, spec, options };
	if (options.testTo !== undefined) {
		assertAllowed(cx, [options.testTo]);
		return sendTest(cx, sending, options.testTo);
	}
	if (cx.dryRun) {
		if (await foreseeCampaign(cx, { options, of: 'a list', spec })) return undefined;
		return dryRun(cx, sending);
	}
	if (wantsPreview(options)) return preview(cx, sending).then(() => undefined);
	for (const one of selection.lists) await assertListAllowed(cx, one);
	const beginning = await beginCampaign(cx, options, 'a list');
	const { place } = beginning;
	await uploadAttachments(cx, prepared.files);
	const { id, key: name, begun } = await openCampaign(cx, beginning, spec);
	const subject = prepared.template?.name ?? prepared.request.subject ?? '';
	const { bulk } = options;
	const campaign = listJob(cx, { place, id, name, selection, subject, bulk, options });
	const warn = async () => {
		await warnOfContent(cx, prepared);
		await campaign.warn();
	};
	return runCampaign(cx, { ...campaign, warn, begun });
}

/** How many would get it, and the first of them, without a write; null: only staging tells. */
export async function lookAtList(
	cx: CommandContext,
	prepared: Prepared,
	options: SendOptions,
): Promise<{
	count: number | null;
	first: { list: List; person: Subscriber } | null;
	found: Found | null;
}> {
	const selection = await select(cx, options);
	const [list] = selection.lists;
	const sending = { prepared, selection, list, spec: listSpec(prepared, selection, options), options };
	const found = await foreseeFindings(cx, sending);
	if (found === null && Object.keys(selection.audience).length === 0) {
		const count = list.active_subscribers_count;
		return { count, first: count === 0 ? null : await firstSelected(cx, sending), found };
	}
	if ((await (await cx.api()).capabilities()).ext.audiences === undefined)
		return { count: null, first: null, found };
	const { lists, first } = found?.forecast ?? (await foreseeLists(cx, selection, sending.spec));
	const person =
		first && (await (await cx.api()).subscribers(first.list.id).get(first.id, { signal: cx.signal }));
	const count = recipientsOf(lists);
	if (first !== null && person !== null) return { count, first: { list: first.list, person }, found };
	// Everyone lacks a value: the first shows which.
	return { count, first: found?.findings.rejected ? await firstSelected(cx, sending) : null, found };
}

/** `--preview` and `--eml`: what the first would get. */
async function preview(cx: CommandContext, sending: ListSending): Promise<void> {
	const { prepared, options } = sending;
	const first = await firstSelected(cx, sending);
	await assertAcceptable(cx, { ...prepared.request, to: [first.person.email] });
	await warnOfContent(cx, prepared);
	const found = await foreseeFindings(cx, sending);
	if (found !== null) await warnOfFindings(cx, found, options);
	const named = found === null ? prepared : withNamed(prepared, found);
	const composed = await composeFor(cx, named, first);
	const counts = () => previewCounts(cx, sending, found);
	await showPreview(cx, { composed, prepared, counts }, options);
}

/** Where no value can be missing, the recipients are counted alone. */
async function previewCounts(
	cx: CommandContext,
	{ selection, list, spec }: ListSending,
	found: Found | null,
): Promise<PreviewCounts> {
	if (found !== null) return countsOf(found);
	if (Object.keys(selection.audience).length === 0)
		return { recipients: list.active_subscribers_count, rejected: 0 };
	const { lists } = await foreseeLists(cx, selection, { ...spec, strict_vars: false });
	return { recipients: recipientsOf(lists), rejected: 0 };
}

/** Before suppression. */
function recipientsOf(lists: readonly ListCounts[]): number {
	return lists.reduce((sum, { staged, suppressed }) => sum + staged + suppressed, 0);
}

/** To an address of one's own: with the first subscriber's variables, in no campaign. */
async function sendTest(cx: CommandContext, sending: ListSending, to: string): Promise<ExitCode> {
	const { prepared, options } = sending;
	await assertCanDeliver(cx, options);
	const { list, person } = await firstSelected(cx, sending);
	const addressee = asSubscriber(person, list.email_reason);
	return sendTrial(cx, { prepared, addressee, to, options });
}

/** A campaign over lists, begun now or earlier. */
export function listJob(
	cx: CommandContext,
	{
		place,
		id,
		name,
		selection,
		subject,
		bulk,
		options,
	}: {
		place: CampaignPlace;
		id: string;
		name: string;
		selection: RunSelection;
		subject: string;
		bulk: boolean;
		options: RunOptions;
	},
): Omit<CampaignRun, 'begun'> {
	const rejects: { error: string }[] = [];
	const [list] = selection.lists;
	return {
		place,
		id,
		name,
		options,
		of: sayListNames(selection),
		where: whereOf(selection),
		subject,
		stage: async () => {
			for (const one of selection.lists)
				for (const { error } of await stageList(cx, place.campaigns, { id, list: one }))
					rejects.push({ error });
		},
		hasRejectLines: false,
		findings: async (into) => {
			// Kept on this machine, a campaign has the outcome of each recipient.
			if (place.isForeign) return readFindings(cx, { campaigns: place.campaigns, id }, into);
			const { lists = [] } = await place.campaigns.status(id);
			const errors = rejects.map(({ error }) => error);
			addOfLists(into, { reasons: reasonsOf(lists), errors });
		},
		sample: (most) => firstAddresses(cx, { selection, id }, most),
		writeResults: (path, how) => writeListResults(cx, { place, id }, path, how),
		warn: () => warnOfLinks(cx, { bulk, list: list.name }),
		sayCounts: ({ lists = [] }) => {
			const left = sayReasons(reasonsOf(lists), selection.names);
			return [...(left === '' ? [] : [`left out: ${left}`]), ...sayLists(lists, selection)];
		},
		noRecipients: `${noneOf(selection)}; nothing was sent`,
	};
}

/** A call stages for about so long: a person sees how far it is, and proxies and `--timeout` wait for no million. */
const longestPartMs = 1_000;

/** Calls until the list was read to its end; the last answer has the first rejects of all parts. */
async function stageList(
	cx: CommandContext,
	campaigns: CampaignPlace['campaigns'],
	{ id, list }: { id: string; list: RunSelection['lists'][number] },
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
			const { staged, suppressed, rejected, left_out = 0 } = counts;
			read += staged + suppressed + rejected + left_out;
			progress.update(read, '');
		}
	} finally {
		progress.stop();
	}
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

async function firstAddresses(
	cx: CommandContext,
	{ selection, id }: { selection: RunSelection; id: string },
	most: number,
): Promise<string[]> {
	const api = await cx.api();
	const options = { signal: cx.signal, limit: most };
	const { messages } = (await api.capabilities()).ext;
	const shown: string[] = [];
	// Not every active subscriber gets one.
	if (messages !== undefined)
		for await (const { to } of walk(messages, { campaign_unique_id: id }, options)) shown.push(to);
	else {
		const people = api.subscribers(selection.lists[0].id);
		for await (const { email } of walk(people, { is_active: true }, options)) shown.push(email);
	}
	return shown;
}

/** The list is in it, so that a job's name cannot go on with another list. */
function listSpec(
	prepared: Prepared,
	{ lists: [first], audience }: Selection,
	options: SendOptions,
): CampaignSpec {
	return {
		...specOf(prepared),
		list_id: first.id,
		...audience,
		strict_vars: options.strictVars ?? true,
	};
}
