import { need } from '../../api/capabilities.js';
import {
	type EventType,
	eventOfTotal,
	eventTypes,
	hasDays,
	isCounted,
	type Report,
} from '../../api/records.js';
import type { Figures } from '../../api/reports.js';
import { type CommandGroup, command, type OptionValues } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isForPeople, isTable } from '../frame/globals.js';
import { didYouMean } from '../frame/help.js';
import { type Columns, column } from '../render/columns.js';
import type { ReportPage } from '../render/report.js';
import { type CampaignHead, headRecord } from '../render/report-model.js';
import { hasColor, paint } from '../render/terminal.js';
import { watched, watchOption } from '../verbs/watching.js';
import { campaignArg } from './campaigns/record.js';
import { reportCompare } from './report/compare.js';
import { campaignIdOf, readDetails, readHead, readReport } from './report/read.js';
import { type Saving, saveReport, savingOf } from './report/save.js';

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
	human: { kind: 'flag', summary: 'leave out opens and clicks of bots' },
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
		'the service’s "results": {"total", "data"}; csv, tsv and ndjson have a row a day, csv with every figure; days are DD.MM.YYYY in JSON and YYYY-MM-DD elsewhere',
	exits: [3, 5, 10],
	columns: reportColumns,
	run: (cx, { options }) => runReport(cx, options, showTotals),
});

const { campaign: _, ...optionsOfCampaign } = reportOptions;

export const campaignsReport = command({
	name: 'report',
	summary: 'what became of a campaign: opens, clicks, links, bounces',
	description:
		'Opens and clicks of people and of bots side by side, the most clicked links, the first hours, bounces by domain and reason, and the days. With --event, --tag or --human, and on a service that is not mailctl’s, the report of its days alone.',
	args: [campaignArg],
	options: optionsOfCampaign,
	columns: reportColumns,
	output:
		'{"total", "data"} as of report, where opened counts people, bots and proxies, with "details": {"total", "days", "hours", "week", "bounces", …} and "links", the five most clicked over its whole life; there opened counts people, machine_opened the others; "campaign": {"name", "id", "subject", "lists", "sender", "date_released", "recipients": {"total", "sent", "waiting", "deferred", "bounced", "failed", "uncertain", "canceled", "left_out"}}, whose total is the sum of the others',
	exits: [3, 5, 10],
	examples: ['mailctl campaigns report november', 'mailctl campaigns report november --human -o json'],
	run: (cx, { args, options }) => runReport(cx, { ...options, campaign: args.campaign }, showWhole),
});

type Show = (cx: CommandContext, options: ReportOptions, report: Report) => Promise<void>;

async function runReport(cx: CommandContext, given: ReportOptions, show: Show): Promise<ExitCode> {
	const { from, to, last, failIf, event, watch, chart = 'none' } = given;
	if (last !== undefined && from !== undefined)
		throw new UsageError('--last and --from both say where the report begins; give one');
	if (from !== undefined && to !== undefined && from > to)
		throw new UsageError(`--from ${from} is after --to ${to}`);
	const test = failIf === undefined ? null : parseTest(failIf, event);
	const saving = savingOf(given);
	const format = cx.askedFormat;
	if (saving === null && chart !== 'none' && format !== null && !isTable(format))
		throw new UsageError(`--chart ${chart}: ${format.toUpperCase()} holds no chart`, {
			hint: 'leave --chart out, or --save FILE.svg draws it',
		});
	return watched(cx, watch, async (cx) => {
		const options = { ...given, campaign: await campaignIdOf(cx, given.campaign) };
		const report = await readReport(cx, options);
		if (saving === null) await show(cx, options, report);
		else await save(cx, options, report, { saving, named: given.campaign });
		if (test === null || !isTrue(test, report)) return undefined;
		await cx.note(`${test.name} is ${String(report.total[test.name])}: ${failIf} is true`);
		return exits.failIf;
	});
}

async function save(
	cx: CommandContext,
	options: ReportOptions,
	report: Report,
	{ saving, named }: { saving: Saving; named: string | undefined },
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
	await saveReport(cx, saving, { title: titleOf(named, head) ?? 'Report', report, events, detailed, head });
}

/** Days. The details of a year with mail at every hour take half a second, its totals three milliseconds. */
const mostDetailed = 92;

async function showTotals(cx: CommandContext, options: ReportOptions, report: Report): Promise<void> {
	if (cx.out.format === 'json') return cx.out.document(report);
	if (!isForPeople(cx)) return printRows(cx, options, report);
	const isShort = report.data.length <= mostDetailed;
	const detailed = isShort ? await readDetails(cx, { ...options, human: false }, report) : null;
	await printPage(cx, options, { report, details: detailed?.details ?? null, parted: null });
}

async function showWhole(cx: CommandContext, options: ReportOptions, report: Report): Promise<void> {
	const isJson = cx.out.format === 'json' && cx.globals.fields === undefined;
	if (!isJson && !isForPeople(cx)) return showTotals(cx, options, report);
	const detailed = await readDetails(cx, options, report);
	const { details = null, replies = [] } = detailed ?? {};
	const links = detailed?.links.slice(0, 5) ?? [];
	if (!isJson) return printPage(cx, options, { report, details, parted: detailed && { ...detailed, links } });
	const head = await readHead(cx, options.campaign);
	await cx.out.document({
		...report,
		...(details && { details, links }),
		...(replies.length > 0 && { replies }),
		...(head !== null && { campaign: headRecord(head) }),
	});
}

async function printRows(cx: CommandContext, options: ReportOptions, report: Report): Promise<void> {
	if (!hasDays(options.event))
		await cx.warn(
			`the days of a report have figures of SENT and OPENED alone, which --event ${options.event.join(',')} leaves out`,
			'-o table and -o json have the totals',
		);
	const rows = cx.out.format === 'ndjson' ? report.data : await withFigures(cx, report, options);
	const told = reportColumns.filter(
		({ wide, value }) => wide !== true || rows.some((row) => value(row) != null),
	);
	await cx.out.rows(rows, cx.globals.fields === undefined ? told : reportColumns, { all: true });
}

/** Opens and clicks include those of bots, as in the totals of a report. */
async function withFigures(cx: CommandContext, report: Report, options: ReportOptions): Promise<Row[]> {
	const { dayText } = await import('../render/report.js');
	const days = report.data.map((row) => ({ ...row, date: dayText(row.date) }));
	if (cx.out.format !== 'csv' && cx.globals.fields === undefined) return days;
	const detailed = await readDetails(cx, { ...options, human: false }, report);
	const figures = new Map(detailed?.details.days.map((day) => [day.date, day]));
	return days.map((row) => {
		const day = figures.get(row.date);
		if (day === undefined) return row;
		const { machine_opened: _, machine_clicked, ...others } = day;
		if (options.human) return { ...others, ...row };
		return { ...day, clicked: day.clicked + machine_clicked, ...row };
	});
}

async function printPage(
	cx: CommandContext,
	options: ReportOptions,
	shown: Pick<ReportPage, 'report' | 'details' | 'parted'>,
): Promise<void> {
	const { renderReport } = await import('../render/report.js');
	const { hasUnicode } = await import('../render/terminal.js');
	const { chart, human, event: events, campaign } = options;
	const { cyan, yellow } = await paint(hasColor(cx.io.stdout, cx.settings.color.value, cx.io.env));
	const head = await readHead(cx, campaign);
	const lines = renderReport(
		{
			...{ ...shown, head, events, human },
			chart: chart === 'spark' || chart === 'none' ? chart : 'bars',
			title: titleOf(campaign, head),
			isOfDays: (options.from ?? options.to ?? options.last) !== undefined,
			zone: shown.details?.time_zone ?? (await zoneOf(cx, shown.report)),
		},
		{
			width: cx.io.stdout.columns,
			unicode: hasUnicode(cx.io.env),
			colours: { sent: cyan, opened: yellow },
		},
	);
	await cx.out.page(`${lines.join('\n')}\n`);
}

function titleOf(campaign: string | undefined, head: CampaignHead | null): string | null {
	return campaign === undefined ? null : `Campaign ${head?.name ?? campaign}`;
}

/** The zone of the days, which the details of one of them tell; null: the service does not tell it. */
async function zoneOf(cx: CommandContext, { data }: Report): Promise<string | null> {
	const { reports } = (await (await cx.api()).capabilities()).ext;
	const day = data.at(-1)?.date;
	if (reports === undefined || day === undefined) return null;
	return (await reports.details({ date_from: day, date_to: day }, { signal: cx.signal })).time_zone;
}

type TotalName = keyof Report['total'];
interface Test {
	name: TotalName;
	operator: string;
	value: number;
}

const totalNames: readonly TotalName[] = [
	...(['sent', 'opened', 'opened_percent', 'redirected_percent', 'softbounced_percent'] as const),
	...(['unsubscribed_percent', 'hardbounced_percent'] as const),
];

function parseTest(text: string, events: readonly EventType[]): Test {
	const [, word, operator, value] = /^\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?)\s*$/.exec(text) ?? [];
	const wanted = word === 'clicked_percent' ? 'redirected_percent' : word;
	const name = totalNames.find((one) => one === wanted);
	if (name === undefined || operator === undefined || value === undefined) {
		const valid = `name, operator (> >= < <= == !=), number: 'hardbounced_percent>2'; names are ${totalNames.join(', ')}; clicked_percent is redirected_percent`;
		const isUnknown = word !== undefined && name === undefined;
		const near = isUnknown ? didYouMean(word, [...totalNames, 'clicked_percent']) : undefined;
		throw new UsageError(`--fail-if "${text}" is not a test`, { hint: near ?? valid });
	}
	if (isCounted(name, events)) return { name, operator, value: Number(value) };
	throw new UsageError(`--fail-if tests ${name}, which --event ${events.join(',')} leaves out`, {
		hint: `add --event ${eventOfTotal[name]}, or leave --event out`,
	});
}

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
