import type { Call } from '../../../api/api.js';
import type { Campaign, Campaigns } from '../../../api/campaigns.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { didYouMean } from '../../frame/help.js';
import type { Times } from '../../render/times.js';
import { counted, numberText } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { isUuid } from '../../verbs/resolve.js';

export const campaignArg = {
	name: 'campaign',
	summary: 'its name or UUID',
	of: 'campaign',
	ask: 'Which campaign:',
} as const;

export async function lookUpCampaign(
	campaigns: Pick<Campaigns, 'page'>,
	text: string,
	call: Call = {},
): Promise<Campaign | undefined> {
	const filter = isUuid(text) ? { id: text.toLowerCase() } : { key: text };
	const { results } = await campaigns.page({ ...filter, page_size: 1 }, call);
	return results.find(({ id, key }) => id === filter.id || key === filter.key);
}

export async function findCampaign(
	cx: CommandContext,
	campaigns: Campaigns,
	text: string,
): Promise<Campaign> {
	const found = await lookUpCampaign(campaigns, text, { signal: cx.signal });
	if (found !== undefined) return found;
	const request = { ordering: '-date_created', page_size: mostNames } as const;
	const { results } = await campaigns.page(request, { signal: cx.signal });
	const near = isUuid(text)
		? null
		: didYouMean(
				text,
				results.map(({ key }) => key),
			);
	throw new CliError('not_found', exits.notFound, `campaign "${text}" not found`, {
		hint: near ?? mailctl('campaigns', 'list'),
	});
}

const mostNames = 1_000;

/** The only unfinished campaign; of several a person chooses one, and a script gets their names (exit 2). */
export async function chooseUnfinished(cx: CommandContext, campaigns: Campaigns): Promise<Campaign> {
	const found: Campaign[] = [];
	for (const state of ['sending', 'staged'] as const)
		for await (const one of walk(campaigns, { state, ordering: '-date_created' } as const, {
			signal: cx.signal,
		}))
			found.push(one);
	const [only, ...others] = found;
	if (only === undefined)
		throw new CliError('not_found', exits.notFound, 'no campaign is unfinished', {
			hint: mailctl('campaigns', 'list'),
		});
	if (others.length === 0) return only;
	if (!cx.canAsk)
		throw new UsageError(`${numberText(found.length)} campaigns are unfinished; give the name of one`, {
			details: found.map((one) => described(one, cx.times)),
		});
	return cx.choose(
		'Which one?',
		found.map((value) => ({ name: described(value, cx.times), value })),
	);
}

function described({ key, state, counts, date_released, date_created }: Campaign, times: Times): string {
	const what = state === 'staged' ? 'staged' : 'sending';
	const when = times.moment(date_released ?? date_created);
	return `${key} (${what}, ${counted(counts.staged, 'message')}, ${when})`;
}
