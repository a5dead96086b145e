import { extname } from 'node:path';
import { addDays, parseWireDate } from '../../../api/datetime.js';
import type { List, Report } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { DetailedReport } from '../../render/report-details.js';
import type { SavedReport } from '../../render/saved-report.js';
import { mayReplace } from '../../verbs/exporting.js';
import { walk } from '../../verbs/listing.js';
import type { ReportOptions } from '../report.js';

const formats = ['html', 'svg', 'csv', 'json', 'md'] as const;
type Format = (typeof formats)[number];

type Chart = NonNullable<ReportOptions['chart']>;

/** What a file may show; the first goes without saying. */
const charts: Readonly<Record<Format, readonly [Chart, ...Chart[]]>> = {
	html: ['bars', 'line', 'heat', 'none'],
	svg: ['bars', 'line', 'heat'],
	csv: ['none'],
	json: ['none'],
	md: ['none'],
};

export interface Saving {
	path: string;
	format: Format;
	chart: SavedReport['chart'];
	isExcel: boolean;
	force: boolean;
}

/** Throws `UsageError` before anything is asked of the service. */
export function savingOf({ save, excel, force, watch, chart: asked }: ReportOptions): Saving | null {
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
	const held = charts[format];
	if (chart === 'spark' || !held.includes(chart))
		throw new UsageError(`--chart ${chart}: a .${format} file holds ${held.join(', ')}`);
	return { path: save, format, chart, isExcel: excel, force };
}

/** Reads what is missing, writes the file, and says so. Throws `TableError` for a file that is there, and `Declined`. */
export async function saveReport(
	cx: CommandContext,
	saving: Saving,
	read: Pick<SavedReport, 'title' | 'report' | 'events' | 'detailed' | 'head'>,
	{ isOfCampaign }: { isOfCampaign: boolean },
): Promise<void> {
	const { path, format, chart, force } = saving;
	const { createOutputFile } = await import('../../../tables/output-file.js');
	const file = await createOutputFile(path, (await mayReplace(cx, path, force)) ? 'replace' : 'refuse');
	try {
		const lists = isOfCampaign || format !== 'html' ? [] : await largestLists(cx);
		const days = daysOf(read.report, read.detailed);
		await file.write(await contentOf({ ...read, chart, lists, days, madeAt: cx.clock.now() }, saving));
		if (cx.dryRun) return await cx.wouldDo(`write ${path}`, { export: path, with: { format } });
		await file.finish();
	} finally {
		await file.discard();
	}
	await cx.out.document({ file: path, format }, `wrote ${path}`);
}

async function contentOf(saved: SavedReport, { format, isExcel }: Saving): Promise<string> {
	if (format === 'svg') return (await import('../../render/report-pictures.js')).pictureOf(saved);
	if (format === 'html') return (await import('../../render/report-page.js')).pageOf(saved);
	const { csvOf, jsonOf, markdownOf } = await import('../../render/saved-report.js');
	if (format === 'csv') return csvOf(saved, isExcel);
	return format === 'json' ? jsonOf(saved) : markdownOf(saved);
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
