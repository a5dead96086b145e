/** The events report: totals, a picture, and a test for scripts. */

import type { Api } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import type { Day } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { type EventType, eventTypes, type Report, type ReportQuery } from '../../api/records.js';
import type { Figures, ReportDetails, ReportsPlus } from '../../api/reports.js';
import { type CommandGroup, command, type OptionValues } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isTable } from '../frame/globals.js';
import { parseDays } from '../frame/values.js';
import { type Columns, column } from '../render/columns.js';
import type { CampaignHead, DetailedReport } from '../render/report-details.js';
import { hasColor, paint } from '../render/terminal.js';
import { explained } from '../verbs/refusals.js';
import { isUuid, missing } from '../verbs/resolve.js';
import { watched, watchOption } from '../verbs/watching.js';
import { findCampaign } from './campaigns/find.js';
import { reportCompare } from './report/compare.js';
import { readDetails, readHead } from './report/details.js';
import { isTrue, parseTest, type Test } from './report/fail-if.js';
import { type Saving, saveReport, savingOf } from './report/save.js';

/** A day; further figures where the service tells them. */
type Row = Report['data'][number] & Partial<Figures>;

const figure = { align: 'right', isCount: true, wide: true } as const;

export const reportColumns: Columns<Row> = [
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

export const reportOptions = {
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
	run: (cx, { options }) => runReport(cx, options),
});

/** For `report` and `campaigns report`. */
export async function runReport(
	cx: CommandContext,
	options: ReportRun,
	show: ShowReport = (cx, result, campaign) => showReport(cx, options, result, campaign),
): Promise<ExitCode> {
	assertRange(options);
	const test = options.failIf === undefined ? null : parseTest(options.failIf, options.event);
	const saving = savingOf(options);
	await assertDrawn(cx, options);
	return watched(cx, options.watch, (cx) => lookAt(cx, options, { test, saving, show }));
}

function assertRange({ from, to, last }: Pick<ReportRun, 'from' | 'to' | 'last'>): void {
	if (last !== undefined && from !== undefined)
		throw new UsageError('--last and --from both say where the report begins; give one');
	if (from !== undefined && to !== undefined && from > to)
		throw new UsageError(`--from ${from} is after --to ${to}`);
}

/**
 * Throws `UsageError` for a chart that is asked for beside a format without one; a format of the environment or a profile is
 * older than the question, and leaves the chart out with a warning.
 */
async function assertDrawn(cx: CommandContext, { chart = 'none', save }: ReportRun): Promise<void> {
	const { askedFormat, out, settings } = cx;
	const { level, name } = settings.output.origin;
	if (chart === 'none' || save !== undefined || level === 'default' || isTable(out.format)) return;
	const says = `--chart ${chart}: ${out.format.toUpperCase()} holds no chart`;
	if (askedFormat !== null)
		throw new UsageError(says, { hint: 'leave --chart out, or --save FILE.svg draws it' });
	const from = level === 'profile' ? `of the profile ${name}` : `of ${name}`;
	await cx.warn(`${says}; the format is that ${from}`, '-o table shows it, or --save FILE.svg draws it');
}

/** For `report` and `campaigns report`: prints a report, in a form of its own. */
export type ShowReport = (cx: CommandContext, result: Report, campaign: string | undefined) => Promise<void>;

interface ReportEnds {
	test: Test | null;
	saving: Saving | null;
	show: ShowReport;
}

async function lookAt(
	cx: CommandContext,
	options: ReportRun,
	{ test, saving, show }: ReportEnds,
): Promise<ExitCode | undefined> {
	const campaign = await campaignIdOf(cx, options.campaign);
	const result = await fetchReport(cx, { ...options, campaign });
	if (saving === null) {
		await show(cx, result, campaign);
		const { hintLastEvents } = await import('./report/last-events.js');
		const ask = (from: Day) =>
			fetchReport(cx, { ...options, campaign, from, to: undefined, last: undefined });
		await hintLastEvents(cx, options, { result, ask });
	} else {
		const hasLists = campaign === undefined && ['html', 'json', 'md'].includes(saving.format);
		const detailed = await readForChart(cx, options, result, campaign, hasLists);
		const head = campaign === undefined || saving.format === 'csv' ? null : await readHead(cx, campaign);
		const title = titleOf(options, head) ?? 'Report';
		const saved = { title, report: result, events: options.event, detailed, head };
		await saveReport(cx, saving, saved, { isOfCampaign: campaign !== undefined });
	}
	if (test !== null && isTrue(test, result)) {
		await cx.note(`${test.name} is ${String(result.total[test.name])}: ${options.failIf} is true`);
		return exits.failIf;
	}
	return undefined;
}

async function showReport(
	cx: CommandContext,
	options: ReportRun,
	result: Report,
	campaign: string | undefined,
): Promise<void> {
	const isCounted = isForPeople(cx) && result.data.length <= mostCounted;
	const all = { ...options, human: false };
	const detailed = isCounted ? await readDetails(cx, all, result, campaign) : null;
	const head = campaign === undefined || !isForPeople(cx) ? null : await readHead(cx, campaign);
	await printReport(cx, result, options, { details: detailed?.details ?? null, parted: null, head });
}

/** Days. The details of a year with mail at every hour take half a second, its totals three milliseconds. */
const mostCounted = 92;

/** Figures and a picture; else rows. */
function isForPeople({ out: { format }, globals }: CommandContext): boolean {
	return (format === 'table' || format === 'wide') && globals.fields === undefined;
}

/** A service that tells no hours has no picture of them. */
async function readForChart(
	cx: CommandContext,
	options: ReportRun,
	result: Report,
	campaign: string | undefined,
	lists = false,
): Promise<DetailedReport | null> {
	if (options.chart === 'heat') await need(await cx.api(), 'reports', '--chart heat');
	const detailed = await readDetails(cx, options, result, campaign, lists);
	if (options.chart === 'heat' && detailed === null)
		throw new UsageError(
			'--chart heat shows opens of all messages, by people: without --event and --tag, and saved without --human',
		);
	return detailed;
}

export type ReportRun = OptionValues<typeof reportOptions>;

/** A name is of a campaign that the deployment keeps; others know campaigns by UUID, or not at all. */
async function campaignIdOf(cx: CommandContext, text: string | undefined): Promise<string | undefined> {
	if (text === undefined || text === '' || isUuid(text)) return text;
	const campaigns = await need(await cx.api(), 'campaigns', 'a report of a campaign by its name');
	return (await findCampaign(cx, campaigns, text)).id;
}

interface Options {
	from: string | undefined;
	to: string | undefined;
	last: string | undefined;
	campaign: string | undefined;
	event: readonly EventType[];
	tag: string | undefined;
	human: boolean;
}

async function fetchReport(cx: CommandContext, options: Options): Promise<Report> {
	const { addDays, formatWireDate } = await import('../../api/datetime.js');
	if (options.campaign === '')
		throw new UsageError('--campaign is empty: give the name or UUID of a campaign');
	const days = options.last === undefined ? null : parseDays(options.last, '--last');
	const api = await cx.api();
	// Refused before anything is asked: a report that ignores an option would be a wrong one.
	const wanted = options.tag !== undefined ? '--tag' : options.human ? '--human' : null;
	const reports =
		wanted === null ? await reportsOfCampaign(cx, api, options) : await need(api, 'reports', wanted);
	const to = days === null ? options.to : (options.to ?? (await today(cx)));
	const from = days === null || to === undefined ? options.from : addDays(to, 1 - days);
	const query: ReportQuery = {
		...(from !== undefined && { date_from: formatWireDate(from) }),
		...(to !== undefined && { date_to: formatWireDate(to) }),
		...(options.campaign !== undefined && { campaign_unique_id: options.campaign }),
		...(options.event.length > 0 && { event_types: options.event }),
	};
	const call = { signal: cx.signal };
	const more = { ...query, ...(options.tag !== undefined && { tag: options.tag }), human: options.human };
	const ask = () =>
		reports === null
			? explained(api.report(query, call), { input: query })
			: explained(reports.report(more, call), { input: more });
	return cx.killable(ask).catch(async (error: unknown) => {
		if (options.campaign !== undefined && error instanceof ApiError && error.code === 'not_found')
			throw missing('campaign', options.campaign, mailctl('campaigns', 'list'));
		throw to === undefined && from !== undefined ? ((await afterToday(cx, from, error)) ?? error) : error;
	});
}

/** Our reports cover a whole campaign and refuse an unknown UUID; other services report days, zeros for any UUID. */
async function reportsOfCampaign(
	cx: CommandContext,
	api: Api,
	{ campaign, from, to, last }: Options,
): Promise<ReportsPlus | null> {
	if (campaign === undefined) return null;
	const { ext } = await api.capabilities();
	if (ext.reports !== undefined) return ext.reports;
	if (from === undefined && to === undefined && last === undefined)
		await cx.note('this service reports the last 7 days of the campaign; for others give --from and --to');
	return null;
}

/** A refusal of a default last day, in words of the first day, where that is the cause; else null. */
async function afterToday(cx: CommandContext, from: Day, error: unknown): Promise<CliError | null> {
	if (!(error instanceof CliError) || error.exit !== exits.refused) return null;
	const last = await today(cx).catch(() => null);
	if (last === null || from <= last) return null;
	return new CliError(error.code, error.exit, `--from ${from} is after today`, {
		hint: `today is ${last} in the time zone of the service`,
		cause: error,
	});
}

/** Days are those of the service: today is the last day of the report it answers without dates, of 7 rows or 8. */
async function today(cx: CommandContext): Promise<Day> {
	const { parseWireDate } = await import('../../api/datetime.js');
	const { data } = await (await cx.api()).report({}, { signal: cx.signal });
	const days = data.flatMap(({ date }) => parseWireDate(date) ?? []).sort();
	const last = days.at(-1);
	if (last !== undefined) return last;
	throw new CliError('bad_answer', exits.server, 'the report of this deployment names no day', {
		hint: 'give --to DATE',
	});
}

/** What a report shows beside its totals and days; null: the service does not tell it. */
interface Beside {
	/** For counts and for hours of the week. */
	details: ReportDetails | null;
	/** In place of the totals: people and machines side by side. */
	parted: DetailedReport | null;
	head: CampaignHead | null;
}

/** In the format asked for: for people totals and the chart. */
export async function printReport(
	cx: CommandContext,
	result: Report,
	options: ReportRun,
	beside: Beside = { details: null, parted: null, head: null },
): Promise<void> {
	const { format } = cx.out;
	if (format === 'json') return cx.out.document(result);
	if (!isForPeople(cx)) {
		if (options.event.length > 0)
			await (await import('./report/last-events.js')).warnOfDays(cx, options.event);
		const rows = format === 'ndjson' ? result.data : await withFigures(cx, result, options);
		const told = reportColumns.filter(
			({ wide, value }) => wide !== true || rows.some((row) => value(row) != null),
		);
		await cx.out.rows(rows, cx.globals.fields === undefined ? told : reportColumns, { all: true });
		const { chart = 'none' } = options;
		if (chart !== 'none' && !isTable(format)) await cx.hint('-o table draws the chart, into a pipe too');
		return;
	}
	const { renderReport } = await import('../render/report.js');
	const { hasUnicode } = await import('../render/terminal.js');
	const width = cx.io.stdout.columns;
	const unicode = hasUnicode(cx.io.env);
	const { cyan, yellow } = await paint(hasColor(cx.io.stdout, cx.settings.color.value, cx.io.env));
	const colours = { sent: cyan, opened: yellow };
	const zone = beside.details?.time_zone ?? (await zoneOf(cx, result));
	// A service of others may count as it likes; it names no zone either.
	const withMachines = zone !== null && !options.human;
	const shown = {
		chart: options.chart === 'spark' || options.chart === 'none' ? options.chart : ('bars' as const),
		title: titleOf(options, beside.head),
		isOfDays: (options.from ?? options.to ?? options.last) !== undefined,
		events: options.event,
		withMachines,
		human: options.human,
	};
	const lines = renderReport(result, { ...shown, ...beside, width, unicode, colours, zone });
	await cx.out.page(`${lines.join('\n')}\n`);
}

/** Null: of all messages. */
function titleOf({ campaign }: Pick<ReportRun, 'campaign'>, head: CampaignHead | null): string | null {
	return campaign === undefined ? null : `Campaign ${head?.name ?? campaign}`;
}

/** Opens and clicks by people and machines together, as the totals of a report count them. */
async function withFigures(cx: CommandContext, result: Report, options: ReportRun): Promise<Row[]> {
	const { dayText } = await import('../render/report.js');
	const days = result.data.map((row) => ({ ...row, date: dayText(row.date) }));
	const isWhole = cx.out.format === 'csv' || cx.globals.fields !== undefined;
	const { human } = options;
	const asked = { ...options, human: false };
	const detailed = isWhole
		? await readDetails(cx, asked, result, await campaignIdOf(cx, options.campaign))
		: null;
	const figures = new Map(detailed?.details.days.map((day) => [day.date, day]));
	return days.map((row) => {
		const day = figures.get(row.date);
		if (day === undefined) return row;
		const { machine_opened: _, machine_clicked, ...others } = day;
		if (human) return { ...others, ...row };
		return { ...day, clicked: day.clicked + machine_clicked, ...row };
	});
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

export const group: CommandGroup = {
	name: 'report',
	summary: 'how many messages were sent, opened, bounced',
	commands: [reportCompare],
	self: report,
};
