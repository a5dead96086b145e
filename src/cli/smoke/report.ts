import { clean, cleanLines } from '../render/clean.js';
import type { Paint } from '../render/terminal.js';
import { counted } from '../render/units.js';
import { hanging, wrapWords } from '../render/width.js';
import type { CheckResult, Outcome, ReporterName, SmokeReport } from './model.js';

export interface Screen {
	unicode: boolean;
	paint: Paint;
	columns: number;
}

export function render(name: ReporterName, report: SmokeReport, screen: Screen): string {
	switch (name) {
		case 'text':
			return textReport(report, screen);
		case 'tap':
			return tapReport(report);
		case 'junit':
			return junitReport(report);
		case 'json':
			return `${JSON.stringify(report, null, 2)}\n`;
	}
}

export function summaryOf({ checks, counts, duration_ms }: SmokeReport): string {
	const { passed, failed, skipped, deviations, leftovers } = counts;
	const left = leftovers === 0 ? '' : `; ${leftovers} left behind`;
	const outcomes = `${passed} passed, ${failed} failed, ${skipped} skipped`;
	const seconds = (duration_ms / 1000).toFixed(1);
	return `${counted(checks.length, 'check')}: ${outcomes}; ${counted(deviations, 'deviation')}${left}; ${seconds} s`;
}

function leftLines({ leftovers }: SmokeReport): string[] {
	return leftovers.map(({ kind, id, name, why }) => `${kind} ${id ?? '?'} ${name}: ${why}`);
}

function textReport(report: SmokeReport, screen: Screen): string {
	const { paint } = screen;
	const width = Math.max(0, ...report.checks.map(({ id }) => id.length));
	const section = (title: string, lines: readonly string[]) =>
		lines.length === 0
			? []
			: ['', paint.strong(title), ...lines.flatMap((line) => inRoom(`  ${clean(line)}`, screen))];
	return [
		`${paint.strong('mailctl smoke')} ${clean(report.target)}, run ${report.run}`,
		...folded(report.checks).flatMap((check) => checkLines(check, width, screen)),
		...section(
			'deviations from the contract',
			report.deviations.map(({ check, text }) => `${check}: ${text}`),
		),
		...section('left behind', leftLines(report)),
		'',
		summaryOf(report),
		'',
	].join('\n');
}

function folded(checks: readonly CheckResult[]): CheckResult[] {
	const runs: CheckResult[][] = [];
	for (const check of checks) {
		const before = runs.at(-1);
		const [first] = before ?? [];
		if (check.outcome === 'skip' && first?.outcome === 'skip' && first.detail === check.detail)
			before?.push(check);
		else runs.push([check]);
	}
	return runs.flatMap((run) => {
		const [first] = run;
		if (first === undefined || run.length < 3) return run;
		return [{ ...first, id: counted(run.length, 'check'), title: `${first.id} to ${run.at(-1)?.id}` }];
	});
}

const marks: Readonly<Record<Outcome, readonly [unicode: string, ascii: string]>> = {
	pass: ['✓', 'ok  '],
	deviation: ['~', 'dev '],
	fail: ['✗', 'FAIL'],
	skip: ['–', 'skip'],
};

function checkLines({ id, title, outcome, detail }: CheckResult, width: number, screen: Screen): string[] {
	const mark = marks[outcome][screen.unicode ? 0 : 1];
	const said = (detail ?? '').split('\n').map(clean);
	const isFailed = outcome === 'fail';
	const aside = isFailed || said[0] === '' ? '' : ` (${said.join('; ')})`;
	const start = `${mark} ${id.padEnd(width)}  `;
	const [first = '', ...rest] = hanging(start, clean(title) + aside, screen.columns);
	const { red, dim } = screen.paint;
	const painted = isFailed ? red(mark) : outcome === 'skip' ? dim(mark) : mark;
	const below = isFailed ? said.flatMap((text) => inRoom(`    ${text}`, screen)) : [];
	return [painted + first.slice(mark.length), ...rest, ...below];
}

function inRoom(line: string, { columns }: Screen): string[] {
	return line.length < columns ? [line] : wrapWords(line, columns - 1);
}

/** TAP 14 (testanything.org), deviations and details in YAML blocks. Deviations fail no test point. */
function tapReport(report: SmokeReport): string {
	const escaped = (text: string) => clean(text).replaceAll('\\', '\\\\').replaceAll('#', '\\#');
	const yaml = (text: string) => JSON.stringify(text.split('\n').map(clean).join('; '));
	const points = report.checks.flatMap(({ id, title, outcome, detail, duration_ms }, at) => {
		const isFailed = outcome === 'fail';
		const line = `${isFailed ? 'not ok' : 'ok'} ${at + 1} - ${escaped(`${id}: ${title}`)}`;
		if (outcome === 'skip') return [`${line} # SKIP ${escaped(detail ?? 'no reason')}`];
		const differing = report.deviations.filter(({ check }) => check === id);
		const block = [
			...(isFailed ? [`message: ${yaml(detail ?? '')}`, 'severity: fail'] : []),
			...(differing.length > 0 ? ['deviations:', ...differing.map(({ text }) => `  - ${yaml(text)}`)] : []),
			`duration_ms: ${duration_ms}`,
		];
		return [line, '  ---', ...block.map((one) => `  ${one}`), '  ...'];
	});
	const comments = [
		...leftLines(report).map((line) => `left behind: ${line}`),
		`${report.target}, run ${report.run}`,
		summaryOf(report),
	];
	const lines = [...points, ...comments.map((text) => clean(`# ${text}`))];
	return `${['TAP version 14', `1..${report.checks.length}`, ...lines].join('\n')}\n`;
}

/** The XML that JUnit's readers take. `errors` is always 0: every error of a check is its failure. */
function junitReport(report: SmokeReport): string {
	const { counts, checks, started } = report;
	const suite = attributesOf({
		name: 'mailctl smoke',
		tests: checks.length,
		failures: counts.failed,
		errors: 0,
		skipped: counts.skipped,
		time: seconds(report.duration_ms),
		timestamp: started.replace(/Z$/, ''),
	});
	const out = [summaryOf(report), ...leftLines(report).map((line) => `left behind: ${line}`)].join('\n');
	return [
		'<?xml version="1.0" encoding="UTF-8"?>',
		`<testsuite ${suite}>`,
		'\t<properties>',
		`\t\t<property ${attributesOf({ name: 'run', value: report.run })}/>`,
		`\t\t<property ${attributesOf({ name: 'target', value: report.target })}/>`,
		'\t</properties>',
		...checks.flatMap((check) => testcase(check, report)),
		`\t<system-out>${xml(out)}</system-out>`,
		'</testsuite>',
		'',
	].join('\n');
}

function testcase(
	{ id, title, group, outcome, detail, duration_ms }: CheckResult,
	{ deviations }: SmokeReport,
): string[] {
	const classname = `mailctl.smoke.${group}`;
	const attributes = attributesOf({ classname, name: `${id}: ${title}`, time: seconds(duration_ms) });
	const message = detail ?? '';
	const inner = [
		...(outcome === 'fail'
			? [`<failure ${attributesOf({ message, type: 'contract' })}>${xml(message)}</failure>`]
			: []),
		...(outcome === 'skip' ? [`<skipped ${attributesOf({ message })}/>`] : []),
		...deviations
			.filter(({ check }) => check === id)
			.map(({ text }) => `<system-out>${xml(`deviation: ${text}`)}</system-out>`),
	];
	if (inner.length === 0) return [`\t<testcase ${attributes}/>`];
	return [`\t<testcase ${attributes}>`, ...inner.map((one) => `\t\t${one}`), '\t</testcase>'];
}

function attributesOf(values: Readonly<Record<string, string | number>>): string {
	const written = (value: string | number) =>
		xml(String(value)).replaceAll('\n', '&#10;').replaceAll('\t', '&#9;');
	return Object.entries(values)
		.map(([name, value]) => `${name}="${written(value)}"`)
		.join(' ');
}

/** XML 1.0 has no way to write most controls, lone surrogates and noncharacters (its production 2). */
const unwritable = /[^\t\n\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

function xml(value: string): string {
	return cleanLines(value)
		.replaceAll(unwritable, '\ufffd')
		.replaceAll('&', '&amp;')
		.replaceAll('<', '&lt;')
		.replaceAll('>', '&gt;')
		.replaceAll('"', '&quot;');
}

function seconds(ms: number): string {
	return (ms / 1000).toFixed(3);
}
