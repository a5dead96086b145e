/** What a report shows beside its days, where the deployment tells it. */

import type { Report } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import type { DetailedReport } from '../../render/report-details.js';
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
