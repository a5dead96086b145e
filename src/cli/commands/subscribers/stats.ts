import { domainOf } from '../../../api/address.js';
import { formatDateTime, type Micros, microsPerDay } from '../../../api/datetime.js';
import type { List, Subscriber } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { type Columns, column } from '../../render/columns.js';
import { shareText } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { inList, listOption } from './lookup.js';
import { walkSubscribers } from './walk.js';

interface Figure {
	what: string;
	name: string;
	count: number;
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
	summary: 'summarize a list',
	description:
		'Reads the whole list: states and reasons, sources, subscribers added in the last 30 days (UTC), the ten largest ' +
		'domains, and how many subscribers have each field.',
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
	const tally = createTally(list, variables, cx.clock.now());
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
		...(['active', 'inactive', 'verified'] as const).map((name) => figure('people', name, stats[name])),
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

interface ListStats {
	list_id: number;
	name: string;
	total: number;
	active: number;
	inactive: number;
	verified: number;
	reasons: Record<string, number>;
	sources: Record<string, number>;
	added: { last_7_days: number; last_30_days: number; days: { date: string; count: number }[] };
	domains: { domain: string; count: number }[];
	fields: { variable: string; filled: number }[];
}

const shownDomains = 10;
const shownDays = 30;

function createTally(list: List, variables: readonly string[], now: Micros) {
	const totals = { total: 0, active: 0, verified: 0 };
	const [reasons, sources, domains] = [new Map<string, number>(), new Map(), new Map()];
	const filled = new Map(variables.map((variable) => [variable, 0]));
	const days = new Map(lastDays(now).map((date) => [date, 0]));
	return {
		add: (person: Subscriber) => {
			totals.total += 1;
			if (person.is_active) totals.active += 1;
			else increase(reasons, person.disable_reason ?? 'none');
			if (person.is_email_verified) totals.verified += 1;
			increase(sources, String(person.source ?? 'unknown'));
			const day = String(person.date_created).slice(0, 10);
			if (days.has(day)) increase(days, day);
			increase(domains, domainOf(person.email));
			for (const [variable, value] of Object.entries(person.meta)) {
				if (filled.has(variable) && value !== null && value !== '') increase(filled, variable);
			}
		},
		count: () => totals.total,
		stats: (): ListStats => ({
			list_id: list.id,
			name: list.name,
			...totals,
			inactive: totals.total - totals.active,
			reasons: Object.fromEntries(sorted(reasons)),
			sources: Object.fromEntries(sorted(sources)),
			added: addedOf(days),
			domains: sorted(domains)
				.slice(0, shownDomains)
				.map(([domain, count]) => ({ domain, count })),
			fields: [...filled].map(([variable, count]) => ({ variable, filled: count })),
		}),
	};
}

function increase(counts: Map<string, number>, key: string): void {
	counts.set(key, (counts.get(key) ?? 0) + 1);
}

function sorted(counts: ReadonlyMap<string, number>): [string, number][] {
	return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}

function lastDays(now: Micros): string[] {
	return Array.from({ length: shownDays }, (_, at) =>
		formatDateTime(now - (shownDays - 1 - at) * microsPerDay).slice(0, 10),
	);
}

function addedOf(counts: ReadonlyMap<string, number>): ListStats['added'] {
	const days = [...counts].map(([date, count]) => ({ date, count }));
	const sum = (some: typeof days) => some.reduce((total, { count }) => total + count, 0);
	return { last_7_days: sum(days.slice(-7)), last_30_days: sum(days), days };
}
