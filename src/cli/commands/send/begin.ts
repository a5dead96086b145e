/** How a campaign begins: its consent, its name, and its opening in the place that keeps it. */

import {
	type Campaign,
	type CampaignOpening,
	type CampaignSession,
	type CampaignSpec,
	campaignState,
	isOfCalls,
	type RequestsSpec,
	repeatedKey,
	type Timing,
} from '../../../api/campaigns.js';
import { parseDateTime } from '../../../api/datetime.js';
import { ApiError } from '../../../api/errors.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { spanText } from '../../render/units.js';
import { explained } from '../../verbs/refusals.js';
import { isUuid } from '../../verbs/resolve.js';
import { lookUpCampaign } from '../campaigns/record.js';
import type { SendOptions } from './options.js';
import { type CampaignPlace, campaignPlace } from './place.js';
import { readTiming, sayPlan, sendHint } from './request.js';
import { assertResults } from './results.js';
import { assertCanDeliver } from './watch.js';

type AnySpec = CampaignSpec | RequestsSpec;

export interface Beginning {
	place: CampaignPlace;
	name: string | null;
	there: Campaign | null;
	isAgain: boolean;
	timing: Timing;
}

/**
 * Who began it: this run under a made-up name (`unnamed`), which its user sees at the release, or under a given one
 * (`named`), or an `earlier` run, whose staging is kept.
 */
export type Begun = 'unnamed' | 'named' | 'earlier';

interface Opened extends CampaignSession {
	begun: Begun;
}

/** A script gives both, so that neither a habit nor a grown list sends by itself. */
export function assertConsent(
	cx: CommandContext,
	{ expectCount }: Pick<SendOptions, 'expectCount'>,
	recipients: string,
): void {
	const isYes = cx.globals.yes === true;
	if (cx.canAsk || (isYes && expectCount !== undefined)) return;
	const missing = [...(isYes ? [] : ['--yes']), ...(expectCount === undefined ? ['--expect-count N'] : [])];
	throw new UsageError(`sending to ${recipients} needs consent`, { hint: `add ${missing.join(' ')}` });
}

/** Throws `UsageError` before anything is staged. A dry run needs no consent. `recipients`: their name in sentences. */
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
	// A campaign of send calls has its UUID as its name. One with rows begins beside it, and the calls join it.
	const there = found === undefined || isOfCalls(found) ? null : found;
	if (there === null && campaign !== undefined && isUuid(campaign) && options.batch !== undefined)
		throw new UsageError(`campaign ${campaign} not found; give --batch a name for a new one`);
	// An earlier run of the same command may have left a staged one.
	if (again && there !== null && there.state !== 'staged')
		throw new UsageError(`--again begins a new campaign, but "${there.key}" exists; give another --campaign`);
	await assertResults(options.results, there === null ? null : { place, id: there.id });
	const named = campaign === undefined || isUuid(campaign) ? null : campaign;
	return { place, name: there?.key ?? named, there, isAgain: again, timing };
}

const maxLength = 255;

function assertName(name: string): void {
	if (name.trim() === name && name !== '' && name.length <= maxLength && !/[\p{Cc}\p{Cf}]/u.test(name))
		return;
	const shown = JSON.stringify(name.slice(0, 60));
	throw new UsageError(`--campaign ${shown} is not a name: use 1 to ${maxLength} visible characters`);
}

/**
 * Opens a new campaign, or the one that an earlier run began. The same mail to the same recipients within 24 hours is a
 * question to a person, and exit 2 in a script. Exit 5 for the name of another campaign.
 */
export async function openCampaign(cx: CommandContext, beginning: Beginning, mail: AnySpec): Promise<Opened> {
	const { place, name, timing } = beginning;
	const spec = { ...mail, ...timing };
	if (name !== null) await place.hold(name);
	try {
		return await openNew(beginning, spec, unlessThere(beginning));
	} catch (error) {
		const same = error instanceof ApiError ? repeatedKey(error) : null;
		if (same === null) throw error;
		const found = await lookUpCampaign(place.campaigns, same);
		if (found === undefined || !cx.canAsk || cx.globals.yes === true) throw repeated(cx, same, found, error);
		const isOpen = ['staged', 'sending'].includes(campaignState(found));
		await cx
			.agree(`${sentence(cx, found)}.`, isOpen ? 'Resume it?' : 'Send it once more?')
			.catch((declined: unknown) => {
				if (!isOpen || !(declined instanceof Declined)) throw declined;
				throw new Declined({ hint: waysBeside(found) });
			});
		return isOpen ? goOnWith(beginning, found, spec) : openNew(beginning, spec, {});
	}
}

/** Refuses in a dry run what the opening would refuse. */
export async function foreseeOpening(cx: CommandContext, beginning: Beginning, spec: AnySpec): Promise<void> {
	const { place, name, there, timing } = beginning;
	try {
		const checking = place.campaigns.check(name, { ...spec, ...timing }, unlessThere(beginning));
		await refusalExplained(beginning, spec, checking);
	} catch (error) {
		const same = error instanceof ApiError ? repeatedKey(error) : null;
		if (same === null) throw error;
		throw repeated(cx, same, await lookUpCampaign(place.campaigns, same), error);
	}
	if (there?.state === 'canceled') throw wasCanceled(there.key);
}

export function wasCanceled(name: string): UsageError {
	return new UsageError(`the campaign "${name}" was canceled; give another name`);
}

/** A staged campaign takes the times given now; a released one keeps its own. */
async function goOnWith(
	beginning: Beginning,
	{ id, key, position, state }: Campaign,
	spec: AnySpec,
): Promise<Opened> {
	const { place, timing } = beginning;
	await place.hold(key);
	const isTimed = state === 'staged' && Object.keys(timing).length > 0;
	if (!isTimed) return { id, key, position, begun: 'earlier' };
	const opening = place.campaigns.open(key, spec);
	return { ...(await refusalExplained({ ...beginning, name: key }, spec, opening)), begun: 'earlier' };
}

/** The same command with `--again`, run twice, does not begin a third campaign. */
function unlessThere({ name, isAgain }: Beginning): CampaignOpening {
	if (!isAgain) return { unless: 'sent' };
	return name === null ? { unless: 'repeating' } : {};
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

async function refusalExplained<T>(
	{ place, name }: Beginning,
	spec: AnySpec,
	opening: Promise<T>,
): Promise<T> {
	try {
		return await explained(opening, { input: spec, hint: sendHint });
	} catch (error) {
		if (!(error instanceof ApiError) || error.code !== 'conflict' || repeatedKey(error) !== null) throw error;
		const other = name === null ? undefined : await lookUpCampaign(place.campaigns, name);
		// Only a campaign of which nothing was sent gives its name back.
		const cancel = [', or first run ', mailctl('campaigns', 'cancel', name ?? '')];
		throw new CliError('conflict', exits.refused, `the name "${name}" belongs to another campaign`, {
			hint: ['give another --campaign', ...(other?.state === 'staged' ? cancel : [])],
			cause: error,
		});
	}
}

function repeated(cx: CommandContext, key: string, found: Campaign | undefined, cause: unknown): UsageError {
	const what = found === undefined ? `"${key}" is the same to the same recipients` : sentence(cx, found);
	return new UsageError(`${what}; nothing was sent`, { hint: waysBeside(found), cause });
}

function waysBeside(found: Campaign | undefined): Hint {
	const state = found === undefined ? null : campaignState(found);
	if (found === undefined || state === 'finished' || state === 'canceled')
		return 'add --again to send it once more';
	const first =
		state === 'planned'
			? [mailctl('campaigns', 'cancel', found.key), ' drops it']
			: [mailctl('campaigns', 'resume', found.key), ' continues it'];
	return [...first, '; --again with another --campaign sends it once more'];
}

/** `"spring-news" was sent to this list 4 minutes ago, and is not finished`. */
function sentence({ clock, times }: CommandContext, campaign: Campaign): string {
	const { key, list_id, date_released, plan } = campaign;
	const recipients = list_id === null ? 'these recipients' : 'this list';
	const state = campaignState(campaign);
	if (state === 'staged') return `"${key}" is the same to ${recipients}, staged and not released`;
	if (state === 'planned') return `"${key}" is the same to ${recipients}, ${sayPlan(plan, times) ?? state}`;
	const released = date_released === null ? null : parseDateTime(date_released);
	const ago = released === null ? '' : ` ${spanText(clock.now() - released)} ago`;
	const isOver = state === 'finished' ? '' : `, and is ${state === 'canceled' ? 'canceled' : 'not finished'}`;
	return `"${key}" was sent to ${recipients}${ago}${isOver}`;
}
