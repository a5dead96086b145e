/** Campaigns of a target: the place that keeps them and sends them, and how one is opened. */

import { resolve } from 'node:path';
import {
	type Campaign,
	type CampaignOpening,
	type CampaignSession,
	type CampaignSpec,
	type Campaigns,
	campaignState,
	isOfCalls,
	type RequestsSpec,
	repeatedKey,
	type Timing,
} from '../../../api/campaigns.js';
import { ApiError } from '../../../api/errors.js';
import { JobError } from '../../../jobs/errors.js';
import type { FileLock } from '../../../jobs/lock.js';
import { isMissingFile, isPostgres, shownDatabase } from '../../../store/url.js';
import type { Connection } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isUuid } from '../../verbs/resolve.js';
import { lookUpCampaign } from '../campaigns/find.js';
import { assertCanDeliver, deliverNow } from './deliver.js';
import { askAboutRepetition, sameBeside, sentLately, warnOfUnfinished } from './duplicate-check.js';
import type { SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import { wantsPreview } from './preview.js';
import type { Begun } from './release.js';
import { assertResults, inputsOf, marksOf } from './results.js';
import { assertConsent, wasCanceled } from './run.js';
import { refusalExplained } from './taken-name.js';
import { readTiming } from './timing.js';

/** The target's own campaigns, else a database of this machine. Ask once a command, which holds the campaigns it opened. */
export async function campaignPlace(cx: CommandContext): Promise<CampaignPlace> {
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	if (campaigns === undefined) return (await import('./foreign.js')).foreignPlace(cx);
	return {
		isForeign: false,
		...(await held(cx, campaigns)),
		deliver: (id, { campaign, total, stallMs, waits, rate, connections }) =>
			deliverNow(cx, { campaign: id }, total, {
				campaign,
				wait: waits,
				waitTimeout: stallMs,
				rate,
				connections,
			}),
	};
}

/** What the campaigns of a target are filed under on this machine, however its URL or path is written. */
export function deploymentOf(target: Connection['target']): string {
	if (target.kind === 'remote') return new URL(target.baseUrl).href.replace(/(?<!\/)\/+$/, '');
	if (isPostgres(target.url)) return shownDatabase(target.url);
	return target.url.startsWith('file:') ? target.url : resolve(target.url);
}

/**
 * Two that stage one campaign at the same time would put each other's rows. And that a server has it is kept here: the day a
 * page in its place makes it look like a service of others, everyone would be sent to again.
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
	const folder = cx.paths.jobs;
	const campaigns = openForeignCampaigns(api, { folder, deployment: deploymentOf(target), clock: cx.clock });
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

/** Where the campaign is kept, and what it is called. */
export interface Beginning {
	place: CampaignPlace;
	/** As it was given, or that of the campaign with the given UUID; null: the place makes one. */
	name: string | null;
	/** The campaign of that name was there before. */
	isThere: boolean;
	/** The same mail is sent once more on purpose. */
	isAgain: boolean;
	timing: Timing;
}

/** A campaign that is open: new, or gone on with. */
export interface Opened extends CampaignSession {
	begun: Begun;
}

/** Throws `UsageError` before anything is staged. A dry run needs no consent. `of`: what is sent to, in a sentence. */
export async function beginCampaign(
	cx: CommandContext,
	options: SendOptions,
	of: string,
): Promise<Beginning> {
	const timing = await readTiming(cx, options);
	const place = await campaignPlace(cx);
	if (!cx.dryRun) assertConsent(cx, options, of);
	await assertCanDeliver(cx, options);
	const { campaign, again } = options;
	if (campaign !== undefined) assertName(campaign);
	const found = campaign === undefined ? undefined : await lookUpCampaign(place.campaigns, campaign);
	// Send calls alone have its UUID: one with rows is begun beside them, and they join it.
	const there = found !== undefined && isOfCalls(found) ? undefined : found;
	if (there === undefined && campaign !== undefined && isUuid(campaign) && options.batch !== undefined)
		throw new UsageError(`--campaign ${campaign} is none that is there; a new one of --batch has a name`);
	// One that is staged is what an earlier run of the same command left.
	if (again && there !== undefined && there.state !== 'staged')
		throw new UsageError(`--again begins a new campaign, and "${there.key}" is there already`, {
			hint: 'give another --campaign',
		});
	const marks = async () => (there === undefined ? [] : marksOf(place, there.id));
	await assertResults(options.results, { inputs: inputsOf(options), marks });
	const named = campaign === undefined || isUuid(campaign) ? null : campaign;
	return { place, name: there?.key ?? named, isThere: there !== undefined, isAgain: again, timing };
}

/**
 * The campaign, or where it stood. Refusals are explained as those of a send call; exit 5 for a name that is taken. The
 * same mail to the same recipients as lately is a question to a person, and exit 2 in a script.
 */
export async function openCampaign(
	cx: CommandContext,
	beginning: Beginning,
	mail: CampaignSpec | RequestsSpec,
): Promise<Opened> {
	const { place, name, timing } = beginning;
	const spec = { ...mail, ...timing };
	if (name !== null) await place.hold(name);
	let opening = unlessThere(cx, beginning);
	const beside = beginning.isAgain ? await sameBeside(place, name, spec) : null;
	const openAnew = async (how: CampaignOpening) => {
		const opened = await openNew(beginning, spec, how);
		if (beside !== null) await warnOfUnfinished(cx, place, beside);
		return opened;
	};
	let agreed: string | null = null;
	for (;;) {
		try {
			return await openAnew(opening);
		} catch (error) {
			const same = error instanceof ApiError ? repeatedKey(error) : null;
			if (same === null) throw error;
			if (same === agreed) return await openAnew({});
			const isAgain = opening.unless !== 'sent';
			const going = await askAboutRepetition(cx, place, { key: same, isAgain, cause: error });
			if (going !== null) return await goOnWith(cx, beginning, { going, spec });
			// Meanwhile another process may have begun to send it once more.
			agreed = same;
			opening = { unless: 'repeated' };
		}
	}
}

/** What is staged gets the times that are given now; what is released keeps its own. */
async function goOnWith(
	cx: CommandContext,
	beginning: Beginning,
	{ going, spec }: { going: CampaignSession; spec: CampaignSpec | RequestsSpec },
): Promise<Opened> {
	const { place, timing } = beginning;
	const { key } = going;
	await place.hold(key);
	if (Object.keys(timing).length === 0) return { ...going, begun: 'earlier' };
	const opening = place.campaigns.open(key, spec);
	const session = await refusalExplained({ ...beginning, name: key }, spec, opening);
	const { state } = await place.campaigns.status(session.id);
	if (state === 'released')
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

async function openNew(
	beginning: Beginning,
	spec: CampaignSpec | RequestsSpec,
	how: CampaignOpening,
): Promise<Opened> {
	const { place, name } = beginning;
	const session = await refusalExplained(beginning, spec, place.campaigns.open(name, spec, how));
	if (name === null) {
		try {
			await place.hold(session.key);
		} catch (error) {
			await place.campaigns.cancel(session.id, { forget: true });
			throw error;
		}
	}
	const begun = name === null ? 'unnamed' : beginning.isThere ? 'earlier' : 'named';
	return { ...session, begun };
}

/**
 * A dry run, refused as the campaign would be. A look at a message is none. `of`: what is sent to, in a sentence. True:
 * the campaign is released already, and that the run would go on with it is said.
 */
export async function foreseeCampaign(
	cx: CommandContext,
	{ options, of, spec }: { options: SendOptions; of: string; spec: CampaignSpec | RequestsSpec },
): Promise<boolean> {
	if (wantsPreview(options)) return false;
	const beginning = await beginCampaign(cx, options, of);
	const { place, name } = beginning;
	const there = name === null ? undefined : await lookUpCampaign(place.campaigns, name);
	await foreseeOpening(cx, beginning, spec);
	if (there?.state === 'canceled') throw wasCanceled(there.key);
	if (there?.state !== 'released') return false;
	await foreseeResume(cx, there);
	return true;
}

async function foreseeOpening(
	cx: CommandContext,
	beginning: Beginning,
	spec: CampaignSpec | RequestsSpec,
): Promise<void> {
	try {
		const { name, place, timing } = beginning;
		const checking = place.campaigns.check(name, { ...spec, ...timing }, unlessThere(cx, beginning));
		await refusalExplained(beginning, spec, checking);
	} catch (error) {
		const same = error instanceof ApiError ? repeatedKey(error) : null;
		if (same === null) throw error;
		const { place, isAgain } = beginning;
		throw await sentLately(cx, place, { key: same, isAgain, cause: error });
	}
}

/** Under `--dry-run`: that the campaign would be gone on with. */
export function foreseeResume(cx: CommandContext, campaign: Campaign): Promise<void> {
	const { key } = campaign;
	const state = campaignState(campaign);
	return cx.wouldDo(`go on with the campaign "${key}", which is ${state}`, { resume: key, state });
}

/** The most that a mailctl server accepts. */
const maxLength = 255;

/** Throws `UsageError` for a name that could not be typed again. */
function assertName(name: string): void {
	if (name.trim() !== name || name === '' || name.length > maxLength || /[\p{Cc}\p{Cf}]/u.test(name))
		throw new UsageError(
			`--campaign ${JSON.stringify(name.slice(0, 60))} is no name: 1 to ${maxLength} visible characters`,
		);
}
