import { setTimeout as delay } from 'node:timers/promises';
import {
	type Campaign,
	type CampaignFilter,
	type CampaignStatus,
	campaignState,
	campaignStates,
} from '../../api/campaigns.js';
import { need } from '../../api/capabilities.js';
import type { CampaignLink } from '../../api/reports.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { given } from '../frame/values.js';
import { type Columns, column } from '../render/columns.js';
import { counted, numberText } from '../render/units.js';
import { beginningOf, listRows, mapped, pageOptions, walk } from '../verbs/listing.js';
import { sayWhatHolds } from '../verbs/refusals.js';
import { watched, watchOption } from '../verbs/watching.js';
import {
	campaignArg,
	detailColumns,
	detailOf,
	findCampaign,
	listColumns,
	recordOf,
	sentOf,
	showDetail,
} from './campaigns/record.js';
import { resume } from './campaigns/resume.js';
import { campaignsCompare } from './report/compare.js';
import { campaignsReport } from './report.js';
import { campaignPlace } from './send/place.js';
import {
	assertResults,
	describe,
	type ResultLine,
	resultLines,
	sayOutcomes,
	writeLines,
} from './send/report.js';

const list = command({
	name: 'list',
	summary: 'list campaigns, newest first',
	description:
		'Omits single bulk messages (send --bulk --to), but the other campaigns commands accept their UUIDs.',
	options: {
		since: { kind: 'date', summary: 'show campaigns released or started since this day' },
		state: { kind: 'choice', choices: campaignStates, summary: 'filter by state' },
		...pageOptions,
		watch: watchOption,
	},
	columns: listColumns,
	output:
		'an array of campaigns: {"name", "id", "state", "type", "subject", "list_id", "source", "date_created", ' +
		'"date_released", "recipients" (including those left out), "joined" (messages added by send --to, if any), "staged", "suppressed", "rejected", "rows" (rows read so far), "is_complete" (all rows are read), "sent", "opened", ' +
		'"machine_opened", "clicked", "machine_clicked", "unsubscribed", "bounced", "softbounced", "hardbounced"}; "opened" ' +
		'and "clicked" count people; figures that the service does not have are null',
	examples: ['mailctl campaigns list', 'mailctl campaigns list --state sending -o json'],
	run: (cx, { options: { since, state, watch, ...how } }) =>
		watched(cx, watch, async (cx) => {
			const { campaigns } = await campaignPlace(cx);
			const from = since && beginningOf(cx, since);
			const filter: CampaignFilter = { ordering: '-date_created', ...given({ since: from, state }) };
			const shown: Campaign[] = [];
			const { signal } = cx;
			const rows = (limit: number | undefined) =>
				mapped(walk(campaigns, filter, { signal, limit }), async (campaign) => {
					const { figures, id } = campaign;
					const messages = figures === null ? (await campaigns.status(id, { signal })).messages : {};
					shown.push(campaign);
					return recordOf(campaign, sentOf(campaign, { messages }));
				});
			await listRows(cx, how, { columns: listColumns, rows });
			await sayWhy(cx, shown);
			return undefined;
		}),
});

const get = command({
	name: 'get',
	summary: 'show the state of a campaign',
	description: 'With --watch, the command exits with 0 when the campaign is finished or canceled.',
	args: [campaignArg],
	options: { watch: watchOption },
	columns: detailColumns,
	output:
		'the campaign as in campaigns list, with "messages": {"sent": 2, "queued": 1, …}, and for a campaign to lists "audience": {"lists", "exclude_lists", "where", …}',
	exits: [3],
	examples: ['mailctl campaigns get november', 'mailctl campaigns get november -o json'],
	run: (cx, { args, options }) =>
		watched(cx, options.watch, async (cx): Promise<ExitCode | undefined> => {
			const { campaigns } = await campaignPlace(cx);
			const campaign = await findCampaign(cx, campaigns, args.campaign);
			const status = await campaigns.status(campaign.id, { signal: cx.signal });
			const detail = detailOf(campaign, status);
			await showDetail(cx, detail);
			await sayWhy(cx, [status]);
			if (status.state === 'staged') await cx.hint(mailctl('campaigns', 'resume', campaign.key));
			// Returning an exit code ends `--watch`.
			return detail.state === 'finished' || detail.state === 'canceled' ? exits.done : undefined;
		}),
});

type Waiting = Pick<Campaign, 'id' | 'key' | 'state' | 'is_finished' | 'plan' | 'rate'>;

async function sayWhy(cx: CommandContext, campaigns: readonly Waiting[]): Promise<void> {
	const first = campaigns.find((one) => ['sending', 'planned'].includes(campaignState(one)));
	if (first === undefined) return;
	// For a campaign with a rate, suggest `resume`, which keeps the rate. A worker would send at full speed.
	const sender = first.rate === undefined ? mailctl('worker') : mailctl('campaigns', 'resume', first.key);
	await sayWhatHolds(cx, { campaign: first.id }, sender);
}

const count = { align: 'right', isCount: true } as const;

const linkColumns: Columns<CampaignLink> = [
	column('url', 'LINK', { isName: true }),
	column('people', 'PEOPLE', count),
	column('clicks', 'CLICKS', count),
	column('share', 'SHARE %', { align: 'right' }),
	column('machine_people', 'BOTS', count),
	column('machine_clicks', 'BOT CLICKS', count),
	column('position', 'POSITION', { align: 'right', isOptional: true }),
];

const links = command({
	name: 'links',
	summary: 'show how often the links of a campaign were clicked',
	description:
		'Shows each link of the HTML, the most clicked first. PEOPLE and CLICKS leave out bots such as link scanners; BOTS ' +
		'counts messages in which only a bot followed the link. A URL in several places has a row for each place.',
	args: [campaignArg],
	options: pageOptions,
	columns: linkColumns,
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
		await listRows(cx, options, { columns: linkColumns, rows });
		if (left_out > 0) await cx.note(`${numberText(left_out)} links with fewer clicks are not shown`);
	},
});

const selections: Readonly<Record<'sent' | 'bounced' | 'failed' | 'left-out', readonly string[]>> = {
	sent: ['sent', 'accepted'],
	bounced: ['bounced'],
	failed: ['failed', 'uncertain'],
	'left-out': ['suppressed', 'rejected', 'left_out'],
};

const resultColumns: Columns<ResultLine> = [
	column('line', 'LINE', { align: 'right' }),
	column('to', 'TO', { isName: true }),
	column('state', 'STATE'),
	column('code', 'CODE'),
	column('text', 'TEXT'),
	column('attempts', 'ATTEMPTS', { align: 'right', wide: true }),
	column('id', 'MESSAGE', { wide: true, isWhole: true }),
	column('campaign_unique_id', 'CAMPAIGN', { wide: true, isWhole: true }),
];

const results = command({
	name: 'results',
	summary: 'show the outcome for each recipient of a campaign',
	args: [campaignArg],
	options: {
		only: {
			kind: 'choice',
			choices: ['sent', 'bounced', 'failed', 'left-out'],
			summary: 'filter by outcome; left-out shows who got no message, and why',
		},
		save: { kind: 'path', summary: 'write the results to a CSV file' },
	},
	columns: resultColumns,
	output: 'an array of {"line", "to", "id", "state", "code", "text", "attempts", "campaign_unique_id"}',
	exits: [3],
	examples: [
		'mailctl campaigns results november',
		'mailctl campaigns results november --only bounced --save bounced-november.csv',
	],
	run: async (cx, { args, options: { only, save } }) => {
		const place = await campaignPlace(cx);
		const campaign = await findCampaign(cx, place.campaigns, args.campaign);
		await assertResults(save, { place, id: campaign.id }, '--save');
		async function* lines() {
			for await (const line of resultLines(cx, place, campaign))
				if (only === undefined || selections[only].includes(line.state)) yield line;
		}
		if (save !== undefined && cx.dryRun) await cx.wouldDo(`write ${save}`, { export: save });
		else if (save !== undefined) await writeLines(cx, save, lines());
		else await cx.out.rows(lines(), resultColumns);
	},
});

const longestWaitMs = 10_000;
const pollMs = 200;

const cancel = command({
	name: 'cancel',
	summary: 'cancel a campaign and its unsent messages',
	description:
		'Waits up to 10 s for messages that are being sent, and shows how many may still be sent after that.',
	args: [campaignArg],
	writes: true,
	severity: 'mild',
	columns: detailColumns,
	output: 'the campaign, with the keys of campaigns get',
	exits: [3],
	examples: ['mailctl campaigns cancel november --yes', 'mailctl campaigns cancel november --dry-run'],
	run: async (cx, { args }) => {
		const { campaigns } = await campaignPlace(cx);
		const campaign = await findCampaign(cx, campaigns, args.campaign);
		const { id, key, state, counts } = campaign;
		const look = () => campaigns.status(id, { signal: cx.signal });
		const { messages } = await look();
		const { queued = 0, deferred = 0 } = messages;
		const what =
			state === 'released'
				? `cancel the ${counted(queued + deferred, 'unsent message')} of the campaign "${key}"`
				: `drop the campaign "${key}" and its ${counted(counts.staged, 'staged message')}`;
		if (cx.dryRun && state !== 'canceled')
			return cx.wouldDo(what, { cancel: key, state: campaignState(campaign) });
		const tell = async (sentence: (status: CampaignStatus) => string) => {
			const status = await look();
			// Read the figures again, because they grew during sending.
			const now = state === 'released' ? await findCampaign(cx, campaigns, id) : campaign;
			await cx.out.document(detailOf(now, status), sentence(status));
		};
		if (state === 'released' && openOf(messages) === 0) {
			await cx.note(`nothing to cancel: ${sayOutcomes(messages)}`);
			return tell(({ counts }) => describe(counts));
		}
		if (state === 'canceled') await cx.note(`the campaign "${key}" is canceled already`);
		else {
			await cx.confirm({ kind: 'mild', what });
			await campaigns.cancel(id, { signal: cx.signal });
			// Wait for the workers: each needs up to a second to return messages that it has not begun to send.
			const end = performance.now() + longestWaitMs;
			while (performance.now() < end && openOf((await look()).messages) > 0)
				await delay(pollMs, undefined, { signal: cx.signal });
		}
		await tell(({ messages }) => canceledOf(key, messages));
	},
});

function openOf({ staged = 0, queued = 0, deferred = 0, leased = 0 }: CampaignStatus['messages']): number {
	return staged + queued + deferred + leased;
}

function canceledOf(key: string, messages: CampaignStatus['messages']): string {
	const { canceled = 0, accepted, sent = accepted ?? 0, leased = 0 } = messages;
	if (canceled + sent + leased === 0) return `the campaign "${key}" is dropped; no message was sent`;
	const left = leased > 0 ? `, ${numberText(leased)} may still be sent` : '';
	const had = accepted === undefined ? 'sent' : 'accepted by the service';
	return `${numberText(canceled)} canceled; ${numberText(sent)} had been ${had}${left}`;
}

export const group: CommandGroup = {
	name: 'campaigns',
	summary: 'follow, resume and cancel campaigns',
	examples: [
		'mailctl campaigns list',
		'mailctl campaigns report november',
		'mailctl campaigns results november --only bounced --save bounced-november.csv',
	],
	commands: [list, get, campaignsReport, links, results, campaignsCompare, resume, cancel],
};
