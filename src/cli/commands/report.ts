import { need } from '../../api/capabilities.js';
import {
	type EventType,
	eventOfTotal,
	eventTypes,
	hasDays,
	isCounted,
	type Report,
} from '../../api/records.js';
import type { Figures, ReportDetails } from '../../api/reports.js';
import { type CommandGroup, command, type OptionValues } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { didYouMean } from '../frame/help.js';
import { type Columns, column } from '../render/columns.js';
import { type CampaignHead, type DetailedReport, headRecord } from '../render/report-details.js';
import { hasColor, paint } from '../render/terminal.js';
import { watched, watchOption } from '../verbs/watching.js';
import { campaignArg } from './campaigns/find.js';
import { reportCompare } from './report/compare.js';
import { campaignIdOf, readDetails, readHead, readReport } from './report/read.js';
import { type Saving, saveReport, savingOf } from './report/save.js';

/** A day; further figures where the service tells them. */
type Row = Report['data'][number] & Partial<Figures>;

const figure = { align: 'right', isCount: true, wide: true } as const;

const reportColumns: Columns<Row> = [
	column('date', 'DATE', { isName: true }),
	column('sent', 'SENT', { align: 'right', isCount: true }),
	column('opened', 'OPENED', { align: 'right', isCount: true }),
	column('machine_opened', 'MACHINE OPENED', figure),
	column('clicked', 'CLICKED', figure),
	column('machine_clicked', 'MACHINE CLICKED', figure),
	column('unsubscribed', 'UNSUBSCRIBED', figure),
	column('complained', 'COMPLAINED', figure),
	column('softbounced', 'SOFT BOUNCES', figure),
	column('hardbounced', 'HARD BOUNCES', figure),
	column('created', 'CREATED', figure),
];

const reportOptions = {
	from: { kind: 'date', summary: 'first day' },
	to: { kind: 'date', summary: 'last day' },
	last: { kind: 'text', placeholder: 'N', summary: 'the last days: 14d, 4w' },
	campaign: { kind: 'text', placeholder: 'NAME|UUID', summary: 'one campaign' },
	event: { kind: 'choices', choices: eventTypes, summary: 'count only these events' },
	tag: { kind: 'text', summary: 'only messages with this tag' },
	human: { kind: 'flag', summary: 'leave out opens and clicks made by machines' },
	chart: {
		kind: 'choice',
		choices: ['bars', 'line', 'spark', 'heat', 'none'],
		summary: 'the picture (bars); with --save line, and heat: opens of people by weekday and hour',
	},
	save: { kind: 'path', summary: 'write it: .html, .svg, .csv, .json or .md' },
	excel: { kind: 'flag', summary: 'with --save F.csv: as Excel reads it' },
	force: { kind: 'flag', summary: 'with --save: replace the file if it is there' },
	watch: watchOption,
	failIf: { kind: 'text', placeholder: 'TEST', summary: 'exit 10 when true: hardbounced_percent>2' },
} as const;
export type ReportOptions = OptionValues<typeof reportOptions>;

const report = command({
	name: 'report',
	summary: 'how many messages were sent, opened, bounced',
	description:
		'Without dates it covers the seven days that end today, in the time zone of the service; with --campaign the whole ' +
		'life of the campaign, on a database or a mailctl server, which know which campaigns there are. All mail counts, a test mail too, which is of no campaign. Figures are kept by ' +
		'day; with --tag all messages of the tag are counted, which takes as long as there are many.',
	options: reportOptions,
	examples: [
		'mailctl report --last 14d',
		'mailctl report --from 2026-11-01 --to 2026-11-07 -o csv',
		'mailctl report --last 30d --save november.html',
		"mailctl report --fail-if 'hardbounced_percent>2' -q",
	],
	output:
		'the service’s "results": {"total", "data"}, with opens of people and machines unless --human is given; csv, tsv and ndjson have a row a day, csv with every figure that the service tells; days are DD.MM.YYYY in JSON and YYYY-MM-DD elsewhere',
	exits: [3, 5, 10],
	columns: reportColumns,
	run: (cx, { options }) => runReport(cx, options, showTotals),
});

const { campaign: _, ...optionsOfCampaign } = reportOptions;

export const campaignsReport = command({
	name: 'report',
	summary: 'what became of a campaign: opens, clicks, links, bounces',
	description:
		'Opens and clicks of people and of machines side by side, the most clicked links, the first hours, bounces by domain and reason, and the days. With --event, --tag or --human, and on a service that is not mailctl’s, the report of its days alone.',
	args: [campaignArg],
	options: optionsOfCampaign,
	columns: reportColumns,
	output:
		'{"total", "data"} as of report, where opened counts people and machines, with "details": {"total", "days", "hours", "week", "bounces", …} and "links", the five most clicked over its whole life; there opened counts people, machine_opened the others; "campaign": {"name", "id", "subject", "lists", "sender", "date_released", "recipients": {"total", "sent", "waiting", "deferred", "bounced", "failed", "uncertain", "canceled", "left_out"}}, whose total is the sum of the others',
	exits: [3, 5, 10],
	examples: ['mailctl campaigns report november', 'mailctl campaigns report november --human -o json'],
	run: (cx, { args, options }) => runReport(cx, { ...options, campaign: args.campaign }, showWhole),
});

/** `options` have the UUID of the campaign. */
type Show = (cx: CommandContext, options: ReportOptions, result: Report) => Promise<void>;

async function runReport(cx: CommandContext, given: ReportOptions, show: Show): Promise<ExitCode> {
	const { from, to, last, failIf, event, watch } = given;
	if (last !== undefined && from !== undefined)
		throw new UsageError('--last and --from both say where the report begins; give one');
	if (from !== undefined && to !== undefined && from > to)
		throw new UsageError(`--from ${from} is after --to ${to}`);
	const test = failIf === undefined ? null : parseTest(failIf, event);
	const saving = savingOf(given);
	return watched(cx, watch, async (cx) => {
		const options = { ...given, campaign: await campaignIdOf(cx, given.campaign) };
		const result = await readReport(cx, options);
		if (saving === null) await show(cx, options, result);
		else await save(cx, { options, named: given.campaign }, result, saving);
		if (test === null || !isTrue(test, result)) return undefined;
		await cx.note(`${test.name} is ${String(result.total[test.name])}: ${failIf} is true`);
		return exits.failIf;
	});
}

async function save(
	cx: CommandContext,
	{ options, named }: { options: ReportOptions; named: string | undefined },
	report: Report,
	saving: Saving,
): Promise<void> {
	const { campaign, chart, event: events } = options;
	if (chart === 'heat') await need(await cx.api(), 'reports', '--chart heat');
	const hasLists = campaign === undefined && ['html', 'json', 'md'].includes(saving.format);
	const detailed = await readDetails(cx, options, report, hasLists);
	if (chart === 'heat' && detailed === null)
		throw new UsageError(
			'--chart heat shows opens of all messages, by people: without --event and --tag, and saved without --human',
		);
	const head = saving.format === 'csv' ? null : await readHead(cx, campaign);
	const title = titleOf(named, head) ?? 'Report';
	await saveReport(
		cx,
		saving,
		{ title, report, events, detailed, head },
		{ isOfCampaign: named !== undefined },
	);
}

/** Days. The details of a year with mail at every hour take half a second, its totals three milliseconds. */
const mostCounted = 92;

async function showTotals(cx: CommandContext, options: ReportOptions, result: Report): Promise<void> {
	if (cx.out.format === 'json') return cx.out.document(result);
	if (!isForPeople(cx)) return printRows(cx, options, result);
	const isCounted = result.data.length <= mostCounted;
	const detailed = isCounted ? await readDetails(cx, { ...options, human: false }, result) : null;
	const head = await readHead(cx, options.campaign);
	await printPage(cx, options, result, { details: detailed?.details ?? null, parted: null, head });
}

async function showWhole(cx: CommandContext, options: ReportOptions, result: Report): Promise<void> {
	const isJson = cx.out.format === 'json' && cx.globals.fields === undefined;
	if (!isJson && !isForPeople(cx)) return showTotals(cx, options, result);
	const detailed = await readDetails(cx, options, result);
	const head = await readHead(cx, options.campaign);
	const links = detailed?.links.slice(0, 5) ?? [];
	const parted = detailed && { ...detailed, links };
	if (!isJson) return printPage(cx, options, result, { details: parted?.details ?? null, parted, head });
	const { details, replies } = detailed ?? { replies: [] };
	await cx.out.document({
		...result,
		...(details && { details, links }),
		...(replies.length > 0 && { replies }),
		...(head !== null && { campaign: headRecord(head) }),
	});
}

/** Figures and a picture; else rows. */
function isForPeople({ out: { format }, globals }: CommandContext): boolean {
	return (format === 'table' || format === 'wide') && globals.fields === undefined;
}

async function printRows(cx: CommandContext, options: ReportOptions, result: Report): Promise<void> {
	const { format } = cx.out;
	if (!hasDays(options.event))
		await cx.warn(
			`the days of a report have figures of SENT and OPENED alone, which --event ${options.event.join(',')} leaves out`,
			'-o table and -o json have the totals',
		);
	const rows = format === 'ndjson' ? result.data : await withFigures(cx, result, options);
	const told = reportColumns.filter(
		({ wide, value }) => wide !== true || rows.some((row) => value(row) != null),
	);
	await cx.out.rows(rows, cx.globals.fields === undefined ? told : reportColumns, { all: true });
}

/** Opens and clicks by people and machines together, as the totals of a report count them. */
async function withFigures(cx: CommandContext, result: Report, options: ReportOptions): Promise<Row[]> {
	const { dayText } = await import('../render/report.js');
	const days = result.data.map((row) => ({ ...row, date: dayText(row.date) }));
	if (cx.out.format !== 'csv' && cx.globals.fields === undefined) return days;
	const detailed = await readDetails(cx, { ...options, human: false }, result);
	const figures = new Map(detailed?.details.days.map((day) => [day.date, day]));
	return days.map((row) => {
		const day = figures.get(row.date);
		if (day === undefined) return row;
		const { machine_opened: _, machine_clicked, ...others } = day;
		if (options.human) return { ...others, ...row };
		return { ...day, clicked: day.clicked + machine_clicked, ...row };
	});
}

/** What a report shows beside its totals and days; null: the service does not tell it. */
interface Beside {
	details: ReportDetails | null;
	parted: DetailedReport | null;
	head: CampaignHead | null;
}

async function printPage(
	cx: CommandContext,
	options: ReportOptions,
	result: Report,
	beside: Beside,
): Promise<void> {
	const { renderReport } = await import('../render/report.js');
	const { hasUnicode } = await import('../render/terminal.js');
	const { chart, human, event: events, campaign } = options;
	const { cyan, yellow } = await paint(hasColor(cx.io.stdout, cx.settings.color.value, cx.io.env));
	const zone = beside.details?.time_zone ?? (await zoneOf(cx, result));
	const lines = renderReport(result, {
		...beside,
		chart: chart === 'spark' || chart === 'none' ? chart : 'bars',
		title: titleOf(campaign, beside.head),
		isOfDays: (options.from ?? options.to ?? options.last) !== undefined,
		...{ events, human, zone },
		// A service of others may count as it likes; it names no zone either.
		withMachines: zone !== null && !human,
		width: cx.io.stdout.columns,
		unicode: hasUnicode(cx.io.env),
		colours: { sent: cyan, opened: yellow },
	});
	await cx.out.page(`${lines.join('\n')}\n`);
}

/** Null: of all messages. */
function titleOf(campaign: string | undefined, head: CampaignHead | null): string | null {
	return campaign === undefined ? null : `Campaign ${head?.name ?? campaign}`;
}

/** Of the days of a report; null: a service of others does not tell it. A server of ours tells it with the details of a day. */
async function zoneOf(cx: CommandContext, { data }: Report): Promise<string | null> {
	const { local, api } = await cx.connection();
	if (local !== null)
		return (await local.settings.get())['time_zone'] ?? local.settings.defaults['time_zone'] ?? null;
	const { reports } = (await api.capabilities()).ext;
	const day = data.at(-1)?.date;
	if (reports === undefined || day === undefined) return null;
	const { time_zone } = await reports.details({ date_from: day, date_to: day }, { signal: cx.signal });
	return time_zone;
}

type TotalName = keyof Report['total'];
/** What a script ends with exit 10 for. */
interface Test {
	name: TotalName;
	operator: string;
	value: number;
}

const totalNames: readonly TotalName[] = [
	...(['sent', 'opened', 'opened_percent', 'redirected_percent', 'softbounced_percent'] as const),
	...(['unsubscribed_percent', 'hardbounced_percent'] as const),
];

/** Throws `UsageError`, also where the report leaves the events of the figure out. */
function parseTest(text: string, events: readonly EventType[]): Test {
	const [, word, operator, value] = /^\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?)\s*$/.exec(text) ?? [];
	const wanted = word === 'clicked_percent' ? 'redirected_percent' : word;
	const name = totalNames.find((one) => one === wanted);
	if (name === undefined || operator === undefined || value === undefined) {
		const valid = `name, operator (> >= < <= == !=), number: 'hardbounced_percent>2'; names are ${totalNames.join(', ')}; clicked_percent is redirected_percent`;
		const isUnknown = word !== undefined && name === undefined;
		const near = isUnknown ? didYouMean(word, [...totalNames, 'clicked_percent']) : undefined;
		throw new UsageError(`--fail-if "${text}" is no test`, { hint: near ?? valid });
	}
	if (isCounted(name, events)) return { name, operator, value: Number(value) };
	throw new UsageError(`--fail-if tests ${name}, which --event ${events.join(',')} leaves out`, {
		hint: `add --event ${eventOfTotal[name]}, or leave --event out`,
	});
}

/** Throws `CliError` where the service told no number. */
function isTrue({ name, operator, value }: Test, { total }: Report): boolean {
	const actual = Number(total[name]);
	if (Number.isNaN(actual))
		throw new CliError('bad_answer', exits.server, `the service answered no number for ${name}`);
	if (operator === '==') return actual === value;
	if (operator === '!=') return actual !== value;
	if (actual === value) return operator.endsWith('=');
	return actual > value === operator.startsWith('>');
}

export const group: CommandGroup = {
	name: 'report',
	summary: 'how many messages were sent, opened, bounced',
	commands: [reportCompare],
	self: report,
};
