/** Texts about a campaign: its counts, its outcomes, and what goes on with it. */

import { type AcceptCounts, type CampaignStatus, campaignState } from '../../../api/campaigns.js';
import type { DeliveryCounts } from '../../../api/counts.js';
import { microsPerMs } from '../../../api/datetime.js';
import { type Hint, joinHints, mailctl, type OwnCommand } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { Times } from '../../render/times.js';
import { counted, numberText } from '../../render/units.js';
import type { SendOptions } from './options.js';

/** `accepted` stands in for `sent` where a service took the messages and does not tell what became of them. */
export type Outcomes = Omit<DeliveryCounts, 'sent'> & ({ sent: number } | { accepted: number });

/** A campaign's messages that have an outcome, whichever run recorded it; the first is how many went out. */
export function outcomesOf(messages: CampaignStatus['messages']): Outcomes {
	const { accepted, sent = 0, deferred = 0, bounced = 0, failed = 0, uncertain = 0, canceled = 0 } = messages;
	const others = { deferred, bounced, failed, uncertain, canceled };
	return accepted === undefined ? { sent, ...others } : { accepted, ...others };
}

/** The same as a delivery counts them. */
export function asDelivered(outcomes: Outcomes): DeliveryCounts {
	if ('sent' in outcomes) return outcomes;
	const { accepted: sent, ...others } = outcomes;
	return { sent, ...others };
}

/** `20,000 sent, 7,071 since it was resumed, 1 bounced`: all of a campaign, and what came since this run began. */
export function progressOf(counts: Outcomes, before: Outcomes | null): string {
	const { sent, ...others } = asDelivered(counts);
	const now = before === null ? '' : `, ${numberText(sent - asDelivered(before).sent)} since it was resumed`;
	const first = `${numberText(sent)} ${'sent' in counts ? 'sent' : 'accepted'}${now}`;
	return [first, ...nonZero(others).map(([name, count]) => `${count} ${name}`)].join(', ');
}

/** `sent 3, bounced 1`. */
export function sentenceOf(counts: Outcomes): string {
	const parts = Object.entries(counts).filter(([, count], index) => count > 0 || index === 0);
	return parts.map(([name, count]) => `${name} ${numberText(count)}`).join(', ');
}

/** `1 bounced, 2 deferred`; empty when all is well. */
export function troublesOf({ bounced, failed, deferred }: DeliveryCounts): string {
	return nonZero({ bounced, failed, deferred })
		.map(([name, count]) => `${count} ${name}`)
		.join(', ');
}

function nonZero(counts: Readonly<Record<string, number>>): [name: string, count: string][] {
	return Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [[name, numberText(count)]] : []));
}

/** Messages without an outcome; deferred ones have one, and are tried again. */
export function waitingOf({ staged = 0, queued = 0, leased = 0 }: CampaignStatus['messages']): number {
	return staged + queued + leased;
}

export function settledOf(counts: DeliveryCounts): number {
	return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function limitedUntil(until: Date, { moment }: Times): string {
	const at = moment(until.getTime() * microsPerMs);
	return `limits hold back what is left until ${at}; it is waited for, and stays queued when this is interrupted`;
}

interface Expected {
	/** Recipients, before suppression and without those left out. */
	found: number;
	/** The list or the file where they are counted: `people.csv`. */
	where: string;
	/** How a campaign that stays staged goes on; absent: nothing stays. */
	stays?: Hint;
	options: Pick<SendOptions, 'expectCount' | 'maxRecipients'>;
}

/** Throws `UsageError` for more recipients than are allowed, and for another number than is expected. */
export function assertExpected({ found, where, stays, options }: Expected): void {
	const { expectCount, maxRecipients } = options;
	const people = counted(found, 'recipient');
	const hints = stays === undefined ? [] : [stays];
	if (maxRecipients !== undefined && found > maxRecipients) {
		const most = numberText(maxRecipients);
		throw new UsageError(`${people} are more than --max-recipients ${most}; nothing was released`, {
			...(hints.length > 0 && { hint: joinHints(hints) }),
		});
	}
	if (expectCount === undefined || expectCount === found) return;
	throw new UsageError(`${where} has ${people}, not ${numberText(expectCount)}; nothing was released`, {
		hint: joinHints([`--expect-count ${found} if that is right`, ...hints]),
	});
}

/** The campaign, and the `--rate` of this run: a later run does not know it. */
export interface GoingOn {
	name: string;
	rate?: string | undefined;
}

/** The command or process that continues a released campaign, and how to look at it or end it. */
export async function saysWhoGoesOn(cx: CommandContext, { name, rate }: GoingOn): Promise<Hint> {
	const { local } = await cx.connection();
	const cancel = [mailctl('campaigns', 'cancel', name), ' drops what is not sent'];
	const look = [mailctl('campaigns', 'get', name), ' shows how far it is'];
	if (local === null) return ['the server goes on; ', look, ', ', cancel];
	const { workers } = await local.queue.stats();
	const other = workers.find(({ role }) => role === 'serve' || role === 'worker');
	if (other !== undefined)
		return [`mailctl ${other.role} (pid ${other.pid}) goes on with this database; `, look, ', ', cancel];
	const pace = rate === undefined ? [] : ['--rate', rate];
	return [mailctl('campaigns', 'resume', name, ...pace), ' goes on, ', cancel];
}

/** A campaign that is not released, and the `--source` that has the rest of its rows; absent: the campaign knows. */
export interface Unreleased {
	name: string;
	source?: string | undefined;
}

export function waysToRelease({ name, source }: Unreleased): (string | OwnCommand)[] {
	const rest = source === undefined ? [] : ['--source', source];
	const resume = mailctl('campaigns', 'resume', name, ...rest);
	return [resume, ' goes on, ', mailctl('campaigns', 'cancel', name), ' drops it'];
}

/** The sender of queued messages: a command on this machine, or the server by itself. */
export async function sender(cx: CommandContext, ...options: readonly string[]): Promise<Hint> {
	const { local } = await cx.connection();
	return local === null ? 'the server' : mailctl('worker', ...options);
}

/** The JSON of a campaign: the keys of `campaignAnswer`. */
export function documentOf(campaign: CampaignStatus) {
	const { id, key, counts, messages, replies } = campaign;
	return {
		name: key,
		id,
		state: campaignState(campaign),
		recipients: recipientsOf(counts),
		...counts,
		messages,
		...(replies && { replies }),
	};
}

/** `3 recipients, 1 of them suppressed, 2 left out`. */
export function describe(counts: AcceptCounts): string {
	const { suppressed, rejected } = counts;
	const parts = [counted(recipientsOf(counts), 'recipient')];
	if (suppressed > 0) parts.push(`${numberText(suppressed)} of them suppressed`);
	if (rejected > 0) parts.push(`${numberText(rejected)} left out`);
	return parts.join(', ');
}

/** Recipients before suppression, without those left out. */
export function recipientsOf({ staged, suppressed }: AcceptCounts): number {
	return staged + suppressed;
}
