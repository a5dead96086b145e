import type { CommonReply } from '../../api/campaigns.js';
import { percentOf } from '../../api/counts.js';
import type { CampaignLink, ReportDetails } from '../../api/reports.js';
import { type ChartOptions, sparkLines } from './chart.js';
import { clean } from './clean.js';
import { numberText, replyText, shareText } from './units.js';
import { pad, shorten, widthOf, wrap } from './width.js';

export interface DetailedReport {
	details: ReportDetails;
	links: readonly CampaignLink[];
	replies: readonly CommonReply[];
	/** The details are of some days, so that `links` count more than they do. */
	isOfDays: boolean;
}

export interface CampaignHead {
	name: string;
	id: string;
	subject: string | null;
	lists: readonly string[];
	sender: string | null;
	date_released: string | null;
	/** Each recipient once: `total` is the sum of the others. */
	recipients: Readonly<Record<'total' | Outcome, number>>;
	/** Of `bounced`: the mail server had taken them, so that figures of events count them as sent too. */
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

/** Subject, list, sender, and when it was sent; each that is known. */
export function factsOf({ subject, lists, sender, sentOn }: CampaignHead): [label: string, text: string][] {
	const facts: [string, string | null][] = [
		['subject', subject],
		[lists.length > 1 ? 'lists' : 'list', lists.length === 0 ? null : lists.join(', ')],
		['sender', sender],
		['sent on', sentOn],
	];
	return facts.flatMap(([label, text]) => (text === null ? [] : [[label, clean(text)]]));
}

export function outcomesOf({ recipients, bouncedLater }: CampaignHead): [label: string, count: number][] {
	return outcomes
		.filter((name) => alwaysShown.has(name) || recipients[name] > 0)
		.map((name) => {
			const later =
				name === 'bounced' && bouncedLater > 0 ? ` (${numberText(bouncedLater)} after it was sent)` : '';
			return [`${name.replace('_', ' ')}${later}`, recipients[name]];
		});
}

type Row = readonly (string | number)[];

/** Totals, and what stands behind them: lines without their line ends. Every text from outside is cleaned. */
export function renderDetails(
	{ details, links, replies, isOfDays }: DetailedReport,
	options: ChartOptions,
): string[] {
	const linksTitle = `links${isOfDays ? ' over its whole life' : ''}, the most clicked first`;
	const { attempted, sent } = details.total;
	return [
		...table(
			totalRows(details).map((row) => (options.width < leastBases ? row.slice(0, -1) : row)),
			options,
		),
		...(options.width < leastBases ? ['', ...wrap(basesOf(sent, attempted), options.width)] : []),
		...section(linksTitle, linkRows(links), options),
		...hourLines(details, options),
		...section('bounces by domain', domainRows(details), options),
		...section('bounces by reason', codeRows(details), options),
		...section(
			'commonest replies',
			replies.map((one) => [replyText(one)]),
			options,
		),
	];
}

export function renderHead(head: CampaignHead, isOfDays: boolean, { width }: ChartOptions): string[] {
	const title = `recipients${isOfDays ? ' over its whole life' : ''}`;
	return table(
		[[title, head.recipients.total], ...outcomesOf(head).map(([label, count]): Row => [`  ${label}`, count])],
		{ width },
	);
}

const leastBases = 76;

export function basesOf(sent: number, attempted: number | null): string {
	const tried = attempted === null ? '' : `, of bounces of ${numberText(attempted)} attempted`;
	return `shares are of ${numberText(sent)} sent${tried}`;
}

function totalRows({ total }: ReportDetails): Row[] {
	const row = (name: string, part: number, base: 'sent' | 'attempted', machines: number | '' = ''): Row => {
		const whole = total[base];
		const share = whole === 0 ? '' : `${percentText(part, whole)} %`;
		return [name, part, rightOf(share), machines, whole === 0 ? '' : `of ${numberText(whole)} ${base}`];
	};
	return [
		['', rightOf('PEOPLE'), '', rightOf('MACHINES'), ''],
		['sent', total.sent, '', '', ''],
		row('delivered', total.delivered, 'attempted'),
		row('opened', total.opened, 'sent', total.machine_opened),
		row('clicked', total.clicked, 'sent', total.machine_clicked),
		row('unsubscribed', total.unsubscribed, 'sent'),
		row('complained', total.complained, 'sent'),
		row('soft bounces', total.softbounced, 'attempted'),
		row('hard bounces', total.hardbounced, 'attempted'),
	];
}

/** Marks a text that is aligned as numbers are. */
const right = '\0';
function rightOf(text: string): string {
	return `${right}${text}`;
}

export function percentText(part: number, whole: number): string {
	return percentOf(part, whole).toFixed(2);
}

const shownLinks = 5;
const shownDomains = 10;

function linkRows(links: readonly CampaignLink[]): Row[] {
	const clicked = links.filter(({ clicks, machine_clicks }) => clicks + machine_clicks > 0);
	if (clicked.length === 0) return [];
	return [
		[rightOf('PEOPLE'), rightOf('CLICKS'), rightOf('SHARE'), rightOf('MACHINES'), 'LINK'],
		...clicked
			.slice(0, shownLinks)
			.map(({ people, clicks, share, machine_people, url, position }) => [
				people,
				clicks,
				rightOf(shareText(share)),
				machine_people,
				url ?? `(link ${position} of a content that is not kept)`,
			]),
	];
}

function domainRows({ bounces: { domains, other_domains } }: ReportDetails): Row[] {
	if (domains.length === 0) return [];
	const others = other_domains + Math.max(0, domains.length - shownDomains);
	return [
		[rightOf('HARD'), rightOf('SOFT'), 'DOMAIN'],
		...domains
			.slice(0, shownDomains)
			.map(({ domain, softbounced, hardbounced }) => [hardbounced, softbounced, domain]),
		...(others === 0 ? [] : [['', '', `and ${numberText(others)} more`]]),
	];
}

function codeRows({ bounces: { codes } }: ReportDetails): Row[] {
	if (codes.length === 0) return [];
	return [
		[rightOf('HARD'), rightOf('SOFT'), 'CODE', 'REASON'],
		...codes
			.slice(0, shownDomains)
			.map(({ code, softbounced, hardbounced }) => [
				hardbounced,
				softbounced,
				code === '' ? '-' : code,
				meaningOf(code),
			]),
	];
}

/** The first hours in one line for each figure. */
function hourLines({ hours }: ReportDetails, options: ChartOptions): string[] {
	const [first] = hours;
	if (first === undefined || options.width < 40) return [];
	const shown = hours.slice(0, Math.max(1, options.width - 24));
	const lines = sparkLines(
		[
			['sent', shown.map(({ sent }) => sent)],
			['opened', shown.map(({ opened }) => opened)],
			['clicked', shown.map(({ clicked }) => clicked)],
		],
		options,
	);
	return ['', `by hour from ${first.date.replace('T', ' ')}`, ...lines.map((line) => `  ${line}`)];
}

function section(title: string, rows: readonly Row[], { width }: Pick<ChartOptions, 'width'>): string[] {
	return rows.length === 0 ? [] : ['', title, ...table(rows, { width })];
}

const leastText = 20;

/** Columns two blanks apart, below a margin of two; closer on a terminal that is too narrow for that. */
function table(rows: readonly Row[], { width }: Pick<ChartOptions, 'width'>): string[] {
	const cells = rows.map((row) =>
		row.map((cell) => {
			const isRight = typeof cell === 'number' || cell.startsWith(right);
			const text = typeof cell === 'number' ? numberText(cell) : clean(cell.replace(right, ''));
			return { text, align: isRight ? ('right' as const) : ('left' as const) };
		}),
	);
	const widths = (rows[0] ?? []).map((_, at) =>
		Math.max(...cells.map((row) => widthOf(row[at]?.text ?? ''))),
	);
	const lines = ({ margin, gap }: { margin: string; gap: string }) =>
		cells.flatMap((row) => {
			const numbers = row.slice(0, -1).map(({ text, align }, at) => pad(text, widths[at] ?? 0, align));
			const before = margin + [...numbers, ''].join(gap);
			const last = row.at(-1) ?? { text: '', align: 'left' };
			// The last text gives way alone: from the middle of a whole line a number would go.
			const room = width - widthOf(before);
			if (last.align === 'left' && room < leastText && widthOf(last.text) > room)
				return [before.trimEnd(), `  ${shorten(last.text, width - 2)}`];
			const end =
				last.align === 'left' ? shorten(last.text, room) : pad(last.text, widths.at(-1) ?? 0, 'right');
			return `${before}${end}`.trimEnd();
		});
	const wide = widths.reduce((total, one) => total + one + 2, 0);
	return wide <= width ? lines({ margin: '  ', gap: '  ' }) : lines({ margin: '', gap: ' ' });
}

/** Describes the code of a bounce: RFC 3463 s.3, and the classes of SMTP codes (RFC 5321 s.4.2). */

const details: Readonly<Record<string, string>> = {
	'1.1': 'no such mailbox',
	'1.2': 'no such domain',
	'1.3': 'the address is not valid',
	'1.6': 'the mailbox has moved',
	'1.10': 'the domain takes no mail',
	'2.0': 'the mailbox is not available',
	'2.1': 'the mailbox is disabled',
	'2.2': 'the mailbox is full',
	'2.3': 'the message is too large',
	'3.0': 'the mail system refuses it',
	'3.4': 'the message is too large',
	'4.0': 'the network or the way there fails',
	'4.1': 'the mail server does not answer',
	'4.2': 'the connection broke off',
	'4.4': 'no way to the mail server',
	'4.7': 'not delivered in time',
	'7.0': 'refused by policy',
	'7.1': 'refused by policy',
	'7.26': 'authentication of the mail failed',
};

const subjects: readonly string[] = [
	'not specified',
	'the address',
	'the mailbox',
	'the mail system',
	'the network',
	'the protocol',
	'the content',
	'refused by policy',
];

export function meaningOf(code: string): string {
	if (code === '') return 'no answer with a code';
	const [, first, subject, detail] = /^([245])\.(\d{1,3})\.(\d{1,3})$/.exec(code) ?? [];
	if (subject !== undefined)
		return details[`${subject}.${detail}`] ?? subjects[Number(subject)] ?? `class ${first}`;
	if (/^4\d\d$/.test(code)) return 'refused for now';
	return /^5\d\d$/.test(code) ? 'refused for good' : '';
}
