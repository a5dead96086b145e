/** The report as TAP 14 (testanything.org), deviations and details in YAML blocks. */
import { clean } from '../../render/clean.js';
import type { CheckResult, SmokeReport } from '../model.js';
import { summaryOf } from './text.js';

/** Pure. Deviations fail no test point. Ends with a line break. */
export function tapReport(report: SmokeReport): string {
	const lines = report.checks.flatMap((check, at) => testPoint(check, at + 1, report));
	const comments = [
		...report.leftovers.map(
			({ kind, id, name, why }) => `# left behind: ${kind} ${id ?? '?'} ${name}: ${why}`,
		),
		`# ${report.target}, run ${report.run}`,
		`# ${summaryOf(report)}`,
	];
	const head = ['TAP version 14', `1..${report.checks.length}`];
	return `${[...head, ...lines, ...comments.map(clean)].join('\n')}\n`;
}

function testPoint(check: CheckResult, number: number, { deviations }: SmokeReport): string[] {
	const { id, title, outcome, detail, duration_ms } = check;
	const isFailed = outcome === 'fail';
	const directive = outcome === 'skip' ? ` # SKIP ${escaped(detail ?? 'no reason')}` : '';
	const differing = deviations.filter((one) => one.check === id).map(({ text }) => text);
	const data = [
		...(isFailed ? [`message: ${yaml(detail ?? '')}`, 'severity: fail'] : []),
		...(differing.length > 0 ? ['deviations:', ...differing.map((text) => `  - ${yaml(text)}`)] : []),
		`duration_ms: ${duration_ms}`,
	];
	const line = `${isFailed ? 'not ok' : 'ok'} ${number} - ${escaped(`${id}: ${title}`)}${directive}`;
	if (outcome === 'skip') return [line];
	return [line, '  ---', ...data.map((text) => `  ${text}`), '  ...'];
}

/** A `#` begins a directive, and a backslash an escape. */
function escaped(text: string): string {
	return clean(text).replaceAll('\\', '\\\\').replaceAll('#', '\\#');
}

/** A JSON string is a YAML one. */
function yaml(text: string): string {
	return JSON.stringify(text.split('\n').map(clean).join('; '));
}
