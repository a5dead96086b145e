/** The details of a report in the shape of the API, from figures of the store. */
import { type Day, microsPerMs } from '../api/datetime.js';
import type { Figures, Joined, ListGrowth, ReportDetails } from '../api/reports.js';
import type { DetailFigures, ListFigures, TypedCount } from '../store/reports.js';

/** Days of the range are zero-filled. */
export function detailsOf(
	figures: DetailFigures,
	{ from, to, days }: { from: Day; to: Day; days: readonly Day[] },
): ReportDetails {
	const { time_zone, bounced, neverSent, domains, other_domains, codes } = figures;
	const byDay = grouped(figures.days, ({ day }) => day);
	const byHour = grouped(figures.hours, ({ hour }) => hour);
	const byWeek = grouped(figures.week, ({ hour }) => hour);
	const total = sumOf(figures.days);
	const attempted = total.sent + neverSent;
	return {
		from,
		to,
		time_zone,
		total: { ...total, attempted, delivered: Math.max(0, attempted - bounced) },
		days: days.map((date) => ({ date, ...sumOf(byDay.get(date) ?? []) })),
		hours: between([...byHour.keys()]).map((hour) => ({
			date: hourText(hour),
			...sumOf(byHour.get(hour) ?? []),
		})),
		week: [...byWeek.keys()]
			.sort((a, b) => a - b)
			.map((hour) => ({
				weekday: Math.floor(hour / 24) + 1,
				hour: hour % 24,
				...sumOf(byWeek.get(hour) ?? []),
			})),
		bounces: { domains, other_domains, codes },
		...(figures.lists !== null && { lists: figures.lists.map((list) => growthOf(list, days)) }),
	};
}

function growthOf({ id, name, active, days: changes }: ListFigures, days: readonly Day[]): ListGrowth {
	const byDay = new Map(days.map((date) => [date, joined()]));
	const all = joined();
	for (const { day, kind, count } of changes) {
		const sums = byDay.get(day);
		if (sums !== undefined) sums[kind] += count;
		all[kind] += count;
	}
	return { id, name, active, ...all, days: [...byDay].map(([date, sums]) => ({ date, ...sums })) };
}

function joined(): Joined {
	return { added: 0, unsubscribed: 0, bounced: 0, left: 0 };
}

function grouped<T extends TypedCount, K>(counts: readonly T[], keyOf: (count: T) => K): Map<K, T[]> {
	const groups = new Map<K, T[]>();
	for (const count of counts) {
		const group = groups.get(keyOf(count));
		if (group === undefined) groups.set(keyOf(count), [count]);
		else group.push(count);
	}
	return groups;
}

/** All numbers from the least to the greatest. */
function between(numbers: readonly number[]): number[] {
	if (numbers.length === 0) return [];
	const first = Math.min(...numbers);
	return Array.from({ length: Math.max(...numbers) - first + 1 }, (_, index) => first + index);
}

function hourText(hour: number): string {
	return `${new Date((hour * 3_600_000_000) / microsPerMs).toISOString().slice(0, 13)}:00`;
}

/**
 * A message that a machine opened on one day and a person on a later one counts on both: then fewer than none are left to
 * machines on the later day.
 */
function sumOf(counts: readonly TypedCount[]): Figures {
	const sum = (type: TypedCount['type'], audience: TypedCount['audience'] = 'all') =>
		counts.reduce((all, one) => (one.type === type && one.audience === audience ? all + one.count : all), 0);
	return {
		created: sum('CREATED'),
		sent: sum('SENT'),
		opened: sum('OPENED', 'human'),
		machine_opened: Math.max(0, sum('OPENED') - sum('OPENED', 'human')),
		clicked: sum('REDIRECTED', 'human'),
		machine_clicked: Math.max(0, sum('REDIRECTED') - sum('REDIRECTED', 'human')),
		unsubscribed: sum('UNSUBSCRIBED'),
		softbounced: sum('SOFTBOUNCED'),
		hardbounced: sum('HARDBOUNCED'),
		complained: sum('COMPLAINED'),
	};
}
