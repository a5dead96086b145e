import { domainOf } from '../../../api/address.js';
import { formatDateTime, type Micros, microsPerDay } from '../../../api/datetime.js';
import type { Field, List, Subscriber } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import { type Columns, column } from '../../render/columns.js';
import { shareText } from '../../render/units.js';
import { readFields } from '../../verbs/field-names.js';
import { inList, listOption, walkSubscribers } from './lookup.js';

type Figure = ReturnType<typeof figuresOf>[number];

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
		const tally = new Tally(await readFields(cx), cx.clock.now());
		const progress = cx.progress('reading', list.overall_subscribers_count);
		try {
			for await (const piece of walkSubscribers(cx, list, {})) {
				for (const person of piece) tally.add(person);
				progress.update(tally.total);
			}
		} finally {
			progress.stop();
		}
		const stats = tally.stats(list);
		const { format } = cx.out;
		if (format === 'json' || format === 'ndjson') await cx.out.document(stats);
		else await cx.out.rows(figuresOf(stats), columns, { all: true });
	},
});

function figuresOf(stats: ListStats) {
	const figure = (what: string, name: string, count: number) => {
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

type ListStats = ReturnType<Tally['stats']>;

const shownDomains = 10;
const shownDays = 30;

class Tally {
	total = 0;
	#active = 0;
	#verified = 0;
	readonly #reasons = new Map<string, number>();
	readonly #sources = new Map<string, number>();
	readonly #domains = new Map<string, number>();
	readonly #filled: Map<string, number>;
	readonly #days: Map<string, number>;

	constructor(fields: readonly Field[], now: Micros) {
		this.#filled = new Map(fields.map(({ variable }) => [variable, 0]));
		const start = now - (shownDays - 1) * microsPerDay;
		const day = (at: number) => formatDateTime(start + at * microsPerDay).slice(0, 10);
		this.#days = new Map(Array.from({ length: shownDays }, (_, at) => [day(at), 0]));
	}

	add({ is_active, disable_reason, is_email_verified, source, date_created, email, meta }: Subscriber): void {
		this.total += 1;
		if (is_active) this.#active += 1;
		else increase(this.#reasons, disable_reason ?? 'none');
		if (is_email_verified) this.#verified += 1;
		increase(this.#sources, String(source ?? 'unknown'));
		const day = String(date_created).slice(0, 10);
		if (this.#days.has(day)) increase(this.#days, day);
		increase(this.#domains, domainOf(email));
		for (const [variable, value] of Object.entries(meta))
			if (this.#filled.has(variable) && value !== null && value !== '') increase(this.#filled, variable);
	}

	stats({ id, name }: List) {
		const [total, active, verified] = [this.total, this.#active, this.#verified];
		const days = [...this.#days].map(([date, count]) => ({ date, count }));
		const sum = (some: typeof days) => some.reduce((sum, { count }) => sum + count, 0);
		const domains = sorted(this.#domains).slice(0, shownDomains);
		return {
			...{ list_id: id, name, total, active, verified, inactive: total - active },
			reasons: Object.fromEntries(sorted(this.#reasons)),
			sources: Object.fromEntries(sorted(this.#sources)),
			added: { last_7_days: sum(days.slice(-7)), last_30_days: sum(days), days },
			domains: domains.map(([domain, count]) => ({ domain, count })),
			fields: [...this.#filled].map(([variable, filled]) => ({ variable, filled })),
		};
	}
}

function increase(counts: Map<string, number>, key: string): void {
	counts.set(key, (counts.get(key) ?? 0) + 1);
}

function sorted(counts: ReadonlyMap<string, number>): [string, number][] {
	return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}
