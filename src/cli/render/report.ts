import { parseWireDate } from '../../api/datetime.js';
import { type EventType, hasDays, type Report } from '../../api/records.js';
import type { ReportDetails } from '../../api/reports.js';
import { barChart, type ChartDay, type ChartOptions, noEvents, sparkChart, sparkLines } from './chart.js';
import { clean } from './clean.js';
import {
	type CampaignHead,
	type DetailedReport,
	detailedTotals,
	factsOf,
	numberColumns,
	outcomesOf,
	type ReportTable,
	recipientsTitle,
	type TotalLine,
	tablesOf,
	totalsOf,
} from './report-model.js';
import { numberText } from './units.js';
import { pad, shorten, widthOf, wrap } from './width.js';

export interface ReportPage {
	report: Report;
	chart: 'bars' | 'spark' | 'none';
	title: string | null;
	head: CampaignHead | null;
	events: readonly EventType[];
	human: boolean;
	isOfDays: boolean;
	zone: string | null;
	details: ReportDetails | null;
	parted: DetailedReport | null;
}

export function renderReport(page: ReportPage, options: ChartOptions): string[] {
	const { report, chart, events, human, zone, details, parted } = page;
	const { total, data } = report;
	const { width } = options;
	// The days of a report count bots; a picture beside figures of people shows people.
	const days: readonly ChartDay[] =
		parted?.details.days ??
		data.map(({ date, sent, opened }) => ({
			...{ date: dayText(date), sent: Number(sent), opened: Number(opened) },
		}));
	const lines = headLines(page, days, width);
	const all = details?.total ?? null;
	const totals = parted === null ? totalsOf(total, { events, all, human }) : detailedTotals(parted.details);
	lines.push(
		...(totals.length === 0
			? [`  no figure of a report counts ${events.join(', ')}`]
			: totalLines(totals, parted !== null, width)),
	);
	const counts = parted?.details.total ?? all;
	const sent = counts?.sent ?? Number(total.sent);
	if (sent > 0 && totals.some(({ share }) => share !== null)) {
		const ofSent = `of ${numberText(sent)} sent`;
		const bases =
			counts === null
				? `shares are ${ofSent}`
				: `shares of deliveries and bounces are of ${numberText(counts.attempted)} attempted, others ${ofSent}`;
		lines.push('', ...wrap(bases, width));
	}
	if (parted !== null) {
		for (const table of tablesOf(parted)) lines.push(...tableLines(table, width));
		lines.push(...hourLines(parted.details, options));
	}
	const byMachines = all === null || all.machine_opened + all.machine_clicked > 0;
	// A service that tells no zone is not ours, and may count machines or not.
	if (parted === null && zone !== null && !human && Number(total.opened) > 0 && byMachines)
		lines.push('', ...wrap('opens and clicks include those of bots: --human leaves them out', width));
	if (chart !== 'none' && hasDays(events)) lines.push('', ...pictureOf(chart, days, options));
	return lines;
}

function headLines(
	{ title, head, zone, isOfDays }: ReportPage,
	days: readonly ChartDay[],
	width: number,
): string[] {
	const lines = title === null ? [] : [clean(title)];
	for (const [label, text] of head === null ? [] : factsOf(head))
		lines.push(shorten(`  ${label.padEnd(7)}  ${text}`, width));
	lines.push(...headingOf(days, zone, width), '');
	if (head === null) return lines;
	const counts = outcomesOf(head).map(([label, count]) => [`  ${label}`, numberText(count)]);
	const all = [recipientsTitle(isOfDays), numberText(head.recipients.total)];
	return [...lines, ...layOut([all, ...counts], [false, true], width), ''];
}

function headingOf(days: readonly ChartDay[], zone: string | null, width: number): string[] {
	const [first, last] = [days[0]?.date, days.at(-1)?.date];
	const range = first === undefined ? 'no days' : first === last ? first : `${first} to ${last}`;
	if (zone === null) return [range];
	const named = `(${clean(zone)})`;
	return range.length + 1 + named.length <= width ? [`${range} ${named}`] : [range, named];
}

function totalLines(totals: readonly TotalLine[], hasMachines: boolean, width: number): string[] {
	const textOf = (count: number | null) => (count === null ? '' : numberText(count));
	const rows = totals.map(({ name, count, share, machines }) => [
		...[name, textOf(count), share ?? ''],
		...(hasMachines ? [textOf(machines)] : []),
	]);
	return hasMachines
		? layOut([['', 'PEOPLE', '', 'MACHINES'], ...rows], [false, true, true, true], width)
		: layOut(rows, [false, true, true], width);
}

const mostRows = 10;

/** Numbers stand before texts, so that the last text alone gives way on a narrow terminal. */
function tableLines(table: ReportTable, width: number): string[] {
	const { title, header, rows, others = 0 } = table;
	const told = rows.filter((row) => row.some((cell) => typeof cell === 'number' && cell > 0));
	if (told.length === 0) return [];
	const isNumber = numberColumns(table);
	const order = header.map((_, at) => at).sort((a, b) => Number(isNumber[b]) - Number(isNumber[a]));
	const cells = [header.map((name) => name.toUpperCase()), ...told.slice(0, mostRows)].map((row) =>
		order.map((at) => (typeof row[at] === 'number' ? numberText(row[at]) : clean(row[at] ?? ''))),
	);
	const more = others + Math.max(0, told.length - mostRows);
	return [
		...['', title.toLowerCase()],
		...layOut(
			cells,
			order.map((at) => isNumber[at] === true),
			width,
		),
		...(more === 0 ? [] : [`  and ${numberText(more)} more`]),
	];
}

function hourLines({ hours }: ReportDetails, options: ChartOptions): string[] {
	const [first] = hours;
	if (first === undefined || options.width < 40) return [];
	const shown = hours.slice(0, Math.max(1, options.width - 24));
	const series = (['sent', 'opened', 'clicked'] as const).map(
		(name) => [name, shown.map((hour) => hour[name])] as const,
	);
	const lines = sparkLines(series, options).map((line) => `  ${line}`);
	return ['', `by hour from ${first.date.replace('T', ' ')}`, ...lines];
}

function pictureOf(chart: 'bars' | 'spark', days: readonly ChartDay[], options: ChartOptions): string[] {
	const filled = days.filter(({ sent, opened }) => sent > 0 || opened > 0);
	if (filled.length === 0) return [noEvents];
	if (chart === 'spark') return sparkChart(days, options);
	// The heading says which days there are: one bar needs no empty ones beside it.
	return barChart(filled.length === 1 ? filled : days, options);
}

export function dayText(date: unknown): string {
	const text = String(date);
	return parseWireDate(text) ?? clean(text);
}

const leastText = 20;

/** Columns two blanks apart, below a margin of two; closer on a terminal that is too narrow for that. */
function layOut(rows: readonly (readonly string[])[], isRight: readonly boolean[], width: number): string[] {
	const widths = isRight.map((_, at) => Math.max(...rows.map((row) => widthOf(row[at] ?? ''))));
	const isWide = widths.reduce((sum, one) => sum + one + 2, 0) > width;
	const [margin, gap] = isWide ? ['', ' '] : ['  ', '  '];
	return rows.flatMap((row) => {
		const cells = row.map((text, at) => pad(text, widths[at] ?? 0, isRight[at] ? 'right' : 'left'));
		if (isRight.at(-1)) return [`${margin}${cells.join(gap)}`.trimEnd()];
		const last = row.at(-1) ?? '';
		const before = margin + [...cells.slice(0, -1), ''].join(gap);
		const room = width - widthOf(before);
		if (room < leastText && widthOf(last) > room) return [before.trimEnd(), `  ${shorten(last, width - 2)}`];
		return [`${before}${shorten(last, room)}`.trimEnd()];
	});
}
