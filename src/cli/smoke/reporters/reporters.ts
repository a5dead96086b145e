/** The report of a run in one of its forms. */
import type { SmokeReport } from '../model.js';
import { junitReport } from './junit.js';
import { tapReport } from './tap.js';
import { type TextOptions, textReport } from './text.js';

export const reporterNames = ['text', 'tap', 'junit', 'json'] as const;
export type ReporterName = (typeof reporterNames)[number];

/** Ends with a line break. */
export function render(name: ReporterName, report: SmokeReport, options: TextOptions): string {
	switch (name) {
		case 'text':
			return textReport(report, options);
		case 'tap':
			return tapReport(report);
		case 'junit':
			return junitReport(report);
		case 'json':
			return `${JSON.stringify(report, null, 2)}\n`;
	}
}
