import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { EventType, Report } from '../../api/records.js';
import type { Figures } from '../../api/reports.js';
import { formatCsvRow } from '../../tables/write-csv.js';
import { markdownCell } from './out.js';
import {
	type CampaignHead,
	type DetailedReport,
	detailedTotals,
	factsOf,
	growthTable,
	headRecord,
	outcomesOf,
	type ReportTable,
	type Row,
	rangeOf,
	recipientsTitle,
	type TotalLine,
	tablesOf,
	totalsOf,
} from './report-model.js';
import { numberText } from './units.js';

export interface SavedReport {
	title: string;
	chart: 'bars' | 'line' | 'heat' | 'none';
	report: Report;
	events: readonly EventType[];
	detailed: DetailedReport | null;
	head: CampaignHead | null;
	days: readonly (Partial<Figures> & { date: string; sent: number; opened: number })[];
	madeAt: Micros;
}

const measures = [
	...(['created', 'sent', 'opened', 'machine_opened', 'clicked', 'machine_clicked'] as const),
	...(['unsubscribed', 'complained', 'softbounced', 'hardbounced'] as const),
] as const;

function dayTable({ days }: SavedReport): ReportTable {
	const shown = measures.filter((name) => days.some((day) => day[name] !== undefined));
	const rows = days.map((day) => [day.date, ...shown.map((name) => day[name] ?? 0)]);
	return { title: 'Days', header: ['date', ...shown], rows };
}

/** For Excel, writes a BOM, and the semicolons that Excel expects in most European locales. */
export function csvOf(saved: SavedReport, isExcel: boolean): string {
	const { header, rows } = dayTable(saved);
	const lines = [header, ...rows].map((row) => formatCsvRow(row.map(String), isExcel ? ';' : ','));
	return `${isExcel ? '\ufeff' : ''}${lines.join('')}`;
}

export function jsonOf({ report, detailed, head }: SavedReport): string {
	const { details = null, links = null, replies = [] } = detailed ?? {};
	const more = {
		...(replies.length > 0 && { replies }),
		...(head !== null && { campaign: headRecord(head) }),
	};
	return `${JSON.stringify({ ...report, details, links, ...more }, null, 2)}\n`;
}

export function markdownOf(saved: SavedReport): string {
	const { title, detailed, head } = saved;
	const lines = [`# ${markdownCell(title)}`, '', markdownCell(rangeText(saved))];
	if (head !== null) {
		lines.push('', ...factsOf(head).map(([label, text]) => `- ${label}: ${markdownCell(text)}`));
		const header = [recipientsTitle(detailed?.isOfDays === true), numberText(head.recipients.total)];
		lines.push('', ...tableOf(header, outcomesOf(head)));
	}
	const totals = totalLines(saved).map(({ name, count, share, base }) => {
		return [name, count === null ? '' : numberText(count), share ?? '', base ?? ''];
	});
	lines.push('', ...tableOf(['measure', 'messages', 'share', 'of'], totals));
	const tables = [dayTable(saved), ...moreTables(saved)];
	for (const { title, header, rows } of tables) lines.push('', `## ${title}`, '', ...tableOf(header, rows));
	return `${lines.join('\n')}\n`;
}

export function totalLines({ report: { total }, events, detailed }: SavedReport): TotalLine[] {
	return detailed === null
		? totalsOf(total, { events, all: null, human: false })
		: detailedTotals(detailed.details);
}

export function moreTables({ detailed }: SavedReport): ReportTable[] {
	if (detailed === null) return [];
	const growth = growthTable(detailed.details);
	return [...tablesOf(detailed), ...(growth.rows.length > 0 ? [growth] : [])];
}

export function rangeText({ days, detailed, madeAt }: SavedReport): string {
	const zone = detailed === null ? '' : `, time zone ${detailed.details.time_zone}`;
	return `${rangeOf(days)}${zone}; made ${formatDateTime(madeAt).slice(0, 16).replace('T', ' ')} UTC`;
}

function tableOf(header: readonly string[], rows: readonly Row[]): string[] {
	const lines = [header, header.map(() => '---'), ...rows];
	return lines.map((row) => `| ${row.map(markdownCell).join(' | ')} |`);
}
