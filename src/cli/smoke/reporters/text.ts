/** The report for people: a line for each check, then deviations, leftovers and the totals. */
import { clean } from '../../render/clean.js';
import type { Paint } from '../../render/terminal.js';
import { hanging, wrapWords } from '../../render/width.js';
import type { CheckResult, Outcome, SmokeReport } from '../model.js';

export interface TextOptions {
	/** The terminal can show more than ASCII. */
	unicode: boolean;
	paint: Paint;
	/** Cells of a line; infinite where nothing is to be broken. */
	columns: number;
}

/** Pure. Words of the service are cleaned of terminal controls. Ends with a line break. */
export function textReport(report: SmokeReport, options: TextOptions): string {
	const { paint, columns } = options;
	const width = Math.max(0, ...report.checks.map(({ id }) => id.length));
	const lines = folded(report.checks).flatMap((check) => checkLines(check, width, options));
	const fitted = (line: string) => inRoom(`  ${clean(line)}`, columns);
	const deviations = report.deviations.flatMap(({ check, text }) => fitted(`${check}: ${text}`));
	const leftovers = report.leftovers.flatMap(({ kind, id, name, why }) =>
		fitted(`${kind} ${id ?? '?'} ${name}: ${why}`),
	);
	return [
		`${paint.strong('mailctl smoke')} ${clean(report.target)}, run ${report.run}`,
		...lines,
		...section('deviations from the contract', deviations, paint),
		...section('left behind', leftovers, paint),
		'',
		summaryOf(report),
		'',
	].join('\n');
}

/** `41 checks: 38 passed, 1 failed, 2 skipped; 3 deviations; 1.2 s`. */
export function summaryOf({ checks, counts, duration_ms }: SmokeReport): string {
	const { passed, failed, skipped, deviations, leftovers } = counts;
	const left = leftovers === 0 ? '' : `; ${leftovers} left behind`;
	const seconds = (duration_ms / 1000).toFixed(1);
	return (
		`${of(checks.length, 'check')}: ${passed} passed, ${failed} failed, ${skipped} skipped; ` +
		`${of(deviations, 'deviation')}${left}; ${seconds} s`
	);
}

/** From so many on, checks in a row that were left out for one reason are one line. */
const leastFolded = 3;

function folded(checks: readonly CheckResult[]): CheckResult[] {
	const runs: CheckResult[][] = [];
	for (const check of checks) {
		const before = runs.at(-1);
		const isSame =
			check.outcome === 'skip' && before?.[0]?.outcome === 'skip' && before[0].detail === check.detail;
		if (isSame) before.push(check);
		else runs.push([check]);
	}
	return runs.flatMap((run) => {
		const [first] = run;
		if (first === undefined || run.length < leastFolded) return run;
		return [{ ...first, id: of(run.length, 'check'), title: `${first.id} to ${run.at(-1)?.id}` }];
	});
}

type Marks = Readonly<Record<Outcome, string>>;
const unicodeMarks: Marks = { pass: '✓', deviation: '~', fail: '✗', skip: '–' };
const asciiMarks: Marks = { pass: 'ok  ', deviation: 'dev ', fail: 'FAIL', skip: 'skip' };

function checkLines(check: CheckResult, width: number, { unicode, paint, columns }: TextOptions): string[] {
	const { id, title, outcome, detail } = check;
	const mark = (unicode ? unicodeMarks : asciiMarks)[outcome];
	const said = (detail ?? '').split('\n').map(clean);
	const isFailed = outcome === 'fail';
	const aside = isFailed || said[0] === '' ? '' : ` (${said.join('; ')})`;
	const [first = '', ...rest] = hanging(`${mark} ${id.padEnd(width)}  `, clean(title) + aside, columns);
	const painted = isFailed ? paint.red : outcome === 'skip' ? paint.dim : (text: string) => text;
	const below = said.flatMap((text) => inRoom(`    ${text}`, columns));
	return [painted(mark) + first.slice(mark.length), ...rest, ...(isFailed ? below : [])];
}

function inRoom(line: string, columns: number): string[] {
	return line.length < columns ? [line] : wrapWords(line, columns - 1);
}

function section(title: string, lines: readonly string[], paint: Paint): string[] {
	return lines.length === 0 ? [] : ['', paint.strong(title), ...lines];
}

function of(count: number, word: string): string {
	return `${count} ${word}${count === 1 ? '' : 's'}`;
}
