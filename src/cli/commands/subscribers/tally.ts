/** The figures of a list, one subscriber after the other, in bounded memory. Pure. */
import { formatDateTime, type Micros, microsPerDay } from '../../../api/datetime.js';
import type { List, Subscriber } from '../../../api/records.js';

/** The output of `subscribers stats -o json`. */
export interface ListStats {
	list_id: number;
	name: string;
	total: number;
	active: number;
	inactive: number;
	verified: number;
	reasons: Record<string, number>;
	/** The most frequent first. */
	sources: Record<string, number>;
	/** By the day of UTC; `days` are the last 30, today the last. */
	added: { last_7_days: number; last_30_days: number; days: { date: string; count: number }[] };
	/** The ten largest; estimated when a list has very many. */
	domains: { domain: string; count: number }[];
	/** Subscribers with a value that is neither null nor empty. */
	fields: { variable: string; filled: number }[];
}

export interface StatsTally {
	add(person: Subscriber): void;
	/** Subscribers added so far. */
	count(): number;
	stats(): ListStats;
}

/** A list may have a domain for each subscriber: beyond this number, the oldest of those seen once are dropped. */
const maxDomains = 50_000;
const shownDomains = 10;
const shownDays = 30;

export function createTally(options: { list: List; variables: readonly string[]; now: Micros }): StatsTally {
	const { list, variables, now } = options;
	const totals = { total: 0, active: 0, verified: 0 };
	const [reasons, sources, domains] = [new Map<string, number>(), new Map(), new Map()];
	const filled = new Map(variables.map((variable) => [variable, 0]));
	const days = new Map(lastDays(now).map((date) => [date, 0]));
	return {
		add: (person) => {
			totals.total += 1;
			if (person.is_active) totals.active += 1;
			else increase(reasons, person.disable_reason ?? 'none');
			if (person.is_email_verified) totals.verified += 1;
			increase(sources, String(person.source ?? 'unknown'));
			const day = String(person.date_created).slice(0, 10);
			if (days.has(day)) increase(days, day);
			increase(domains, domainOf(person.email));
			if (domains.size > maxDomains) forgetRare(domains);
			for (const [variable, value] of Object.entries(person.meta)) {
				if (filled.has(variable) && value !== null && value !== '') increase(filled, variable);
			}
		},
		count: () => totals.total,
		stats: () => ({
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

function domainOf(email: string): string {
	return email.slice(email.lastIndexOf('@') + 1).toLowerCase();
}

// A domain among the ten largest comes again and again: it is rare for a moment only.
function forgetRare(counts: Map<string, number>): void {
	for (let most = 1; counts.size > maxDomains / 2; most *= 2) {
		for (const [key, count] of counts) {
			if (count <= most) counts.delete(key);
			if (counts.size <= maxDomains / 2) return;
		}
	}
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
