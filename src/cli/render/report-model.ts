/** The parts of a report that all formats show: facts and recipients of a campaign, totals, and tables. */
import type { CommonReply } from '../../api/campaigns.js';
import { percentOf } from '../../api/counts.js';
import { type EventType, isCounted, type Report } from '../../api/records.js';
import type { CampaignLink, ReportDetails } from '../../api/reports.js';
import { clean } from './clean.js';
import { numberText, shareOf, shareText } from './units.js';

export interface DetailedReport {
	details: ReportDetails;
	links: readonly CampaignLink[];
	replies: readonly CommonReply[];
	isOfDays: boolean;
}

export interface CampaignHead {
	name: string;
	id: string;
	subject: string | null;
	lists: readonly string[];
	sender: string | null;
	date_released: string | null;
	/** Counts each recipient once. `total` is the sum of the others. */
	recipients: Readonly<Record<'total' | Outcome, number>>;
	/** Bounced messages that the mail server had accepted first. Event counts also count them as sent. */
	bouncedLater: number;
	sentOn: string;
}

const outcomes = [
	...(['sent', 'waiting', 'deferred', 'bounced', 'failed', 'uncertain', 'canceled', 'left_out'] as const),
] as const;
type Outcome = (typeof outcomes)[number];
const alwaysShown: ReadonlySet<Outcome> = new Set(['sent', 'waiting', 'bounced', 'left_out']);

export function headRecord({ bouncedLater: _, sentOn: __, ...record }: CampaignHead): object {
	return record;
}

export function factsOf({ subject, lists, sender, sentOn }: CampaignHead): [label: string, text: string][] {
	const facts: [string, string | null][] = [
		['subject', subject],
		[lists.length > 1 ? 'lists' : 'list', lists.length === 0 ? null : lists.join(', ')],
		['sender', sender],
		['sent on', sentOn],
	];
	return facts.flatMap(([label, text]) => (text === null ? [] : [[label, clean(text)]]));
}

export function rangeOf(days: readonly { date: string }[]): string {
	const [first, last] = [days[0]?.date ?? '', days.at(-1)?.date ?? ''];
	return first === last ? first : `${first} to ${last}`;
}

export function recipientsTitle(isOfDays: boolean): string {
	return isOfDays ? 'recipients over the whole life of the campaign' : 'recipients';
}

export function outcomesOf({ recipients, bouncedLater }: CampaignHead): [label: string, count: number][] {
	return outcomes
		.filter((name) => alwaysShown.has(name) || recipients[name] > 0)
		.map((name) => {
			const later =
				name === 'bounced' && bouncedLater > 0 ? ` (${numberText(bouncedLater)} after sending)` : '';
			return [`${name.replace('_', ' ')}${later}`, recipients[name]];
		});
}

export interface TotalLine {
	name: string;
	count: number | null;
	share: string | null;
	base: string | null;
	machines: number | null;
}

export function totalsOf(
	total: Report['total'],
	{
		events,
		all,
		human,
	}: { events: readonly EventType[]; all: ReportDetails['total'] | null; human: boolean },
): TotalLine[] {
	const sent = `${numberText(Number(total.sent))} sent`;
	const attempted = all && `${numberText(all.attempted)} attempted`;
	const clicked = all && all.clicked + (human ? 0 : all.machine_clicked);
	const lines = [
		['sent', 'sent', Number(total.sent), null],
		['opened_percent', 'opened', Number(total.opened), sent],
		['redirected_percent', 'clicked', clicked, sent],
		['unsubscribed_percent', 'unsubscribed', all?.unsubscribed ?? null, sent],
		['softbounced_percent', 'soft bounces', all?.softbounced ?? null, attempted],
		['hardbounced_percent', 'hard bounces', all?.hardbounced ?? null, attempted],
	] as const;
	return lines
		.filter(([of]) => isCounted(of, events))
		.map(([of, name, count, base]) => {
			return { name, count, share: of === 'sent' ? null : shareOf(total[of]), base, machines: null };
		});
}

export function detailedTotals({ total }: ReportDetails): TotalLine[] {
	const line = (
		name: string,
		count: number,
		base: 'sent' | 'attempted',
		machines: number | null = null,
	): TotalLine => {
		const whole = total[base];
		if (whole === 0) return { name, count, share: null, base: null, machines };
		const share = shareText(percentOf(count, whole));
		return { name, count, share, base: `${numberText(whole)} ${base}`, machines };
	};
	return [
		{ name: 'sent', count: total.sent, share: null, base: null, machines: null },
		line('delivered', total.delivered, 'attempted'),
		line('opened', total.opened, 'sent', total.machine_opened),
		line('clicked', total.clicked, 'sent', total.machine_clicked),
		line('unsubscribed', total.unsubscribed, 'sent'),
		line('complained', total.complained, 'sent'),
		line('soft bounces', total.softbounced, 'attempted'),
		line('hard bounces', total.hardbounced, 'attempted'),
	];
}

export type Row = readonly (string | number)[];

export interface ReportTable {
	title: string;
	header: readonly string[];
	rows: readonly Row[];
	others?: number;
}

export function tablesOf({ details: { bounces }, links, replies, isOfDays }: DetailedReport): ReportTable[] {
	const tables: ReportTable[] = [
		{
			title: isOfDays ? 'Links over the whole life of the campaign' : 'Links',
			header: ['Link', 'People', 'Clicks', 'Share', 'Bots'],
			rows: links.map(({ url, position, people, clicks, share, machine_people }) => [
				url ?? `(link ${position} of a message whose content was not kept)`,
				people,
				clicks,
				shareText(share),
				machine_people,
			]),
		},
		{
			title: 'Bounces by domain',
			header: ['Domain', 'Hard', 'Soft'],
			rows: bounces.domains.map(({ domain, hardbounced, softbounced }) => [domain, hardbounced, softbounced]),
			others: bounces.other_domains,
		},
		{
			title: 'Bounces by reason',
			header: ['Code', 'Reason', 'Hard', 'Soft'],
			rows: bounces.codes.map(({ code, hardbounced, softbounced }) => [
				code === '' ? '-' : code,
				meaningOf(code),
				hardbounced,
				softbounced,
			]),
		},
		{
			title: 'Commonest replies',
			header: ['State', 'Reply', 'Messages'],
			rows: replies.map(({ state, reply, count }) => [state, reply, count]),
		},
	];
	return tables.filter(({ rows }) => rows.length > 0);
}

export function growthTable({ lists = [] }: ReportDetails): ReportTable {
	return {
		title: 'Growth of the lists',
		header: ['List', 'At the end', 'Added', 'Unsubscribed', 'Bounced', 'Left otherwise'],
		rows: lists.map((list) => [
			...[list.name, list.active, list.added, list.unsubscribed, list.bounced, list.left],
		]),
	};
}

export function numberColumns({ header, rows }: ReportTable): boolean[] {
	const isNumber = (cell: string | number | undefined) =>
		typeof cell === 'number' || (cell !== undefined && /^[\d.]+ %$/.test(cell));
	return header.map((_, at) => rows.some((row) => isNumber(row[at])));
}

/** Texts for the subjects and details of status codes (RFC 3463 s.3). */
const details: Readonly<Record<string, string>> = {
	'1.1': 'no such mailbox',
	'1.2': 'no such domain',
	'1.3': 'the address is not valid',
	'1.6': 'the mailbox has moved',
	'1.10': 'the domain does not accept mail',
	'2.1': 'the mailbox is disabled',
	'2.2': 'the mailbox is full',
	'2.3': 'the message is too large',
	'3.4': 'the message is too large',
	'4.1': 'the mail server does not answer',
	'4.2': 'the connection was lost',
	'4.4': 'no route to the mail server',
	'4.7': 'not delivered in time',
	'7.26': 'the mail failed authentication',
};
const subjects: readonly string[] = [
	...['not specified', 'the address', 'the mailbox', 'the mail system'],
	...['the network', 'the protocol', 'the content', 'refused by policy'],
];

/** Explains the code of a bounce: RFC 3463, and the classes of SMTP codes (RFC 5321 s.4.2). */
function meaningOf(code: string): string {
	if (code === '') return 'no code';
	const [, first, subject, detail] = /^([245])\.(\d{1,3})\.(\d{1,3})$/.exec(code) ?? [];
	if (subject !== undefined)
		return details[`${subject}.${detail}`] ?? subjects[Number(subject)] ?? `class ${first}`;
	if (/^4\d\d$/.test(code)) return 'refused for now';
	return /^5\d\d$/.test(code) ? 'refused for good' : '';
}
