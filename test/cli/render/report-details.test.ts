// What a report shows beside its days, on a narrow terminal.
import { expect, it } from 'vitest';
import type { CampaignLink, ReportDetails } from '../../../src/api/reports.js';
import { renderDetails } from '../../../src/cli/render/report-details.js';

const none = {
	...{ attempted: 3, sent: 3, delivered: 3, opened: 1, clicked: 1, machine_opened: 0, machine_clicked: 0 },
	...{ unsubscribed: 0, complained: 0, softbounced: 0, hardbounced: 0 },
};
const details = {
	total: none,
	days: [],
	hours: [],
	week: [],
	bounces: { domains: [], other_domains: 0, codes: [] },
} as unknown as ReportDetails;
const link = {
	...{ url: 'https://www.example.com/articles/2026/november/first', position: 1 },
	...{ people: 1, clicks: 2, share: 100, machine_people: 0, machine_clicks: 0 },
} as CampaignLink;

it.each([
	[
		40,
		[
			'links, the most clicked first',
			'PEOPLE CLICKS    SHARE MACHINES LINK',
			'     1      2 100.00 %        0',
			'  https://www.example.com/a…vember/first',
		],
	],
	[
		80,
		[
			'links, the most clicked first',
			'PEOPLE CLICKS    SHARE MACHINES LINK',
			'     1      2 100.00 %        0 https://www.example.com/articles…/november/first',
		],
	],
])('a link is shortened by itself at %i columns, or has its own line, and each number stays below its name', (width, lines) => {
	const shown = renderDetails({ details, links: [link], replies: [], isOfDays: false }, {
		width,
		unicode: true,
	} as Parameters<typeof renderDetails>[1]);
	expect(shown.slice(shown.indexOf(lines[0] ?? ''))).toEqual(lines);
});
