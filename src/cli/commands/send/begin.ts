/**
 * How a campaign begins: the place that keeps it, its name, and the campaign that is opened there. The engine and mailctl
 * servers keep campaigns themselves; for other deployments a database of this machine does.
 */

import { resolve } from 'node:path';
import {
	type Campaign,
	type CampaignOpening,
	type CampaignSession,
	type CampaignSpec,
	type CampaignStatus,
	type Campaigns,
	campaignState,
	isOfCalls,
	type RequestsSpec,
	repeatedKey,
	type Timing,
} from '../../../api/campaigns.js';
import { parseDateTime } from '../../../api/datetime.js';
import { ApiError } from '../../../api/errors.js';
import type { Uuid } from '../../../api/records.js';
import { JobError } from '../../../jobs/errors.js';
import type { FileLock } from '../../../jobs/lock.js';
import { isMissingFile, isPostgres, shownDatabase } from '../../../store/url.js';
import { type Hint, mailctl, type OwnCommand } from '../../frame/command-line.js';
import type { Connection, DeliverySummary } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { numberText, spanText } from '../../render/units.js';
import { explained } from '../../verbs/refusals.js';
import { isUuid } from '../../verbs/resolve.js';
import { lookUpCampaign } from '../campaigns/find.js';
import type { SendOptions } from './options.js';
import { outcomesOf, waitingOf } from './report.js';
import { sendHint } from './request.js';
import { assertResults, marksOf } from './results.js';
import { readTiming, sayPlan } from './timing.js';
import { assertCanDeliver, deliverNow } from './watch.js';

export interface CampaignPlace {
	/** A database of this machine: the service knows no campaign, and does not tell the outcome of a message it took. */
	isForeign: boolean;
	/** Opened by the campaign's name; rows are staged, then released in one stroke. */
	campaigns: Campaigns;
	/**
	 * Before anything is staged: this process alone does so until it is released or the command ends. Throws `JobError`:
	 * another process has it (`in_use`), or the campaign was begun on a deployment of another kind.
	 */
	hold(campaign: string): Promise<void>;
	/**
	 * Sends what was released, or waits until a server has. `null`: this run does not wait, or the server does not tell.
	 * Throws `CliError`, and what was sent before stays sent; called again it goes on with the rest.
	 */
	deliver(id: Uuid, how: CampaignDelivery): Promise<DeliverySummary | null>;
}

export interface CampaignDelivery {
	/** Messages staged: progress is measured against them. */
	total: number;
	/** Ends it after what is in flight. */
	signal: AbortSignal;
	/** Messages a second at most. */
	rate?: number;
	connections?: number;
	/** Without any outcome for so long, it gives up; milliseconds. */
	stallMs: number;
	/** False: no wait where a server sends. */
	waits: boolean;
	/** Only where an unanswered call cannot be told from a lost one: those go out again too. */
	retriesUnknown?: boolean;
}

type AnySpec = CampaignSpec | RequestsSpec;

/** The target's own campaigns, else a database of this machine. Ask once a command, which holds the campaigns it opened. */
export async function campaignPlace(cx: CommandContext): Promise<CampaignPlace> {
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	if (campaigns === undefined) return (await import('./foreign.js')).foreignPlace(cx);
	return {
		isForeign: false,
		...(await held(cx, campaigns)),
		deliver: (id, { total, stallMs, waits, rate, connections }) =>
			deliverNow(cx, { campaign: id }, total, { wait: waits, waitTimeout: stallMs, rate, connections }),
	};
}

/** Campaigns of a target are filed under it on this machine, however its URL or path is written. */
export function deploymentOf(target: Connection['target']): string {
	if (target.kind === 'remote') return new URL(target.baseUrl).href.replace(/(?<!\/)\/+$/, '');
	if (isPostgres(target.url)) return shownDatabase(target.url);
	return target.url.startsWith('file:') ? target.url : resolve(target.url);
}

/**
 * Two processes that stage one campaign at the same time would put each other's rows. This machine also keeps that a server
 * has a campaign: the day a page in its place makes it look like a service of others, everyone would be sent to again.
 */
async function held(
	cx: CommandContext,
	campaigns: Campaigns,
): Promise<Pick<CampaignPlace, 'campaigns' | 'hold'>> {
	const { target } = await cx.connection();
	const isRemote = target.kind === 'remote';
	const { jobFiles } = await import('../../../jobs/job-files.js');
	const files = jobFiles(cx.paths.jobs, deploymentOf(target));
	let lock: FileLock | null = null;
	const letGo = async () => {
		const had = lock;
		lock = null;
		await had?.release();
	};
	return {
		hold: async (campaign) => {
			lock = await unlessRefused(files.hold(campaign, `the campaign "${campaign}"`));
			cx.atEnd(letGo);
			if (!isRemote) return;
			await unlessRefused(assertNotHere(cx, files.database, campaign));
			await unlessRefused(files.leaveToDeployment(campaign));
		},
		campaigns: {
			...campaigns,
			page: async (request, call) => {
				const page = await campaigns.page(request, call);
				if (isRemote && request.key !== undefined && page.results.length === 0)
					await unlessRefused(assertNotHere(cx, files.database, request.key));
				return page;
			},
			release: async (id, expected, call) => {
				await campaigns.release(id, expected, call);
				await letGo();
			},
		},
	};
}

/** Throws `JobError` `other_road` where the database of this machine has the campaign. */
async function assertNotHere(cx: CommandContext, database: string, key: string): Promise<void> {
	if (isMissingFile(database)) return;
	const [{ openForeignCampaigns }, { keptHere }] = await Promise.all([
		import('../../connect/foreign-campaigns.js'),
		import('../../../jobs/job-files.js'),
	]);
	const { api, target } = await cx.connection();
	const options = { folder: cx.paths.jobs, deployment: deploymentOf(target), clock: cx.clock };
	const campaigns = openForeignCampaigns(api, options);
	try {
		if (await campaigns.has(key)) throw keptHere(key, database);
	} finally {
		await campaigns.close();
	}
}

/** A home that cannot be written costs the check and no campaign: a container may have none. */
async function unlessRefused<T>(work: Promise<T>): Promise<T | null> {
	return work.catch((error: unknown) => {
		if (error instanceof JobError && (error.code === 'in_use' || error.code === 'other_road')) throw error;
		return null;
	});
}

export interface Beginning {
	place: CampaignPlace;
	/** As it was given, or that of the campaign with the given UUID; null: the place makes one. */
	name: string | null;
	/** The campaign of that name was there before. */
	there: Campaign | null;
	/** The same mail is sent once more on purpose. */
	isAgain: boolean;
	timing: Timing;
}

/**
 * By this run under a name that was made up (`unnamed`), so that it cannot be resumed, or was given (`named`), or by an
 * earlier run, whose staging is kept.
 */
export type Begun = 'unnamed' | 'named' | 'earlier';

export interface Opened extends CampaignSession {
	begun: Begun;
}

/** In a script both are wanted, so that neither a habit nor a grown list sends by itself. */
export function assertConsent(
	cx: CommandContext,
	{ expectCount }: Pick<SendOptions, 'expectCount'>,
	recipients: string,
): void {
	const isYes = cx.globals.yes === true;
	if (cx.canAsk || (isYes && expectCount !== undefined)) return;
	const count = '--expect-count N, N being the recipients you expect';
	const missing = isYes ? count : expectCount === undefined ? `--yes ${count}` : '--yes';
	throw new UsageError(`sending to ${recipients} needs consent`, { hint: `add ${missing}` });
}

/** Throws `UsageError` before anything is staged. A dry run needs no consent. `recipients`: the words for them. */
export async function beginCampaign(
	cx: CommandContext,
	options: SendOptions,
	recipients: string,
): Promise<Beginning> {
	const timing = await readTiming(cx, options);
	const place = await campaignPlace(cx);
	if (!cx.dryRun) assertConsent(cx, options, recipients);
	await assertCanDeliver(cx, options);
	const { campaign, again } = options;
	if (campaign !== undefined) assertName(campaign);
	const found = campaign === undefined ? undefined : await lookUpCampaign(place.campaigns, campaign);
	// Send calls alone have its UUID: one with rows is begun beside them, and they join it.
	const there = found === undefined || isOfCalls(found) ? null : found;
	if (there === null && campaign !== undefined && isUuid(campaign) && options.batch !== undefined)
		throw new UsageError(`there is no campaign ${campaign}; a new one of --batch has a name`);
	// One that is staged is what an earlier run of the same command left.
	if (again && there !== null && there.state !== 'staged')
		throw new UsageError(`--again begins a new campaign, and "${there.key}" is there already`, {
			hint: 'give another --campaign',
		});
	const marks = async () => (there === null ? [] : marksOf(place, there.id));
	await assertResults(options.results, { inputs: inputsOf(options), marks });
	const named = campaign === undefined || isUuid(campaign) ? null : campaign;
	return { place, name: there?.key ?? named, there, isAgain: again, timing };
}

export function inputsOf({ csv, batch, textFile, htmlFile, contextFile }: SendOptions): string[] {
	const paths = [csv, batch, textFile?.path, htmlFile?.path, contextFile?.path];
	return paths.filter((path) => typeof path === 'string');
}

/** The most that a mailctl server accepts. */
const maxLength = 255;

/** Throws `UsageError` for a name that could not be typed again. */
function assertName(name: string): void {
	if (name.trim() === name && name !== '' && name.length <= maxLength && !/[\p{Cc}\p{Cf}]/u.test(name))
		return;
	const shown = JSON.stringify(name.slice(0, 60));
	throw new UsageError(`--campaign ${shown} is no name: 1 to ${maxLength} visible characters`);
}

/**
 * The campaign, or where it stood. Refusals are explained as those of a send call; exit 5 for a name that is taken. The
 * same mail to the same recipients as lately is a question to a person, and exit 2 in a script.
 */
export async function openCampaign(cx: CommandContext, beginning: Beginning, mail: AnySpec): Promise<Opened> {
	const { place, name, timing, isAgain } = beginning;
	const spec = { ...mail, ...timing };
	if (name !== null) await place.hold(name);
	const beside = isAgain ? await sameBeside(place, name, spec) : null;
	const opened = await openOrAsk(cx, beginning, spec, { opening: unlessThere(cx, beginning), agreed: null });
	if (beside !== null && opened.key !== beside) await warnOfUnfinished(cx, place, beside);
	return opened;
}

/** `agreed`: the key of the campaign that a person wants sent once more. */
async function openOrAsk(
	cx: CommandContext,
	beginning: Beginning,
	spec: AnySpec,
	{ opening, agreed }: { opening: CampaignOpening; agreed: string | null },
): Promise<Opened> {
	try {
		return await openNew(beginning, spec, opening);
	} catch (error) {
		const same = error instanceof ApiError ? repeatedKey(error) : null;
		if (same === null) throw error;
		// Another process may have begun to send it once more after the question.
		if (same === agreed) return await openNew(beginning, spec, {});
		const found = await lookUpRepetition(beginning.place, same);
		const how = { found, isAgain: opening.unless !== 'sent', cause: error };
		if (found === null || !cx.canAsk || cx.globals.yes === true) throw repeated(cx, same, how);
		if (await isResumed(cx, found, how.isAgain)) return await goOnWith(cx, beginning, found.campaign, spec);
		return openOrAsk(cx, beginning, spec, { opening: { unless: 'repeated' }, agreed: same });
	}
}

/** `--again` beside a campaign that is not finished is allowed, and told: who waits there gets both. */
async function warnOfUnfinished(cx: CommandContext, place: CampaignPlace, key: string): Promise<void> {
	const found = await lookUpRepetition(place, key);
	if (found !== null && isUnfinished(found.campaign)) await cx.warn(`${sentence(cx, found)}; they get both`);
}

/** A dry run: refuses as the opening would. */
export async function foreseeOpening(cx: CommandContext, beginning: Beginning, spec: AnySpec): Promise<void> {
	const { place, name, there, timing, isAgain } = beginning;
	try {
		const checking = place.campaigns.check(name, { ...spec, ...timing }, unlessThere(cx, beginning));
		await refusalExplained(beginning, spec, checking);
	} catch (error) {
		const same = error instanceof ApiError ? repeatedKey(error) : null;
		if (same === null) throw error;
		throw repeated(cx, same, { found: await lookUpRepetition(place, same), isAgain, cause: error });
	}
	if (there?.state === 'canceled') throw wasCanceled(there.key);
}

export function wasCanceled(name: string): UsageError {
	return new UsageError(`the campaign "${name}" was canceled; give another name`);
}

/** The times given now hold for a staged campaign; one that is released keeps its own. */
async function goOnWith(
	cx: CommandContext,
	beginning: Beginning,
	{ id, key, position }: Campaign,
	spec: AnySpec,
): Promise<Opened> {
	const { place, timing } = beginning;
	await place.hold(key);
	if (Object.keys(timing).length === 0) return { id, key, position, begun: 'earlier' };
	const opening = place.campaigns.open(key, spec);
	const session = await refusalExplained({ ...beginning, name: key }, spec, opening);
	if ((await place.campaigns.status(session.id)).state === 'released')
		await cx.warn(`"${key}" is released already: the time it is sent at stays as it is`);
	return { ...session, begun: 'earlier' };
}

/**
 * The same command typed again, `--again` and all, is no third campaign: not beside an unfinished second one, and on a
 * terminal, where Ctrl-C and the arrow up are at hand while a server goes on with it, not behind it either.
 */
function unlessThere({ canAsk }: CommandContext, { name, isAgain }: Beginning): CampaignOpening {
	if (!isAgain) return { unless: 'sent' };
	if (name !== null) return {};
	return { unless: canAsk ? 'repeated' : 'repeating' };
}

async function openNew(beginning: Beginning, spec: AnySpec, how: CampaignOpening): Promise<Opened> {
	const { place, name, there } = beginning;
	const session = await refusalExplained(beginning, spec, place.campaigns.open(name, spec, how));
	if (name !== null) return { ...session, begun: there === null ? 'named' : 'earlier' };
	try {
		await place.hold(session.key);
	} catch (error) {
		await place.campaigns.cancel(session.id, { forget: true });
		throw error;
	}
	return { ...session, begun: 'unnamed' };
}

/** The campaign of the same mail beside which `--again` begins another one; null: none. The opening tells other errors. */
async function sameBeside(
	{ campaigns }: CampaignPlace,
	name: string | null,
	spec: AnySpec,
): Promise<string | null> {
	try {
		await campaigns.check(name, spec, { unless: 'sent' });
		return null;
	} catch (error) {
		return error instanceof ApiError ? repeatedKey(error) : null;
	}
}

/** A refusal to open the campaign, explained; a name that stands for another one is told with the difference. */
async function refusalExplained<T>(
	{ place, name }: Pick<Beginning, 'place' | 'name'>,
	spec: AnySpec,
	opening: Promise<T>,
): Promise<T> {
	try {
		return await explained(opening, { input: spec, hint: sendHint });
	} catch (error) {
		if (!(error instanceof ApiError) || error.code !== 'conflict' || repeatedKey(error) !== null) throw error;
		const other = name === null ? undefined : await lookUpCampaign(place.campaigns, name);
		const why = other === undefined ? '' : `: ${differenceOf(other, spec)}`;
		// Only a campaign of which nothing was sent gives its name back.
		const cancel = [', or ', mailctl('campaigns', 'cancel', name ?? ''), ' first: nothing of it was sent'];
		throw new CliError('conflict', exits.refused, `the name "${name}" stands for another campaign${why}`, {
			hint: ['give another --campaign', ...(other?.state === 'staged' ? cancel : [])],
			cause: error,
		});
	}
}

/** As far as a campaign tells; its texts are not among that. */
function differenceOf({ source, list_id, requests }: Campaign, spec: AnySpec): string {
	const listId = 'requests' in spec ? null : (spec.list_id ?? null);
	if (requests === 'requests' in spec && listId !== list_id) return 'it was begun with another list';
	if (requests === 'requests' in spec && source?.['sha256'] !== spec.source?.['sha256'])
		return 'it was begun with other rows';
	return 'its content or options differ';
}

/** A campaign of the same mail. */
interface Found {
	campaign: Campaign;
	status: CampaignStatus;
}

async function lookUpRepetition({ campaigns }: CampaignPlace, key: string): Promise<Found | null> {
	const campaign = await lookUpCampaign(campaigns, key);
	if (campaign === undefined) return null;
	return { campaign, status: await campaigns.status(campaign.id) };
}

/** True: a person goes on with it; false: wants it sent once more. Throws `Declined`. */
async function isResumed(cx: CommandContext, found: Found, isAgain: boolean): Promise<boolean> {
	const isOpen = ['staged', 'sending'].includes(campaignState(found.campaign));
	try {
		await cx.agree(`${sentence(cx, found)}.`, isOpen ? 'Resume it?' : 'Send it once more?');
		return isOpen;
	} catch (error) {
		throw isOpen && error instanceof Declined ? new Declined({ hint: waysBeside(found, isAgain) }) : error;
	}
}

function repeated(
	cx: CommandContext,
	key: string,
	{ found, isAgain, cause }: { found: Found | null; isAgain: boolean; cause: unknown },
): UsageError {
	const what = found === null ? `"${key}" is the same to the same recipients` : sentence(cx, found);
	return new UsageError(`${what}; nothing was sent`, { hint: waysBeside(found, isAgain), cause });
}

function isUnfinished(campaign: Campaign): boolean {
	return ['staged', 'planned', 'sending'].includes(campaignState(campaign));
}

function waysBeside(found: Found | null, isAgain: boolean): Hint {
	const isOpen = found !== null && isUnfinished(found.campaign);
	const again = isAgain || isOpen ? '--again with a --campaign of its own' : '--again';
	return [...(isOpen ? waysOn(found) : []), again, ' sends all of it once more'];
}

/** The ways on with one that is not finished. */
function waysOn({ campaign, status: { messages } }: Found): (string | OwnCommand)[] {
	const { key } = campaign;
	const state = campaignState(campaign);
	const { deferred = 0, uncertain = 0 } = messages;
	if (state === 'sending' && waitingOf(messages) + deferred === 0 && uncertain > 0)
		return [mailctl('campaigns', 'resume', key, '--retry-unknown'), ' sends those once more, '];
	const dropping = [mailctl('campaigns', 'cancel', key), ' drops what is not sent, '];
	const resuming = [mailctl('campaigns', 'resume', key), ' goes on with it, '];
	return state === 'planned' ? dropping : [...resuming, ...dropping];
}

/** `"spring-news" was sent to this list 4 minutes ago, 1,529 not sent yet`. */
function sentence({ clock, times }: CommandContext, { campaign, status }: Found): string {
	const { key, state, list_id, date_released } = campaign;
	const recipients = list_id === null ? 'these recipients' : 'this list';
	if (state === 'staged') return `"${key}" is the same to ${recipients}, staged and not released`;
	if (campaignState(campaign) === 'planned')
		return `"${key}" is the same to ${recipients}, ${sayPlan(campaign.plan, times) ?? 'planned'}`;
	const released = date_released === null ? null : parseDateTime(date_released);
	const span = released === null ? 0 : clock.now() - released;
	const ago =
		released === null ? '' : span < 60_000_000 ? ' less than a minute ago' : ` ${spanText(span)} ago`;
	return `"${key}" was sent to ${recipients}${ago}${restOf(state, status)}`;
}

function restOf(state: Campaign['state'], { messages }: CampaignStatus): string {
	const { deferred = 0, uncertain = 0, canceled = 0 } = messages;
	if (state === 'canceled') return `, and canceled with ${numberText(canceled)} not sent`;
	const left = waitingOf(messages) + deferred;
	if (left > 0) return `, ${numberText(left)} not sent yet`;
	const unknown = 'accepted' in outcomesOf(messages) && uncertain > 0;
	return unknown ? `, ${numberText(uncertain)} of them may or may not have arrived` : '';
}
