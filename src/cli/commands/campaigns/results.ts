/** `campaigns results`: what became of each recipient of a campaign. */

import type { Campaign } from '../../../api/campaigns.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { type Columns, column } from '../../render/columns.js';
import { numberText } from '../../render/units.js';
import { type CampaignPlace, campaignPlace } from '../send/begin.js';
import { assertResults, marksOf, type ResultLine, resultLines, writeLines } from '../send/results.js';
import { campaignArg, findCampaign } from './find.js';

/** What `--only` selects, by the states of a result. */
const selections = {
	sent: ['sent', 'accepted'],
	bounced: ['bounced'],
	failed: ['failed', 'uncertain'],
	'left-out': ['suppressed', 'rejected', 'left_out'],
} as const;
type Selection = keyof typeof selections;

const columns: Columns<ResultLine> = [
	column('line', 'LINE', { align: 'right' }),
	column('to', 'TO', { isName: true }),
	column('state', 'STATE'),
	column('code', 'CODE'),
	column('text', 'TEXT'),
	column('attempts', 'ATTEMPTS', { align: 'right', wide: true }),
	column('id', 'MESSAGE', { wide: true, isWhole: true }),
	column('campaign_unique_id', 'CAMPAIGN', { wide: true, isWhole: true }),
];

export const results = command({
	name: 'results',
	summary: 'what became of each recipient of a campaign',
	args: [campaignArg],
	options: {
		only: {
			kind: 'choice',
			choices: ['sent', 'bounced', 'failed', 'left-out'],
			summary: 'only these; left-out: suppressed, with a finding, or not in the audience',
		},
		save: { kind: 'path', summary: 'write them as CSV, as send --results does' },
	},
	columns,
	output: 'an array of {"line", "to", "id", "state", "code", "text", "attempts", "campaign_unique_id"}',
	exits: [3],
	examples: [
		'mailctl campaigns results november',
		'mailctl campaigns results november --only bounced --save bounced-november.csv',
	],
	run: async (cx, { args, options }) => {
		const place = await campaignPlace(cx);
		const campaign = await findCampaign(cx, place.campaigns, args.campaign);
		const { only, save } = options;
		await assertResults(save, { inputs: [], marks: () => marksOf(place, campaign.id), flag: '--save' });
		await sayWhatIsNotKept(cx, place, campaign, only);
		const lines = selected(resultLines(cx, place, campaign), only);
		if (save !== undefined && cx.dryRun) await cx.wouldDo(`write ${save}`, { export: save });
		else if (save !== undefined) await writeLines(cx, save, lines, { flag: '--save' });
		else await cx.out.rows(lines, columns);
	},
});

async function* selected(
	lines: AsyncIterable<ResultLine>,
	only: Selection | undefined,
): AsyncGenerator<ResultLine> {
	const states: readonly string[] | null = only === undefined ? null : selections[only];
	for await (const line of lines) if (states === null || states.includes(line.state)) yield line;
}

/** Where the service counts the people of a list that it left out, and does not name them. */
async function sayWhatIsNotKept(
	cx: CommandContext,
	{ isForeign }: CampaignPlace,
	{ list_id, position, counts }: Campaign,
	only: Selection | undefined,
): Promise<void> {
	const { suppressed, rejected } = counts;
	const isAboutThem = only === undefined || only === 'left-out';
	if (isForeign || list_id === null || position > 0 || !isAboutThem || suppressed + rejected === 0) return;
	if ((await (await cx.api()).capabilities()).ext.audiences !== undefined) return;
	await cx.warn(
		`${numberText(suppressed)} suppressed and ${numberText(rejected)} left out of the list are counted, not named`,
	);
}
