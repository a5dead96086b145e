/** The same mail to the same recipients, sent lately: a question to a person, a refusal in a script. */

import {
	type Campaign,
	type CampaignSession,
	type CampaignSpec,
	type CampaignStatus,
	campaignState,
	type RequestsSpec,
	repeatedKey,
} from '../../../api/campaigns.js';
import { type Micros, parseDateTime } from '../../../api/datetime.js';
import { ApiError } from '../../../api/errors.js';
import { type Hint, mailctl, type OwnCommand } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { Declined, UsageError } from '../../frame/errors.js';
import { numberText, spanText } from '../../render/units.js';
import { lookUpCampaign } from '../campaigns/find.js';
import type { CampaignPlace } from './place.js';
import { outcomesOf, waitingOf } from './report.js';
import { sayPlan } from './timing.js';

/** The campaign in the way, whether `--again` was given beside it, and the refusal that named it. */
interface Repetition {
	key: string;
	isAgain: boolean;
	cause: unknown;
}

/**
 * The campaign to go on with; null: a person wants it sent once more. Throws `Declined`, and `UsageError` where no person
 * is asked: `--yes` was said to another question.
 */
export async function askAboutRepetition(
	cx: CommandContext,
	place: CampaignPlace,
	{ key, isAgain, cause }: Repetition,
): Promise<CampaignSession | null> {
	const found = await lookUpRepetition(cx, place, key);
	if (!cx.canAsk || cx.globals.yes === true || found === null)
		throw refusal(cx, key, { found, isAgain, cause });
	const { campaign } = found;
	const isOpen = ['staged', 'sending'].includes(campaignState(campaign));
	try {
		await cx.agree(`${sentence(found, cx)}.`, isOpen ? 'Resume it?' : 'Send it once more?');
	} catch (error) {
		throw isOpen && error instanceof Declined ? new Declined({ hint: waysBeside(found, isAgain) }) : error;
	}
	return isOpen ? { id: campaign.id, key, position: campaign.position } : null;
}

/** The refusal of a script, and of a dry run. */
export async function sentLately(
	cx: CommandContext,
	place: CampaignPlace,
	{ key, isAgain, cause }: Repetition,
): Promise<UsageError> {
	const found = await lookUpRepetition(cx, place, key);
	return refusal(cx, key, { found, isAgain, cause });
}

/** The campaign of the same mail beside which `--again` begins another one; null: none. The opening tells other errors. */
export async function sameBeside(
	{ campaigns }: CampaignPlace,
	name: string | null,
	spec: CampaignSpec | RequestsSpec,
): Promise<string | null> {
	try {
		await campaigns.check(name, spec, { unless: 'sent' });
		return null;
	} catch (error) {
		return error instanceof ApiError ? repeatedKey(error) : null;
	}
}

/** `--again` beside one that is not finished is allowed, and told: who waits there gets both. */
export async function warnOfUnfinished(cx: CommandContext, place: CampaignPlace, key: string): Promise<void> {
	const found = await lookUpRepetition(cx, place, key);
	if (found === null || !isUnfinished(found)) return;
	await cx.warn(`${sentence(found, cx)}; they get both`);
}

function isUnfinished({ campaign }: Pick<Found, 'campaign'>): boolean {
	return ['staged', 'planned', 'sending'].includes(campaignState(campaign));
}

interface Found {
	campaign: Campaign;
	status: CampaignStatus;
	/** A process on this database sends, or could. */
	isWorkedOn: boolean;
}

async function lookUpRepetition(
	cx: CommandContext,
	{ campaigns }: CampaignPlace,
	key: string,
): Promise<Found | null> {
	const campaign = await lookUpCampaign(campaigns, key);
	if (campaign === undefined) return null;
	const { local } = await cx.connection();
	const isWorkedOn = (await local?.queue.hasWorker()) ?? false;
	return { campaign, status: await campaigns.status(campaign.id), isWorkedOn };
}

function refusal(
	cx: CommandContext,
	key: string,
	{ found, isAgain, cause }: Omit<Repetition, 'key'> & { found: Found | null },
): UsageError {
	const what = found === null ? `"${key}" is the same to the same recipients` : sentence(found, cx);
	return new UsageError(`${what}; nothing was sent`, {
		hint: waysBeside(found, isAgain),
		cause,
	});
}

function waysBeside(found: Found | null, isAgain: boolean): Hint {
	return [
		...(found === null ? [] : waysOn(found)),
		isAgain || (found !== null && isUnfinished(found)) ? '--again with a --campaign of its own' : '--again',
		' sends all of it once more',
	];
}

/** What may be done about one that is not finished. */
function waysOn({ campaign, status: { messages } }: Found): (string | OwnCommand)[] {
	const { key } = campaign;
	const state = campaignState(campaign);
	if (!isUnfinished({ campaign })) return [];
	const { deferred = 0, uncertain = 0 } = messages;
	const resuming = mailctl('campaigns', 'resume', key);
	if (state === 'sending' && waitingOf(messages) + deferred === 0 && uncertain > 0)
		return [mailctl('campaigns', 'resume', key, '--retry-unknown'), ' sends those once more, '];
	const dropping = [mailctl('campaigns', 'cancel', key), ' drops what is not sent, '];
	return state === 'planned' ? dropping : [resuming, ' goes on with it, ', ...dropping];
}

/** `"spring-news" was sent to this list 4 minutes ago, 1,529 not sent yet`. */
function sentence({ campaign, status, isWorkedOn }: Found, { clock, times }: CommandContext): string {
	const { key, state, list_id, date_released } = campaign;
	const recipients = list_id === null ? 'these recipients' : 'this list';
	if (state === 'staged') return `"${key}" is the same to ${recipients}, staged and not released`;
	if (campaignState(campaign) === 'planned')
		return `"${key}" is the same to ${recipients}, ${sayPlan(campaign.plan, times) ?? 'planned'}`;
	const released = date_released === null ? null : parseDateTime(date_released);
	const when = released === null ? '' : ` ${agoOf(clock.now() - released)}`;
	const isSending = isWorkedOn && campaignState(campaign) === 'sending';
	const by = isSending ? ', and a process that sends is running' : '';
	return `"${key}" was sent to ${recipients}${when}${restOf(state, status)}${by}`;
}

function agoOf(span: Micros): string {
	return span < minute ? 'less than a minute ago' : `${spanText(span)} ago`;
}

const minute: Micros = 60_000_000;

function restOf(state: Campaign['state'], { messages }: CampaignStatus): string {
	const { deferred = 0, uncertain = 0, canceled = 0 } = messages;
	if (state === 'canceled') return `, and canceled with ${numberText(canceled)} not sent`;
	const left = waitingOf(messages) + deferred;
	if (left > 0) return `, ${numberText(left)} not sent yet`;
	const unknown = 'accepted' in outcomesOf(messages) && uncertain > 0;
	return unknown ? `, ${numberText(uncertain)} of them may or may not have arrived` : '';
}
