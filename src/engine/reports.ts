import type { Call } from '../api/api.js';
import { percentOf } from '../api/counts.js';
import {
	addDays,
	type Clock,
	type Day,
	dayOf,
	daysBetween,
	formatWireDate,
	microsPerMs,
} from '../api/datetime.js';
import type { EventType, Report, ReportQuery, ReportTotal, Uuid } from '../api/records.js';
import {
	type CampaignLink,
	type CampaignLinks,
	type CheckedReport,
	type DetailsQuery,
	type Figures,
	type Joined,
	type ListGrowth,
	parseReportQuery,
	type ReportDetails,
	type ReportsPlus,
} from '../api/reports.js';
import type {
	DetailFigures,
	LinkFigures,
	ListFigures,
	ReportFigures,
	Store,
	TypedCount,
} from '../store/store.js';
import { assertWanted, checked, type EngineContext, found } from './context.js';
import { readSettings } from './settings.js';

interface ReportView {
	tag?: string;
	human?: boolean;
}

/**
 * Service document, "Events report". Includes the first and the last day, in the database's time zone, and days without
 * events.
 */
export async function createReport({ store, clock }: EngineContext, query: ReportQuery): Promise<Report> {
	const { timeZone } = await readSettings(store);
	const asked = checked(parseReportQuery(query, today(clock, timeZone)));
	return reportOf(store, { ...asked, view: {} });
}

export function createReports(context: EngineContext): ReportsPlus {
	return {
		report: async (query) => reportOf(context.store, { ...(await rangeOfOurs(context, query)), view: query }),
		details: (query) => reportDetails(context, query),
		links: (campaign, call) => campaignLinks(context, campaign, call),
	};
}

/** Throws `not_found` for an unknown campaign, although the service document asks for zeros (api-decisions 36). */
async function rangeOfOurs({ store, clock }: EngineContext, query: ReportQuery): Promise<CheckedReport> {
	const { timeZone } = await readSettings(store);
	const asked = checked(parseReportQuery(query, today(clock, timeZone)));
	const { campaign, hasDates } = asked;
	const life = campaign === null ? null : found(await store.reads.campaignLife({ campaign }));
	return { ...asked, ...(!hasDates && life?.days) };
}

async function reportDetails(context: EngineContext, query: DetailsQuery): Promise<ReportDetails> {
	const { from, to, campaign } = await rangeOfOurs(context, query);
	const lists = query.lists ?? false;
	const figures = await context.store.reads.reportDetails({ from, to, campaign, lists });
	return detailsOf(figures, { from, to, days: eachDay(from, to) });
}

async function reportOf(
	store: Pick<Store, 'reads'>,
	{ from, to, campaign, types, view }: CheckedReport & { view: ReportView },
): Promise<Report> {
	const { daily, attempted } = await store.reads.reportFigures({
		from,
		to,
		campaign,
		tag: view.tag ?? null,
		human: view.human ?? false,
	});
	const byDay = new Map<Day, Partial<Record<EventType, number>>>();
	for (const { day, type, count } of daily) byDay.set(day, { ...byDay.get(day), [type]: count });
	const shown = (type: EventType, count: number) => (types.includes(type) ? count : 0);
	return {
		total: totals({ daily, attempted }, types),
		data: eachDay(from, to).map((day) => {
			const counts = byDay.get(day);
			return {
				date: formatWireDate(day),
				opened: shown('OPENED', counts?.OPENED ?? 0),
				sent: shown('SENT', counts?.SENT ?? 0),
			};
		}),
	};
}

function today(clock: Clock, timeZone: string): Day {
	return dayOf(clock.now(), timeZone);
}

// Percentages are shares of all sent or attempted messages, even if `types` omits `SENT`.
function totals({ daily, attempted }: ReportFigures, types: readonly EventType[]): ReportTotal {
	const sum: Record<EventType, number> = {
		CREATED: 0,
		SENT: 0,
		OPENED: 0,
		REDIRECTED: 0,
		UNSUBSCRIBED: 0,
		SOFTBOUNCED: 0,
		HARDBOUNCED: 0,
	};
	for (const { type, count } of daily) sum[type] += count;
	const share = (type: EventType, base: number) => (types.includes(type) ? percentOf(sum[type], base) : 0);
	return {
		sent: types.includes('SENT') ? sum.SENT : 0,
		opened: types.includes('OPENED') ? sum.OPENED : 0,
		opened_percent: String(share('OPENED', sum.SENT)),
		redirected_percent: share('REDIRECTED', sum.SENT),
		softbounced_percent: share('SOFTBOUNCED', attempted),
		unsubscribed_percent: share('UNSUBSCRIBED', sum.SENT),
		hardbounced_percent: share('HARDBOUNCED', attempted),
	};
}

function eachDay(from: Day, to: Day): Day[] {
	// Loop over a count, because 9999-12-31 has no next day.
	return Array.from({ length: daysBetween(from, to) + 1 }, (_, at) => addDays(from, at));
}

function detailsOf(
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
			date: `${new Date((hour * 3_600_000_000) / microsPerMs).toISOString().slice(0, 13)}:00`,
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

function between(numbers: readonly number[]): number[] {
	if (numbers.length === 0) return [];
	const first = Math.min(...numbers);
	return Array.from({ length: Math.max(...numbers) - first + 1 }, (_, index) => first + index);
}

/** If a bot opens a message one day and a person opens it later, both days count the message. */
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

const maxLinks = 1_000;

type Counted = Omit<CampaignLink, 'share'>;

async function campaignLinks(
	{ store }: Pick<EngineContext, 'store'>,
	campaign: Uuid,
	call?: Call,
): Promise<CampaignLinks> {
	const { contents, figures } = found(await store.reads.linkFigures({ campaign }));
	const { linkTexts } = await import('../content/links.js');
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
