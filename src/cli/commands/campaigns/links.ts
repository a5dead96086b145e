/** `campaigns links`: the links of a campaign's mails, and who clicked them: people and machines apart. */

import { need } from '../../../api/capabilities.js';
import type { CampaignLink } from '../../../api/reports.js';
import { command } from '../../frame/command.js';
import { type Columns, column } from '../../render/columns.js';
import { numberText } from '../../render/units.js';
import { listOptions, listRows } from '../../verbs/listing.js';
import { campaignArg, findCampaign } from './find.js';

const count = { align: 'right', isCount: true } as const;

const columns: Columns<CampaignLink> = [
	column('url', 'LINK', { isName: true }),
	column('people', 'PEOPLE', count),
	column('clicks', 'CLICKS', count),
	column('share', 'SHARE %', { align: 'right' }),
	column('machine_people', 'MACHINES', count),
	column('machine_clicks', 'MACHINE CLICKS', count),
	column('position', 'POSITION', { align: 'right', isOptional: true }),
];

export const links = command({
	name: 'links',
	summary: 'which links of a campaign were clicked',
	description:
		'Each link of the HTML text, the most clicked first, those without a click last. People and their clicks do not ' +
		'include machines, such as link scanners; MACHINES are messages in which a machine alone followed the link. A ' +
		'target that stands in several places of the mail has a row for each.',
	args: [campaignArg],
	options: { sort: listOptions.sort, limit: listOptions.limit, all: listOptions.all },
	columns,
	output:
		'an array of {"url", "position", "people", "clicks", "machine_people", "machine_clicks", "share"}; share is the percentage of all clicks by people',
	exits: [3],
	examples: ['mailctl campaigns links november', 'mailctl campaigns links november -o csv'],
	run: async (cx, { args, options }) => {
		const api = await cx.api();
		const reports = await need(api, 'reports', 'mailctl campaigns links');
		const campaigns = await need(api, 'campaigns', 'mailctl campaigns links');
		const { id } = await findCampaign(cx, campaigns, args.campaign);
		const { results, left_out } = await reports.links(id, { signal: cx.signal });
		async function* each() {
			yield* results;
		}
		const rows = () => ({ [Symbol.asyncIterator]: each, count: () => results.length });
		await listRows(cx, options, { columns, rows });
		if (left_out > 0) await cx.note(`${numberText(left_out)} links with fewer clicks are left out`);
	},
});
