/** `subscribers stats`: the composition of a list, by a walk over it that any deployment allows. */
import type { List } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { type Columns, column } from '../../render/columns.js';
import { shareText } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { inList, listOption } from './lookup.js';
import { createTally, type ListStats, type StatsTally } from './tally.js';
import { walkSubscribers } from './walk.js';

/** A figure as a row. */
interface Figure {
	what: string;
	name: string;
	count: number;
	/** Share of all subscribers; empty where it has no meaning. */
	share: string;
}

const columns: Columns<Figure> = [
	column('what', 'WHAT'),
	column('name', 'NAME', { isName: true }),
	column('count', 'COUNT', { align: 'right', isCount: true }),
	column('share', 'SHARE', { align: 'right' }),
];

export const subscriberStats = command({
	name: 'stats',
	summary: 'what a list is made of',
	description:
		'Reads the whole list: states and reasons, sources, who was added in the last 30 days (UTC), the ten largest ' +
		'domains, how many have each field.',
	options: listOption,
	output:
		'{"list_id", "name", "total", "active", "inactive", "verified", "reasons", "sources", "added", "domains", "fields"}',
	exits: [3],
	examples: ['mailctl subscribers stats -l 12', 'mailctl subscribers stats -l 12 -o json'],
	run: async (cx, { options }) => {
		const { list } = await inList(cx, options);
		const stats = await statsOf(cx, list);
		const { format } = cx.out;
		if (format === 'json' || format === 'ndjson') await cx.out.document(stats);
		else await cx.out.rows(figuresOf(stats), columns, { all: true });
	},
});

async function statsOf(cx: CommandContext, list: List): Promise<ListStats> {
	const api = await cx.api();
	const variables: string[] = [];
	for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) variables.push(variable);
	const tally: StatsTally = createTally({ list, variables, now: cx.clock.now() });
	const progress = cx.progress('reading', list.overall_subscribers_count);
	try {
		for await (const piece of walkSubscribers(cx, list, {})) {
			for (const person of piece) tally.add(person);
			progress.update(tally.count());
		}
	} finally {
		progress.stop();
	}
	return tally.stats();
}

function figuresOf(stats: ListStats): Figure[] {
	const figure = (what: string, name: string, count: number): Figure => {
		const share = stats.total === 0 ? '' : shareText((100 * count) / stats.total);
		return { what, name, count, share };
	};
	return [
		figure('people', 'all', stats.total),
		figure('people', 'active', stats.active),
		figure('people', 'inactive', stats.inactive),
		figure('people', 'verified', stats.verified),
		...Object.entries(stats.reasons).map(([name, count]) => figure('inactive', name, count)),
		...Object.entries(stats.sources).map(([name, count]) => figure('source', name, count)),
		figure('added', 'last 7 days', stats.added.last_7_days),
		figure('added', 'last 30 days', stats.added.last_30_days),
		...stats.added.days
			.filter(({ count }) => count > 0)
			.map(({ date, count }) => figure('added', date, count)),
		...stats.domains.map(({ domain, count }) => figure('domain', domain, count)),
		...stats.fields.map(({ variable, filled }) => figure('field', variable, filled)),
	];
}
