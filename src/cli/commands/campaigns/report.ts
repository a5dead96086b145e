/** `campaigns report`: the events report of one campaign, over its whole life. */

import { command } from '../../frame/command.js';
import { reportColumns, reportOptions, runReport } from '../report.js';
import { campaignArg } from './find.js';

const { campaign: _, ...options } = reportOptions;

export const report = command({
	name: 'report',
	summary: 'how many of a campaign were sent, opened, bounced',
	args: [campaignArg],
	options,
	columns: reportColumns,
	output: 'as of report',
	exits: [3, 5, 10],
	examples: ['mailctl campaigns report november', 'mailctl campaigns report november --human -o json'],
	run: (cx, { args, options }) => runReport(cx, { ...options, campaign: args.campaign }),
});
