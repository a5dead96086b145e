/** `--save`: a report as a file, whole or not at all: a page, a picture, a table. */

import { extname } from 'node:path';
import { addDays, parseWireDate } from '../../../api/datetime.js';
import type { List, Report } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { DetailedReport } from '../../render/report-details.js';
import type { SavedReport } from '../../render/saved-report.js';
import { mayReplace } from '../../verbs/exporting.js';
import { walk } from '../../verbs/listing.js';
import type { ReportRun } from '../report.js';

const formats = ['html', 'svg', 'csv', 'json', 'md'] as const;
type Format = (typeof formats)[number];

type Chart = NonNullable<ReportRun['chart']>;

/** What a file may show; the first goes without saying. */
const charts: Readonly<Record<Format, readonly [Chart, ...Chart[]]>> = {
	html: ['bars', 'line', 'heat', 'none'],
	svg: ['bars', 'line', 'heat'],
	csv: ['none'],
	json: ['none'],
	md: ['none'],
};

/** Where a report goes; null: to standard output. */
export interface Saving {
	path: string;
	format: Format;
	chart: SavedReport['chart'];
	isExcel: boolean;
	force: boolean;
}

/** Throws `UsageError` before anything is asked of the service. */
export function savingOf({ save, excel, force, watch, chart: asked }: ReportRun): Saving | null {
	if (save === undefined) {
		if (excel || force) throw new UsageError(`${excel ? '--excel' : '--force'} goes with --save FILE`);
		if (asked === 'line' || asked === 'heat')
			throw new UsageError(`--chart ${asked} goes with --save`, { hint: '--save FILE.svg draws it' });
		return null;
	}
	if (watch !== undefined) throw new UsageError('--save writes a file once, and --watch goes on: give one');
	const ending = extname(save).slice(1).toLowerCase();
	const format = formats.find((one) => one === ending);
	if (format === undefined)
		throw new UsageError(`--save ${save}: the name says no form of a report`, {
			hint: `end it in ${formats.map((one) => `.${one}`).join(', ')}`,
		});
	if (excel && format !== 'csv') throw new UsageError('--excel goes with a file that ends in .csv');
	const chart = asked ?? charts[format][0];
	if (chart === 'spark' || !charts[format].includes(chart)) throw cannotHold(format, chart);
	return { path: save, format, chart, isExcel: excel, force };
}

function cannotHold(format: Format, chart: Chart): UsageError {
	const held = charts[format].filter((one) => one !== 'none');
	if (held.length === 0)
		return new UsageError(`--chart ${chart}: a .${format} file holds no chart`, {
			hint: 'leave --chart out, or end the file in .html or .svg',
		});
	if (chart === 'none') return new UsageError(`--chart none: a .${format} file is the chart`);
	return new UsageError(`--chart ${chart} is for a terminal; a .${format} file holds ${held.join(', ')}`);
}

/** Reads what is missing, writes the file, and says so. Throws `TableError` for a file that is there, and `Declined`. */
export async function saveReport(
	cx: CommandContext,
	{ path, format, chart, isExcel, force }: Saving,
	{
		title,
		report,
		events,
		detailed,
		head,
	}: Pick<SavedReport, 'title' | 'report' | 'events' | 'detailed' | 'head'>,
	{ isOfCampaign }: { isOfCampaign: boolean },
): Promise<void> {
	const { createOutputFile } = await import('../../../tables/output-file.js');
	const file = await createOutputFile(path, (await mayReplace(cx, path, force)) ? 'replace' : 'refuse');
	try {
		const lists = isOfCampaign || format !== 'html' ? [] : await largestLists(cx);
		const days = daysOf(report, detailed);
		const saved = { title, chart, report, events, detailed, head, lists, days, madeAt: cx.clock.now() };
		await file.write(await contentOf(saved, { format, isExcel }));
		if (cx.dryRun) return await cx.wouldDo(`write ${path}`, { export: path, with: { format } });
		await file.finish();
	} finally {
		await file.discard();
	}
	await cx.out.document({ file: path, format }, `wrote ${path}`);
}

async function contentOf(
	saved: SavedReport,
	{ format, isExcel }: Pick<Saving, 'format' | 'isExcel'>,
): Promise<string> {
	const { csvOf, jsonOf, markdownOf } = await import('../../render/saved-report.js');
	switch (format) {
		case 'csv':
			return csvOf(saved, isExcel);
		case 'json':
			return jsonOf(saved);
		case 'md':
			return markdownOf(saved);
		case 'svg':
			return (await import('../../render/report-pictures.js')).pictureOf(saved);
		case 'html':
			return (await import('../../render/report-page.js')).pageOf(saved);
	}
}

const shownLists = 20;

async function largestLists(cx: CommandContext): Promise<List[]> {
	const lists: List[] = [];
	for await (const list of walk((await cx.api()).lists, {}, { signal: cx.signal, limit: 1_000 }))
		lists.push(list);
	return lists
		.sort((a, b) => b.active_subscribers_count - a.active_subscribers_count || a.id - b.id)
		.slice(0, shownLists);
}

/** A service that tells no details tells what was sent and opened. */
function daysOf({ data }: Report, detailed: DetailedReport | null): SavedReport['days'] {
	if (detailed !== null) return detailed.details.days;
	return data.map(({ date, sent, opened }) => ({
		date: parseWireDate(String(date)) ?? addDays('1970-01-01', 0),
		sent: Number(sent),
		opened: Number(opened),
	}));
}
