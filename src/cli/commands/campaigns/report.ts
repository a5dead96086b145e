/** `campaigns report`: everything about one campaign, over its whole life. */

import type { Report } from '../../../api/records.js';
import type { DetailsQuery } from '../../../api/reports.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { printReport, type ReportRun, reportColumns, reportOptions, runReport } from '../report.js';
import { campaignArg } from './find.js';

const { campaign: _, ...options } = reportOptions;

export const report = command({
	name: 'report',
	summary: 'what became of a campaign: opens, clicks, links, bounces',
	description:
		'Opens and clicks of people and of machines side by side, the most clicked links, the first hours, bounces by domain and reason, and the days. With --event, --tag or --human, and on a service that is not mailctl’s, the report of its days alone.',
	args: [campaignArg],
	options,
	columns: reportColumns,
	output:
		'{"total", "data"} as of report, with "details": {"total", "days", "hours", "week", "bounces", …} and "links", the five most clicked',
	exits: [3, 5, 10],
	examples: ['mailctl campaigns report november', 'mailctl campaigns report november --human -o json'],
	run: (cx, { args, options }) => {
		const run = { ...options, campaign: args.campaign };
		return runReport(cx, run, (result, campaign) => show(cx, run, result, campaign));
	},
});

async function show(
	cx: CommandContext,
	options: ReportRun,
	result: Report,
	campaign: string | undefined,
): Promise<void> {
	const { format } = cx.out;
	const { reports } = (await (await cx.api()).capabilities()).ext;
	const isNarrowed = options.tag !== undefined || options.human || options.event.length > 0;
	const isWhole = ['json', 'table', 'wide'].includes(format) && cx.globals.fields === undefined;
	if (reports === undefined || campaign === undefined || isNarrowed || !isWhole)
		return printReport(cx, result, options.chart);
	const call = { signal: cx.signal };
	const [first, last] = [result.data[0]?.date, result.data.at(-1)?.date];
	const query: DetailsQuery = {
		campaign_unique_id: campaign,
		...((options.from ?? options.to ?? options.last) !== undefined && {
			...(first !== undefined && { date_from: first }),
			...(last !== undefined && { date_to: last }),
		}),
	};
	const details = await reports.details(query, call);
	const links = (await reports.links(campaign, call)).results.slice(0, 5);
	if (format === 'json') return cx.out.document({ ...result, details, links });
	await printReport(cx, result, options.chart, { details, links });
}
