import { extname } from 'node:path';
import { need } from '../../api/capabilities.js';
import { addDays, type Day, formatWireDate, parseWireDate } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import {
	type EventType,
	eventOfTotal,
	eventTypes,
	hasDays,
	isCounted,
	type Report,
	type ReportQuery,
	type Uuid,
} from '../../api/records.js';
import type { Figures } from '../../api/reports.js';
import { type CommandGroup, command, type OptionValues } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isForPeople, isTable } from '../frame/globals.js';
import { given, parseDays } from '../frame/values.js';
import { didYouMean } from '../frame/words.js';
import { type Columns, column } from '../render/columns.js';
import type { ReportPage } from '../render/report.js';
import { type CampaignHead, headRecord } from '../render/report-model.js';
import type { SavedReport } from '../render/saved-report.js';
import { hasColor, hasUnicode, paint } from '../render/terminal.js';
import { mayReplace } from '../verbs/exporting.js';
import { explained } from '../verbs/refusals.js';
import { missing } from '../verbs/resolve.js';
import { watched, watchOption } from '../verbs/watching.js';
import {
	campaignArg,
	campaignIdOf,
	detailOf,
	leftOutOf,
	listNames,
	lookUpCampaign,
} from './campaigns/record.js';
import { reportCompare } from './report/compare.js';

type Row = Report['data'][number] & Partial<Figures>;

const figure = { align: 'right', isCount: true, wide: true } as const;

const reportColumns: Columns<Row> = [
	column('date', 'DATE', { isName: true }),
	column('sent', 'SENT', { align: 'right', isCount: true }),
	column('opened', 'OPENED', { align: 'right', isCount: true }),
	column('machine_opened', 'BOT OPENS', figure),
	column('clicked', 'CLICKED', figure),
	column('machine_clicked', 'BOT CLICKS', figure),
	column('unsubscribed', 'UNSUBSCRIBED', figure),
	column('complained', 'COMPLAINED', figure),
	column('softbounced', 'SOFT BOUNCES', figure),
	column('hardbounced', 'HARD BOUNCES', figure),
	column('created', 'CREATED', figure),
];

const reportOptions = {
	from: { kind: 'date', summary: 'start on this day' },
	to: { kind: 'date', summary: 'end on this day' },
	last: { kind: 'text', placeholder: 'DUR', summary: 'report on the last days or weeks: 14d, 4w' },
	campaign: { kind: 'text', placeholder: 'NAME|UUID', summary: 'report one campaign' },
	event: { kind: 'choices', choices: eventTypes, summary: 'count only these events' },
	tag: { kind: 'text', summary: 'count only messages with this tag' },
	human: { kind: 'flag', summary: 'leave out opens and clicks by bots and proxies' },
	chart: {
		kind: 'choice',
		choices: ['bars', 'line', 'spark', 'heat', 'none'],
		summary: 'draw this chart; line and heat (opens by weekday and hour) need --save',
	},
	save: { kind: 'path', summary: 'write the report to a .html, .svg, .csv, .json or .md file' },
	excel: { kind: 'flag', summary: 'write CSV for Excel' },
	force: { kind: 'flag', summary: 'replace an existing file' },
	watch: watchOption,
	failIf: { kind: 'text', placeholder: 'TEST', summary: 'exit 10 if this is true: hardbounced_percent>2' },
} as const;
type ReportOptions = OptionValues<typeof reportOptions>;

const report = command({
	name: 'report',
	summary: 'show how many messages were sent, opened and bounced',
	description:
		'Without dates, the report covers the seven days that end today, in the time zone of the service. With --campaign, ' +
		'the report covers all days of the campaign. Test messages count, except with --campaign. --tag has to read all ' +
		'messages with the tag, which takes longer.',
	options: reportOptions,
	examples: [
		'mailctl report --last 14d',
		'mailctl report --from 2026-11-01 --to 2026-11-07 -o csv',
		'mailctl report --last 30d --save november.html',
		"mailctl report --fail-if 'hardbounced_percent>2' -q",
	],
	output: `the service's "results": {"total", "data"}; csv, tsv and ndjson have a row for each day; only csv has every figure; days are DD.MM.YYYY in json and ndjson, YYYY-MM-DD elsewhere`,
	exits: [3, 5, 10],
	columns: reportColumns,
	run: (cx, { options }) => runReport(cx, options, showTotals),
});

const { campaign: _, ...optionsOfCampaign } = reportOptions;

export const campaignsReport = command({
	name: 'report',
	summary: 'show opens, clicks, links and bounces of a campaign',
	description:
		'Shows opens and clicks by people and by bots, the most clicked links, the first hours, bounces by domain and reason, ' +
		'and the days. With --event, --tag or --human, or with a service other than mailctl, shows only the days.',
	args: [campaignArg],
	options: optionsOfCampaign,
	columns: reportColumns,
	output:
		'{"total", "data"} as in report, where "opened" counts opens by people, bots and proxies; "details": {"total", "days", "hours", "week", "bounces", …}, where "opened" counts opens by people and "machine_opened" counts all others; "links", the five most clicked; "campaign": {"name", "id", "subject", "lists", "sender", "date_released", "recipients": {"total", "sent", "waiting", "deferred", "bounced", "failed", "uncertain", "canceled", "left_out"}}, where total is the sum of the others',
	exits: [3, 5, 10],
	examples: ['mailctl campaigns report november', 'mailctl campaigns report november --human -o json'],
	run: (cx, { args, options }) => runReport(cx, { ...options, campaign: args.campaign }, showWhole),
});

const drawing = '--save FILE.svg draws the chart';

type Show = (cx: CommandContext, options: ReportOptions, report: Report) => Promise<void>;

async function runReport(cx: CommandContext, asked: ReportOptions, show: Show): Promise<ExitCode> {
	const { from, to, last, failIf, event, watch, chart = 'none' } = asked;
	if (last !== undefined && from !== undefined) throw new UsageError('use either --last or --from, not both');
	if (from !== undefined && to !== undefined && from > to)
		throw new UsageError(`--from ${from} is after --to ${to}`);
	const test = failIf === undefined ? null : parseTest(failIf, event);
	const saving = savingOf(asked);
	const format = cx.askedFormat;
	if (saving === null && chart !== 'none' && format !== null && !isTable(format))
		throw new UsageError(`--chart ${chart}: ${format.toUpperCase()} output has no charts`, { hint: drawing });
	return watched(cx, watch, async (cx) => {
		const options = { ...asked, campaign: await campaignIdOf(cx, asked.campaign) };
		const report = await readReport(cx, options);
		if (saving === null) await show(cx, options, report);
		else await save(cx, options, report, { ...saving, named: asked.campaign });
		if (test === null || !isTrue(test, report)) return undefined;
		await cx.note(`${test.name} is ${String(report.total[test.name])}: ${failIf} is true`);
		return exits.failIf;
	});
}

type Named = { named: string | undefined };

async function save(cx: CommandContext, options: ReportOptions, report: Report, saving: Saving & Named) {
	const { path, format, chart, isExcel, force } = saving;
	const { campaign, event: events } = options;
	if (chart === 'heat') await need(await cx.api(), 'reports', '--chart heat');
	const hasLists = campaign === undefined && ['html', 'json', 'md'].includes(format);
	const detailed = await readDetails(cx, options, report, hasLists);
	if (chart === 'heat' && detailed === null)
		throw new UsageError('--chart heat cannot be used with --event, --tag or --human');
	const head = format === 'csv' ? null : await readHead(cx, campaign);
	const title = titleOf(saving.named, head) ?? 'Report';
	const wireDays = report.data.map(({ date, sent, opened }) => ({
		date: parseWireDate(String(date)) ?? String(date),
		sent: Number(sent),
		opened: Number(opened),
	}));
	const days = detailed?.details.days ?? wireDays;
	const saved = { title, report, events, detailed, head, chart, days, madeAt: cx.clock.now() };
	const { createOutputFile } = await import('../../tables/output-file.js');
	const file = await createOutputFile(path, (await mayReplace(cx, path, force)) ? 'replace' : 'refuse');
	try {
		await file.write(await contentOf(saved, format, isExcel));
		if (cx.dryRun) return await cx.wouldDo(`write ${path}`, { export: path, with: { format } });
		await file.finish();
	} finally {
		await file.discard();
	}
	await cx.out.document({ file: path, format }, `wrote ${path}`);
}

/** The most days whose details are read: a year of details takes half a second, a year of totals 3 ms. */
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
	const events = options.event.join(',');
	const what = `the daily figures of a report are SENT and OPENED, and --event ${events} leaves out both`;
	if (!hasDays(options.event)) await cx.warn(what, '-o table and -o json have the totals');
	const rows = cx.out.format === 'ndjson' ? report.data : await withFigures(cx, report, options);
	const isTold = ({ wide, value }: (typeof reportColumns)[number]) =>
		wide !== true || rows.some((row) => value(row) != null);
	const told = reportColumns.filter(isTold);
	await cx.out.rows(rows, cx.globals.fields === undefined ? told : reportColumns, { all: true });
}

/** Opens and clicks include bots, except with `--human`. */
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

type Shown = Pick<ReportPage, 'report' | 'details' | 'parted'>;

async function printPage(cx: CommandContext, options: ReportOptions, shown: Shown): Promise<void> {
	const { renderReport } = await import('../render/report.js');
	const { chart, human, event: events, campaign } = options;
	const { cyan, yellow } = await paint(hasColor(cx.io.stdout, cx.settings.color.value, cx.io.env));
	const head = await readHead(cx, campaign);
	const lines = renderReport(
		{
			...{ ...shown, head, events, human },
			chart: chart === 'spark' || chart === 'none' ? chart : 'bars',
			title: titleOf(campaign, head),
			isOfDays: isOfDays(options),
			zone: shown.details?.time_zone ?? (await zoneOf(cx, shown.report)),
		},
		{ width: cx.io.stdout.columns, unicode: hasUnicode(cx.io.env), colours: { sent: cyan, opened: yellow } },
	);
	await cx.out.page(`${lines.join('\n')}\n`);
}

function titleOf(campaign: string | undefined, head: CampaignHead | null): string | null {
	return campaign === undefined ? null : `Campaign ${head?.name ?? campaign}`;
}

async function zoneOf(cx: CommandContext, { data }: Report): Promise<string | null> {
	const { reports } = (await (await cx.api()).capabilities()).ext;
	const day = data.at(-1)?.date;
	if (reports === undefined || day === undefined) return null;
	return (await reports.details({ date_from: day, date_to: day }, { signal: cx.signal })).time_zone;
}

type TotalName = keyof Report['total'];
type Test = ReturnType<typeof parseTest>;

const totalNames: readonly TotalName[] = [
	...(['sent', 'opened', 'opened_percent', 'redirected_percent', 'softbounced_percent'] as const),
	...(['unsubscribed_percent', 'hardbounced_percent'] as const),
];

function parseTest(text: string, events: readonly EventType[]) {
	const [, word, operator, value] = /^\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?)\s*$/.exec(text) ?? [];
	const wanted = word === 'clicked_percent' ? 'redirected_percent' : word;
	const name = totalNames.find((one) => one === wanted);
	if (name === undefined || operator === undefined || value === undefined) {
		const valid = `name, operator (> >= < <= == !=), number: 'hardbounced_percent>2'; names are ${totalNames.join(', ')}; clicked_percent is another name for redirected_percent`;
		const isUnknown = word !== undefined && name === undefined;
		const near = isUnknown ? didYouMean(word, [...totalNames, 'clicked_percent']) : undefined;
		throw new UsageError(`--fail-if "${text}" is not a condition`, { hint: near ?? valid });
	}
	if (isCounted(name, events)) return { name, operator, value: Number(value) };
	throw new UsageError(`--fail-if tests ${name}, which --event ${events.join(',')} leaves out`, {
		hint: `add --event ${eventOfTotal[name]}, or leave --event out`,
	});
}

function isTrue({ name, operator, value }: Test, { total }: Report): boolean {
	const actual = Number(total[name]);
	if (Number.isNaN(actual))
		throw new CliError('bad_answer', exits.server, `the answer of the service has no number for ${name}`);
	if (operator === '==') return actual === value;
	if (operator === '!=') return actual !== value;
	if (actual === value) return operator.endsWith('=');
	return actual > value === operator.startsWith('>');
}

export const group: CommandGroup = {
	name: 'report',
	summary: 'show how many messages were sent, opened and bounced',
	commands: [reportCompare],
	self: report,
};

const formats = ['html', 'svg', 'csv', 'json', 'md'] as const;
type Format = (typeof formats)[number];

type Chart = NonNullable<ReportOptions['chart']>;

const charts: Readonly<Record<Format, readonly [Chart, ...Chart[]]>> = {
	html: ['bars', 'line', 'heat', 'none'],
	svg: ['bars', 'line', 'heat'],
	csv: ['none'],
	json: ['none'],
	md: ['none'],
};

type Saving = NonNullable<ReturnType<typeof savingOf>>;

function savingOf({ save, excel, force, watch, chart: asked }: ReportOptions) {
	if (save === undefined) {
		if (excel || force) throw new UsageError(`${excel ? '--excel' : '--force'} needs --save FILE`);
		if (asked === 'line' || asked === 'heat')
			throw new UsageError(`--chart ${asked} needs --save`, { hint: drawing });
		return null;
	}
	if (watch !== undefined) throw new UsageError('use either --save or --watch, not both');
	const ending = extname(save).slice(1).toLowerCase();
	const format = formats.find((one) => one === ending);
	const hint = `end the name in ${formats.map((one) => `.${one}`).join(', ')}`;
	if (format === undefined) throw new UsageError(`--save ${save}: unknown file format`, { hint });
	if (excel && format !== 'csv') throw new UsageError('--excel needs a file that ends in .csv');
	const chart = asked ?? charts[format][0];
	const held = charts[format];
	if (chart === 'spark' || !held.includes(chart))
		throw new UsageError(`--chart ${chart}: a .${format} file can have ${held.join(', ')}`);
	return { path: save, format, chart, isExcel: excel, force };
}

async function contentOf(saved: SavedReport, format: Format, isExcel: boolean): Promise<string> {
	if (format === 'svg') return (await import('../render/report-charts.js')).svgOf(saved);
	if (format === 'html') return (await import('../render/report-page.js')).pageOf(saved);
	const { csvOf, jsonOf, markdownOf } = await import('../render/saved-report.js');
	if (format === 'csv') return csvOf(saved, isExcel);
	return format === 'json' ? jsonOf(saved) : markdownOf(saved);
}

type Asked = Pick<ReportOptions, 'from' | 'to' | 'last' | 'campaign' | 'event' | 'tag' | 'human'>;

async function readReport(cx: CommandContext, asked: Asked): Promise<Report> {
	const { campaign, event, tag, human } = asked;
	const days = asked.last === undefined ? null : parseDays(asked.last, '--last');
	const api = await cx.api();
	// Refuse an option that the service would ignore, because the report would be wrong.
	const wanted = tag !== undefined ? '--tag' : human ? '--human' : null;
	const ours = campaign === undefined ? undefined : (await api.capabilities()).ext.reports;
	const reports = wanted === null ? ours : await need(api, 'reports', wanted);
	// Without dates, mailctl reports the whole campaign, but other services report only the last 7 days.
	if (campaign !== undefined && reports === undefined && !isOfDays(asked))
		await cx.note('this service reports the last 7 days; --from and --to choose other days');
	const to = days === null ? asked.to : (asked.to ?? (await today(cx)));
	const from = days === null || to === undefined ? asked.from : addDays(to, 1 - days);
	const query: ReportQuery = {
		...given({ date_from: from && formatWireDate(from), date_to: to && formatWireDate(to) }),
		...given({ campaign_unique_id: campaign }),
		...(event.length > 0 && { event_types: event }),
	};
	const call = { signal: cx.signal };
	const more = { ...query, ...given({ tag }), human };
	const ask = () => (reports === undefined ? api.report(query, call) : reports.report(more, call));
	return explained(cx.killable(ask), { input: query }).catch((error: unknown) => {
		if (campaign !== undefined && error instanceof ApiError && error.code === 'not_found')
			throw missing('campaign', campaign, mailctl('campaigns', 'list'));
		throw error;
	});
}

/** Returns the current day of the service. A report that is requested without dates ends with this day. */
async function today(cx: CommandContext): Promise<Day> {
	const { data } = await (await cx.api()).report({}, { signal: cx.signal });
	const days = data.flatMap(({ date }) => parseWireDate(date) ?? []).sort();
	const last = days.at(-1);
	if (last !== undefined) return last;
	throw new CliError('bad_answer', exits.server, 'the report of this service has no figures per day', {
		hint: 'give --to DATE',
	});
}

function isOfDays({ from, to, last }: Asked): boolean {
	return (from ?? to ?? last) !== undefined;
}

/** `lists` adds the growth of each list. */
async function readDetails(cx: CommandContext, asked: Asked, { data }: Report, lists = false) {
	const { campaign, tag, human, event } = asked;
	const { reports, campaigns } = (await (await cx.api()).capabilities()).ext;
	if (reports === undefined || tag !== undefined || human || event.length > 0) return null;
	const [date_from, date_to] = [data[0]?.date, data.at(-1)?.date];
	const hasDates = campaign === undefined || isOfDays(asked);
	const call = { signal: cx.signal };
	const details = await reports.details(
		{
			...given({ campaign_unique_id: campaign }),
			...(lists && { lists }),
			...(hasDates && date_from !== undefined && date_to !== undefined && { date_from, date_to }),
		},
		call,
	);
	const links = campaign === undefined ? [] : (await reports.links(campaign, call)).results;
	const status = campaign === undefined ? undefined : await campaigns?.status(campaign, call);
	return { details, links, replies: status?.replies ?? [], isOfDays: hasDates };
}

async function readHead(cx: CommandContext, id: Uuid | undefined): Promise<CampaignHead | null> {
	if (id === undefined) return null;
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	const call = { signal: cx.signal };
	const found = campaigns && (await lookUpCampaign(campaigns, id, call));
	if (campaigns === undefined || found === undefined) return null;
	const detail = detailOf(found, await campaigns.status(id, call));
	const { name, subject, plan, messages, recipients } = detail;
	const { accepted = 0, bounced = 0, deferred = 0, failed = 0, uncertain = 0 } = messages;
	const waiting = (messages.staged ?? 0) + (messages.queued ?? 0) + (messages.leased ?? 0);
	const sent = accepted + (messages.sent ?? 0);
	// A cancellation before the release deletes the messages, so compute how many were canceled.
	const kept = sent + waiting + bounced + deferred + failed + uncertain;
	const leftOut = leftOutOf(detail);
	const canceled = Math.max(messages.canceled ?? 0, recipients - leftOut - kept);
	const starts = plan?.opens_at ?? plan?.starts_at ?? detail.date_released;
	return {
		...{ name, id, subject, lists: await listNames(cx, detail), sender: found.from ?? null },
		date_released: detail.date_released,
		recipients: {
			...{ total: kept + canceled + leftOut, sent, waiting, deferred, bounced, failed, uncertain, canceled },
			left_out: leftOut,
		},
		bouncedLater: Math.min(bounced, Math.max(0, detail.sent - sent)),
		sentOn: detail.date_released === null || starts === null ? 'not yet' : cx.times.moment(starts),
	};
}
