/** `campaigns report`: everything about one campaign, over its whole life. */

import type { Report } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { headRecord } from '../../render/report-details.js';
import { readDetails, readHead } from '../report/details.js';
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
		'{"total", "data"} as of report, where opened counts people and machines, with "details": {"total", "days", "hours", "week", "bounces", …} and "links", the five most clicked over its whole life; there opened counts people, machine_opened the others; "campaign": {"name", "id", "subject", "lists", "sender", "date_released", "recipients": {"total", "sent", "waiting", "deferred", "bounced", "failed", "uncertain", "canceled", "left_out"}}, whose total is the sum of the others',
	exits: [3, 5, 10],
	examples: ['mailctl campaigns report november', 'mailctl campaigns report november --human -o json'],
	run: (cx, { args, options }) => {
		const run = { ...options, campaign: args.campaign };
		return runReport(cx, run, (cx, result, campaign) => show(cx, run, result, campaign));
	},
});

async function show(
	cx: CommandContext,
	options: ReportRun,
	result: Report,
	campaign: string | undefined,
): Promise<void> {
	const { format } = cx.out;
	const isWhole = ['json', 'table', 'wide'].includes(format) && cx.globals.fields === undefined;
	const detailed = isWhole ? await readDetails(cx, options, result, campaign) : null;
	const head = isWhole && campaign !== undefined ? await readHead(cx, campaign) : null;
	const ofCampaign = head !== null && { campaign: headRecord(head) };
	if (detailed === null)
		return format === 'json'
			? cx.out.document({ ...result, ...ofCampaign })
			: printReport(cx, result, options, { details: null, parted: null, head });
	const links = detailed.links.slice(0, 5);
	const { details, replies } = detailed;
	const ofReplies = replies.length > 0 && { replies };
	if (format === 'json') return cx.out.document({ ...result, details, links, ...ofReplies, ...ofCampaign });
	await printReport(cx, result, options, { details, parted: { ...detailed, links }, head });
}
