/** The events report: daily figures into the document's shape. */
import { addDays, type Clock, dayOf, formatWireDate } from '../api/datetime.js';
import type { EventType, Report, ReportQuery, ReportTotal } from '../api/records.js';
import { reportQuery } from '../api/reports.js';
import type { Day } from '../store/store.js';
import { checked, type EngineContext } from './context.js';
import { readSettings } from './settings.js';

/** What the document lacks; ours. */
export interface ReportView {
	tag?: string;
	/** Opens and clicks made by machines are left out. */
	human?: boolean;
}

/** Service document, "Events report". Days are those of the database's time zone, both ends inclusive, zero-filled. */
export async function createReport(
	{ store, clock }: EngineContext,
	query: ReportQuery & ReportView,
): Promise<Report> {
	const { timeZone } = await readSettings(store);
	const { from, to, campaign, types } = checked(reportQuery.parse(query, today(clock, timeZone)));
	const figures = await store.reads.reportFigures({
		from,
		to,
		campaign,
		tag: query.tag ?? null,
		human: query.human ?? false,
	});
	const byDay = new Map<Day, Partial<Record<EventType, number>>>();
	for (const { day, type, count } of figures) byDay.set(day, { ...byDay.get(day), [type]: count });
	const shown = (type: EventType, count: number) => (types.includes(type) ? count : 0);
	return {
		total: totals(figures, types),
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

// A type that was not asked for shows 0, but percentages are still of the mails really sent.
function totals(
	figures: readonly { type: EventType; count: number }[],
	types: readonly EventType[],
): ReportTotal {
	const sum: Record<EventType, number> = {
		CREATED: 0,
		SENT: 0,
		OPENED: 0,
		REDIRECTED: 0,
		UNSUBSCRIBED: 0,
		SOFTBOUNCED: 0,
		HARDBOUNCED: 0,
	};
	for (const { type, count } of figures) sum[type] += count;
	const percent = (type: EventType) => (types.includes(type) ? percentOf(sum[type], sum.SENT) : 0);
	return {
		sent: types.includes('SENT') ? sum.SENT : 0,
		opened: types.includes('OPENED') ? sum.OPENED : 0,
		opened_percent: String(percent('OPENED')),
		redirected_percent: percent('REDIRECTED'),
		softbounced_percent: percent('SOFTBOUNCED'),
		unsubscribed_percent: percent('UNSUBSCRIBED'),
		hardbounced_percent: percent('HARDBOUNCED'),
	};
}

/** round(100 × part / whole, 2); 0 when nothing was sent. */
function percentOf(part: number, whole: number): number {
	return whole === 0 ? 0 : Math.round((10_000 * part) / whole) / 100;
}

function eachDay(from: Day, to: Day): Day[] {
	const days: Day[] = [];
	for (let day = from; day <= to; day = addDays(day, 1)) days.push(day);
	return days;
}
