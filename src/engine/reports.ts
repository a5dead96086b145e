/** The events report: daily figures in the document's shape. */
import { percentOf } from '../api/counts.js';
import { addDays, type Clock, dayOf, daysBetween, formatWireDate } from '../api/datetime.js';
import type { EventType, Report, ReportQuery, ReportTotal } from '../api/records.js';
import {
	type CheckedReport,
	type DetailsQuery,
	type ReportDetails,
	type ReportsPlus,
	reportQuery,
} from '../api/reports.js';
import type { ReportFigures } from '../store/reports.js';
import type { Day, Store } from '../store/store.js';
import { campaignLinks } from './campaign-links.js';
import { checked, type EngineContext, found } from './context.js';
import { detailsOf } from './report-details.js';
import { readSettings } from './settings.js';

/** Our extension of the document. */
export interface ReportView {
	tag?: string;
	/** Leaves out opens and clicks by machines. */
	human?: boolean;
}

/** Service document, "Events report". Days are those of the database's time zone, both ends inclusive, zero-filled. */
export async function createReport({ store, clock }: EngineContext, query: ReportQuery): Promise<Report> {
	const { timeZone } = await readSettings(store);
	const asked = checked(reportQuery.parse(query, today(clock, timeZone)));
	return reportOf(store, { ...asked, view: {} });
}

/** Reports beyond the document. */
export function createReports(context: EngineContext): ReportsPlus {
	return {
		report: (query) => createReportOfOurs(context, query),
		details: (query) => reportDetails(context, query),
		links: (campaign, call) => campaignLinks(context, campaign, call),
	};
}

/**
 * The same with our extensions: a campaign without dates is covered from its first day to its last, however long. A
 * campaign that does not exist is `not_found`, where the document's report gives zeros (api-decisions 36).
 */
async function createReportOfOurs(context: EngineContext, query: ReportQuery & ReportView): Promise<Report> {
	return reportOf(context.store, { ...(await rangeOfOurs(context, query)), view: query });
}

async function rangeOfOurs({ store, clock }: EngineContext, query: ReportQuery): Promise<CheckedReport> {
	const { timeZone } = await readSettings(store);
	const asked = checked(reportQuery.parse(query, today(clock, timeZone)));
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

// A type that was not requested shows 0, but percentages are still of all messages sent or attempted.
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
	// By their number: behind 9999-12-31 there is none.
	return Array.from({ length: daysBetween(from, to) + 1 }, (_, at) => addDays(from, at));
}
