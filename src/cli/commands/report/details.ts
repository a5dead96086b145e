/** What a report shows beside its days, where the deployment tells it. */

import type { Report, Uuid } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import type { CampaignHead, DetailedReport } from '../../render/report-details.js';
import { lookUpCampaign } from '../campaigns/find.js';
import { detailOf, leftOutOf, listNames } from '../campaigns/record.js';
import type { ReportRun } from '../report.js';

/** Null: it is narrowed to some messages, or the service is not ours. Of days there are no links. `lists`: with their growth. */
export async function readDetails(
	cx: CommandContext,
	options: ReportRun,
	{ data }: Report,
	campaign: string | undefined,
	lists = false,
): Promise<DetailedReport | null> {
	const { reports, campaigns } = (await (await cx.api()).capabilities()).ext;
	const isNarrowed = options.tag !== undefined || options.human || options.event.length > 0;
	if (reports === undefined || isNarrowed) return null;
	const [first, last] = [data[0]?.date, data.at(-1)?.date];
	const hasDays = campaign === undefined || (options.from ?? options.to ?? options.last) !== undefined;
	const call = { signal: cx.signal };
	const details = await reports.details(
		{
			...(campaign !== undefined && { campaign_unique_id: campaign }),
			...(lists && { lists }),
			...(hasDays && first !== undefined && last !== undefined && { date_from: first, date_to: last }),
		},
		call,
	);
	const links = campaign === undefined ? [] : (await reports.links(campaign, call)).results;
	const status = campaign === undefined ? undefined : await campaigns?.status(campaign, call);
	return { details, links, replies: status?.replies ?? [], isOfDays: hasDays };
}

/** Null: the service keeps no campaigns, or not this one. */
export async function readHead(cx: CommandContext, id: Uuid): Promise<CampaignHead | null> {
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	const call = { signal: cx.signal };
	const found = campaigns && (await lookUpCampaign(campaigns, id, call));
	if (campaigns === undefined || found === undefined) return null;
	const detail = detailOf(found, await campaigns.status(id, call));
	const { name, subject, plan, messages, recipients } = detail;
	const { accepted = 0, bounced = 0, deferred = 0, failed = 0, uncertain = 0 } = messages;
	const waiting = (messages.staged ?? 0) + (messages.queued ?? 0) + (messages.leased ?? 0);
	const sent = accepted + (messages.sent ?? 0);
	// Messages that were canceled before their release are deleted.
	const kept = sent + waiting + bounced + deferred + failed + uncertain;
	const leftOut = leftOutOf(detail);
	const canceled = Math.max(messages.canceled ?? 0, recipients - leftOut - kept);
	const starts = plan?.opens_at ?? plan?.starts_at ?? detail.date_released;
	return {
		...{ name, id, subject, lists: await listNames(cx, detail), sender: found.from ?? null },
		date_released: detail.date_released,
		recipients: {
			...{ total: kept + canceled + leftOut, sent, waiting, deferred, bounced, failed, uncertain, canceled },
			left_out: leftOut,
		},
		bouncedLater: Math.min(bounced, Math.max(0, detail.sent - sent)),
		sentOn: detail.date_released === null || starts === null ? 'not yet' : cx.times.moment(starts),
	};
}
