/** The course of a soak as one SVG: what the process holds above, what its clients wait for below. */
import { LineChart } from 'echarts/charts';
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';

use([LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer]);

/** Of one minute. Waits are the 99th percentile of its requests. */
export interface SoakSample {
	minute: number;
	residentMb: number;
	openFiles: number;
	logMb: number;
	databaseMb: number;
	sendMs: number;
	postMs: number;
	pageMs: number;
	openMs: number;
	/** Of a file that is written beside the database by nothing of ours, for the same wait for the disk. */
	diskMs: number;
}

const panels: { title: string; lines: Partial<Record<keyof SoakSample, string>> }[] = [
	{
		title: 'MB, and open files',
		lines: { residentMb: 'resident memory', logMb: 'log', openFiles: 'open files' },
	},
	{
		title: 'p99, ms',
		lines: {
			sendMs: 'send call to 10',
			postMs: 'POST subscriber',
			pageMs: 'page of 100',
			openMs: 'pixel',
			diskMs: 'the disk alone',
		},
	},
];

const panelHeight = 220;
const colours = ['#0550ae', '#b35900', '#116329', '#8250df', '#8c959f'];

export function drawSamples(samples: readonly SoakSample[]): string {
	const height = panels.length * (panelHeight + 90);
	const chart = init(null, null, { renderer: 'svg', ssr: true, width: 760, height });
	try {
		chart.setOption({
			animation: false,
			backgroundColor: '#fff',
			color: colours,
			title: panels.map(({ title }, at) => ({
				text: title,
				left: 16,
				top: topOf(at) - 60,
				textStyle: { fontSize: 14 },
			})),
			legend: panels.map(({ lines }, at) => ({
				...{ data: Object.values(lines), top: topOf(at) - 36, left: 56 },
				...{ icon: 'roundRect', itemWidth: 14, itemGap: 28 },
			})),
			grid: panels.map((_, at) => ({ left: 64, right: 48, top: topOf(at), height: panelHeight - 20 })),
			xAxis: panels.map((_, at) => ({
				gridIndex: at,
				type: 'category',
				name: 'min',
				data: samples.map(({ minute }) => minute),
			})),
			yAxis: panels.map((_, at) => ({ gridIndex: at, type: 'value', min: 0 })),
			series: panels.flatMap(({ lines }, at) =>
				// The keys of `lines` are those of a sample, by its type.
				(Object.entries(lines) as [keyof SoakSample, string][]).map(([of, name], line) => ({
					...{ type: 'line', name, xAxisIndex: at, yAxisIndex: at, showSymbol: false },
					...{ color: colours[line], data: samples.map((sample) => sample[of]) },
				})),
			),
		});
		return chart.renderToSVGString({ useViewBox: true });
	} finally {
		chart.dispose();
	}
}

function topOf(panel: number): number {
	return panel * (panelHeight + 90) + 70;
}
