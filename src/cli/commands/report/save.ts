import { extname } from 'node:path';
import { parseWireDate } from '../../../api/datetime.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { SavedReport } from '../../render/saved-report.js';
import { mayReplace } from '../../verbs/exporting.js';
import type { ReportOptions } from '../report.js';

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

export interface Saving {
	path: string;
	format: Format;
	chart: SavedReport['chart'];
	isExcel: boolean;
	force: boolean;
}

export function savingOf({ save, excel, force, watch, chart: asked }: ReportOptions): Saving | null {
	if (save === undefined) {
		if (excel || force) throw new UsageError(`${excel ? '--excel' : '--force'} needs --save FILE`);
		if (asked === 'line' || asked === 'heat')
			throw new UsageError(`--chart ${asked} needs --save`, { hint: '--save FILE.svg draws it' });
		return null;
	}
	if (watch !== undefined) throw new UsageError('--save writes a file once, and --watch goes on: give one');
	const ending = extname(save).slice(1).toLowerCase();
	const format = formats.find((one) => one === ending);
	if (format === undefined)
		throw new UsageError(`--save ${save}: the name says no form of a report`, {
			hint: `end it in ${formats.map((one) => `.${one}`).join(', ')}`,
		});
	if (excel && format !== 'csv') throw new UsageError('--excel needs a file that ends in .csv');
	const chart = asked ?? charts[format][0];
	const held = charts[format];
	if (chart === 'spark' || !held.includes(chart))
		throw new UsageError(`--chart ${chart}: a .${format} file holds ${held.join(', ')}`);
	return { path: save, format, chart, isExcel: excel, force };
}

export async function saveReport(
	cx: CommandContext,
	{ path, format, chart, isExcel, force }: Saving,
	read: Pick<SavedReport, 'title' | 'report' | 'events' | 'detailed' | 'head'>,
): Promise<void> {
	const { createOutputFile } = await import('../../../tables/output-file.js');
	const file = await createOutputFile(path, (await mayReplace(cx, path, force)) ? 'replace' : 'refuse');
	try {
		const days =
			read.detailed?.details.days ??
			read.report.data.map(({ date, sent, opened }) => ({
				date: parseWireDate(String(date)) ?? String(date),
				sent: Number(sent),
				opened: Number(opened),
			}));
		await file.write(await contentOf({ ...read, chart, days, madeAt: cx.clock.now() }, format, isExcel));
		if (cx.dryRun) return await cx.wouldDo(`write ${path}`, { export: path, with: { format } });
		await file.finish();
	} finally {
		await file.discard();
	}
	await cx.out.document({ file: path, format }, `wrote ${path}`);
}

async function contentOf(saved: SavedReport, format: Format, isExcel: boolean): Promise<string> {
	if (format === 'svg') return (await import('../../render/report-pictures.js')).pictureOf(saved);
	if (format === 'html') return (await import('../../render/report-page.js')).pageOf(saved);
	const { csvOf, jsonOf, markdownOf } = await import('../../render/saved-report.js');
	if (format === 'csv') return csvOf(saved, isExcel);
	return format === 'json' ? jsonOf(saved) : markdownOf(saved);
}
