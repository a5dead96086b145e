import type { CommonReply } from '../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import { type EventType, isCounted, type List, type Report } from '../../api/records.js';
import type { Figures, ListGrowth } from '../../api/reports.js';
import { formatCsvRow } from '../../tables/write-csv.js';
import { clean } from './clean.js';
import { markdownCell } from './lines.js';
import { type CampaignHead, type DetailedReport, factsOf, headRecord, outcomesOf } from './report-details.js';
import { numberText } from './units.js';

export interface SavedReport {
	title: string;
	chart: 'bars' | 'line' | 'heat' | 'none';
	report: Report;
	events: readonly EventType[];
	detailed: DetailedReport | null;
	head: CampaignHead | null;
	lists: readonly List[];
	days: readonly (Partial<Figures> & { date: string; sent: number; opened: number })[];
	madeAt: Micros;
}

const measures = [
	...(['created', 'sent', 'opened', 'machine_opened', 'clicked', 'machine_clicked'] as const),
	...(['unsubscribed', 'complained', 'softbounced', 'hardbounced'] as const),
] as const;

/** A row a day, with every figure. For Excel: BOM and semicolons, which it reads as columns in every language of Europe. */
export function csvOf({ days }: SavedReport, isExcel: boolean): string {
	const delimiter = isExcel ? ';' : ',';
	const shown = measures.filter((name) => days.some((day) => day[name] !== undefined));
	const rows = [
		['date', ...shown],
		...days.map((day) => [day.date, ...shown.map((name) => String(day[name] ?? 0))]),
	];
	return `${isExcel ? '\ufeff' : ''}${rows.map((row) => formatCsvRow(row, delimiter)).join('')}`;
}

/** `{"total", "data", "details", "links", "replies", "campaign"}`: null where the service does not tell, the last two absent. */
export function jsonOf({ report, detailed, head }: SavedReport): string {
	const { details = null, links = null, replies = [] } = detailed ?? {};
	const more = {
		...(replies.length > 0 && { replies }),
		...(head !== null && { campaign: headRecord(head) }),
	};
	return `${JSON.stringify({ ...report, details, links, ...more }, null, 2)}\n`;
}

export function markdownOf(saved: SavedReport): string {
	const { title, days, detailed, head } = saved;
	const shown = measures.filter((name) => days.some((day) => day[name] !== undefined));
	const links = (detailed?.links ?? []).slice(0, 20);
	const lists = detailed?.details.lists ?? [];
	const replies = detailed?.replies ?? [];
	return [
		`# ${markdownCell(title)}`,
		'',
		markdownCell(rangeText(saved)),
		'',
		...(head === null
			? []
			: [
					...factsOf(head).map(([label, text]) => `- ${label}: ${markdownCell(text)}`),
					'',
					...tableOf([recipientsTitle(saved), numberText(head.recipients.total)], outcomesOf(head)),
					'',
				]),
		...tableOf(
			['measure', 'messages', '%', 'of'],
			totalsOf(saved).map(({ name, count, percent, base }) => [name, count ?? '', percent ?? '', base ?? '']),
		),
		'',
		...tableOf(
			['date', ...shown.map((name) => name.replace('_', ' '))],
			days.map((day) => [day.date, ...shown.map((name) => String(day[name] ?? 0))]),
		),
		...(links.length === 0
			? []
			: [
					'',
					...tableOf(
						[detailed?.isOfDays ? 'link, over its whole life' : 'link', 'people', 'clicks', 'machines'],
						links.map(({ url, people, clicks, machine_people }) => [
							url ?? '',
							String(people),
							String(clicks),
							String(machine_people),
						]),
					),
				]),
		...(replies.length === 0 ? [] : ['', ...tableOf(repliesHeader, replies.map(replyRow))]),
		...(lists.length === 0 ? [] : ['', ...tableOf(growthHeader, lists.map(growthRow))]),
		'',
	].join('\n');
}

/** `2026-11-01 to 2026-11-30, time zone Europe/Oslo; made 2026-12-01 09:00 UTC`. */
export function rangeText({ days, detailed, madeAt }: SavedReport): string {
	const [first, last] = [days[0]?.date ?? '', days.at(-1)?.date ?? ''];
	const range = first === last ? first : `${first} to ${last}`;
	const zone = detailed === null ? '' : `, time zone ${detailed.details.time_zone}`;
	return `${range}${zone}; made ${formatDateTime(madeAt).slice(0, 16).replace('T', ' ')} UTC`;
}

export const growthTitle = 'Growth of the lists';
export const growthHeader = ['List', 'At the end', 'Added', 'Unsubscribed', 'Bounced', 'Left otherwise'];

export function growthRow({ name, active, added, unsubscribed, bounced, left }: ListGrowth) {
	return [name, active, added, unsubscribed, bounced, left];
}

export const repliesTitle = 'Commonest replies';
export const repliesHeader = ['Reply', 'State', 'Messages'];

export function replyRow({ reply, state, count }: CommonReply): (string | number)[] {
	return [reply, state, count];
}

export interface TotalLine {
	name: string;
	count: string | null;
	percent: string | null;
	base: string | null;
	machines: string | null;
}

export function totalsOf({ report: { total }, events, detailed }: SavedReport): TotalLine[] {
	const number = (value: number) => value.toLocaleString('en-US');
	const line = (name: string, count: number | null, percent: unknown, machines: number | null = null) => ({
		name,
		count: count === null ? null : number(count),
		percent: percent === null ? null : clean(String(percent)),
		base: baseOf(name),
		machines: machines === null ? null : number(machines),
	});
	const baseOf = (name: string) => {
		if (name === 'sent') return null;
		if (name !== 'delivered' && !name.endsWith('bounces')) return `${number(Number(total.sent))} sent`;
		return detailed === null ? null : `${number(detailed.details.total.attempted)} attempted`;
	};
	if (detailed === null) {
		const lines = [
			['sent', line('sent', Number(total.sent), null)],
			['opened', line('opened', Number(total.opened), total.opened_percent)],
			['redirected_percent', line('clicked', null, total.redirected_percent)],
			['unsubscribed_percent', line('unsubscribed', null, total.unsubscribed_percent)],
			['softbounced_percent', line('soft bounces', null, total.softbounced_percent)],
			['hardbounced_percent', line('hard bounces', null, total.hardbounced_percent)],
		] as const;
		return lines.filter(([of]) => isCounted(of, events)).map(([, one]) => one);
	}
	const all = detailed.details.total;
	const share = (part: number, whole: number) => (whole === 0 ? '0.00' : ((100 * part) / whole).toFixed(2));
	return [
		line('sent', all.sent, null),
		line('delivered', all.delivered, share(all.delivered, all.attempted)),
		line('opened', all.opened, share(all.opened, all.sent), all.machine_opened),
		line('clicked', all.clicked, share(all.clicked, all.sent), all.machine_clicked),
		line('unsubscribed', all.unsubscribed, share(all.unsubscribed, all.sent)),
		line('complained', all.complained, share(all.complained, all.sent)),
		line('soft bounces', all.softbounced, share(all.softbounced, all.attempted)),
		line('hard bounces', all.hardbounced, share(all.hardbounced, all.attempted)),
	];
}

function tableOf(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
	const lines = [header, header.map(() => '---'), ...rows];
	return lines.map((row) => `| ${row.map(markdownCell).join(' | ')} |`);
}

export function recipientsTitle({ detailed }: SavedReport): string {
	return detailed?.isOfDays === true ? 'recipients over its whole life' : 'recipients';
}
