/** The links of a campaign: the targets in its contents, with the clicks on each. */
import type { Call } from '../api/api.js';
import { percentOf } from '../api/counts.js';
import type { Uuid } from '../api/records.js';
import type { CampaignLink, CampaignLinks } from '../api/reports.js';
import type { LinkFigures } from '../store/reports.js';
import { assertWanted, type EngineContext, found } from './context.js';

const maxLinks = 1_000;

/** A link as it is counted: in contents of one campaign that differ, the same target is the same link. */
type Counted = Omit<CampaignLink, 'share'>;

/** Throws `not_found`. */
export async function campaignLinks(
	{ store }: Pick<EngineContext, 'store'>,
	campaign: Uuid,
	call?: Call,
): Promise<CampaignLinks> {
	const { contents, figures } = found(await store.reads.linkFigures({ campaign }));
	// The HTML parser is loaded for this alone.
	const { linkTexts } = await import('../content/link-texts.js');
	const links = new Map<string, Counted>();
	const byPosition = new Map<string, Counted>();
	for (const { sha256, submission } of contents) {
		assertWanted(call?.signal);
		const stored = await store.reads.getSubmission({ id: submission });
		const seen = new Map<string, number>();
		for (const [position, url] of linkTexts(stored?.content.html ?? '').entries()) {
			const nth = (seen.get(url) ?? 0) + 1;
			seen.set(url, nth);
			const link = linkAt(links, `${nth} ${url}`, { url, position });
			byPosition.set(`${sha256} ${position}`, link);
		}
	}
	for (const figure of figures) {
		const { sha256, link: position } = figure;
		const key = `${sha256} ${position}`;
		count(byPosition.get(key) ?? linkAt(links, key, { url: null, position }), figure);
	}
	return listed([...links.values()]);
}

function linkAt(
	links: Map<string, Counted>,
	key: string,
	{ url, position }: { url: string | null; position: number },
): Counted {
	const none = { people: 0, clicks: 0, machine_people: 0, machine_clicks: 0 };
	const link = links.get(key) ?? { url, position: position + 1, ...none };
	links.set(key, link);
	return link;
}

/** What is counted for all is of machines, less what is counted for people. */
function count(link: Counted, { audience, clicks, messages }: LinkFigures['figures'][number]): void {
	const sign = audience === 'all' ? 1 : -1;
	link.machine_clicks += sign * clicks;
	link.machine_people += sign * messages;
	if (audience === 'all') return;
	link.clicks += clicks;
	link.people += messages;
}

function listed(links: readonly Counted[]): CampaignLinks {
	const all = links.reduce((sum, { clicks }) => sum + clicks, 0);
	const sorted = links.toSorted(
		(a, b) => b.clicks - a.clicks || b.machine_clicks - a.machine_clicks || a.position - b.position,
	);
	return {
		results: sorted.slice(0, maxLinks).map((link) => ({ ...link, share: percentOf(link.clicks, all) })),
		left_out: Math.max(0, links.length - maxLinks),
	};
}
