import { parseWireDate } from '../../api/datetime.js';
import { type EventType, hasDays, isCounted, type Report } from '../../api/records.js';
import type { ReportDetails } from '../../api/reports.js';
import { barChart, type ChartDay, type ChartOptions, noEvents, sparkChart } from './chart.js';
import { clean } from './clean.js';
import {
	basesOf,
	type CampaignHead,
	type DetailedReport,
	factsOf,
	renderDetails,
	renderHead,
} from './report-details.js';
import { numberText, shareOf } from './units.js';
import { shorten, wrap } from './width.js';

export type Chart = 'bars' | 'spark' | 'none';

/**
 * Lines without their line ends; every text of the service is cleaned. `title`: null of a report on everything.
 * `events`: those it counts, all without any. `withMachines`: it counts opens and clicks by machines, too; `human`: it
 * leaves them out. `details`: counts and hours of the same messages; `parted`: shown in place of the totals. `head`: of the
 * campaign that it is on.
 */
export function renderReport(
	{ total, data }: Report,
	{
		chart,
		details = null,
		parted = null,
		head = null,
		isOfDays = false,
		zone = null,
		title = null,
		events = [],
		withMachines = false,
		human = false,
		...options
	}: ChartOptions & {
		chart: Chart;
		details?: ReportDetails | null;
		parted?: DetailedReport | null;
		head?: CampaignHead | null;
		isOfDays?: boolean;
		zone?: string | null;
		title?: string | null;
		events?: readonly EventType[];
		withMachines?: boolean;
		human?: boolean;
	},
): string[] {
	const days = parted === null ? daysOf(data) : peopleByDay(parted);
	const [first, last] = [days[0]?.date, days.at(-1)?.date];
	const range = first === undefined ? 'no days' : first === last ? first : `${first} to ${last}`;
	const figures = figuresOf(total, details?.total ?? null, human).filter(({ of }) => isCounted(of, events));
	const pictureOf = (chart: Exclude<Chart, 'none'>) => {
		if (days.every(({ sent, opened }) => sent === 0 && opened === 0)) return [noEvents];
		const filled = days.filter(({ sent, opened }) => sent > 0 || opened > 0);
		// The heading says which days there are: one bar needs no empty ones beside it.
		if (chart === 'bars') return barChart(filled.length === 1 ? filled : days, options);
		return sparkChart(days, options);
	};
	const widest = Math.max(...figures.map(({ figure }) => figure.length), 0);
	const hasShares = figures.some(({ share }) => share !== '') && Number(total.sent) > 0;
	return [
		...(title === null ? [] : [clean(title)]),
		...(head === null ? [] : factsOf(head)).map(([label, text]) =>
			shorten(`  ${label.padEnd(7)}  ${text}`, options.width),
		),
		...headingOf(range, zone, options),
		'',
		...(head === null ? [] : [...renderHead(head, isOfDays, options), '']),
		...(parted === null
			? figures.length === 0
				? [`  no figure of a report counts ${events.join(', ')}`]
				: figures.map(({ label, figure, share }) =>
						`  ${label.padEnd(13)} ${figure.padStart(widest)}  ${share.padStart(8)}`.trimEnd(),
					)
			: renderDetails(parted, options)),
		...(parted === null && hasShares
			? ['', ...wrap(basesOf(Number(total.sent), details?.total.attempted ?? null), options.width)]
			: []),
		...(withMachines && parted === null && Number(total.opened) > 0 && mayCountMachines(details)
			? ['', ...wrap('these opens and clicks are by machines, too: --human leaves them out', options.width)]
			: []),
		...(chart === 'none' || !hasDays(events) ? [] : ['', ...pictureOf(chart)]),
	];
}

/** A service that tells no details may have counted some. */
function mayCountMachines(details: ReportDetails | null): boolean {
	return details === null || details.total.machine_opened + details.total.machine_clicked > 0;
}

/** Label, count and share. A service that tells no details tells no count of the rest either. */
function figuresOf(
	total: Report['total'],
	all: ReportDetails['total'] | null,
	human: boolean,
): { of: keyof Report['total']; label: string; figure: string; share: string }[] {
	const clicked = all && all.clicked + (human ? 0 : all.machine_clicked);
	const told = (figure: number | undefined | null) => (figure == null ? '' : count(figure));
	const line = (of: keyof Report['total'], label: string, figure: string) => {
		return { of, label, figure, share: of === 'sent' ? '' : shareOf(total[of]) };
	};
	return [
		line('sent', 'sent', count(total.sent)),
		line('opened_percent', 'opened', count(total.opened)),
		line('redirected_percent', 'clicked', told(clicked)),
		line('unsubscribed_percent', 'unsubscribed', told(all?.unsubscribed)),
		line('softbounced_percent', 'soft bounces', told(all?.softbounced)),
		line('hardbounced_percent', 'hard bounces', told(all?.hardbounced)),
	];
}

/** `zone`: of the days; null where the service does not tell it. */
function headingOf(range: string, zone: string | null, { width }: ChartOptions): string[] {
	if (zone === null) return [range];
	const named = `(${clean(zone)})`;
	return range.length + 1 + named.length <= width ? [`${range} ${named}`] : [range, named];
}

function daysOf(data: Report['data']): ChartDay[] {
	return data.map(({ date, sent, opened }) => ({
		date: dayText(date),
		sent: Number(sent),
		opened: Number(opened),
	}));
}

/** A day as every table shows it; the wire's own form is for programs. */
export function dayText(date: unknown): string {
	const text = String(date);
	return parseWireDate(text) ?? clean(text);
}

/** The days of the report count opens by machines too; beside figures of people the picture is of people. */
function peopleByDay({ details: { days } }: DetailedReport): ChartDay[] {
	return days.map(({ date, sent, opened }) => ({ date, sent, opened }));
}

function count(value: unknown): string {
	return numberText(Number(value));
}
