import { checkLines, indented, type Screen } from '../render/checks.js';
import { clean, cleanLines } from '../render/clean.js';
import { counted } from '../render/units.js';
import type { ReporterName, SmokeReport } from './model.js';
import { describe } from './records.js';

export const reporters: Readonly<Record<ReporterName, (report: SmokeReport, screen: Screen) => string>> = {
	text: textReport,
	tap: tapReport,
	junit: junitReport,
	json: (report) => `${JSON.stringify(report, null, 2)}\n`,
};

export function summaryOf({ checks, counts, duration_ms }: SmokeReport): string {
	const { passed, failed, skipped, deviations, leftovers } = counts;
	const left = leftovers === 0 ? '' : `; ${leftovers} left behind`;
	const outcomes = `${passed} passed, ${failed} failed, ${skipped} skipped`;
	const took = (duration_ms / 1000).toFixed(1);
	return `${counted(checks.length, 'check')}: ${outcomes}; ${counted(deviations, 'deviation')}${left}; ${took} s`;
}

function textReport(report: SmokeReport, screen: Screen): string {
	const { strong } = screen.paint;
	const marks = { pass: 'ok', deviation: 'deviation', fail: 'problem', skip: 'skipped' } as const;
	const lines = report.checks.map(({ id: name, title, outcome, detail }) => {
		const mark = marks[outcome];
		const said = (detail ?? '').split('\n');
		if (mark === 'skipped') return { mark, name, text: said.join('; '), below: [] };
		if (mark === 'problem') return { mark, name, text: title, below: said };
		return { mark, name, text: detail === null ? title : `${title} (${said.join('; ')})`, below: [] };
	});
	const section = (title: string, texts: readonly string[]) =>
		texts.length === 0 ? [] : ['', strong(title), ...indented(texts, screen)];
	const differing = report.deviations.map(({ check, text }) => `${check}: ${text}`);
	const left = report.leftovers.map((one) => `${describe(one)}: ${one.why}`);
	return [
		`${strong('mailctl smoke')} ${clean(report.target)}, run ${report.run}`,
		...checkLines(lines, screen),
		...section('deviations from the contract', differing),
		...section('left behind', left),
		...['', summaryOf(report), ''],
	].join('\n');
}

/** TAP 14 (testanything.org). A test point with deviations passes. */
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
	const left = report.leftovers.map((one) => `left behind: ${describe(one)}: ${one.why}`);
	const comments = [...left, `${report.target}, run ${report.run}`, summaryOf(report)];
	const lines = [...points, ...comments.map((text) => clean(`# ${text}`))];
	return `${['TAP version 14', `1..${report.checks.length}`, ...lines].join('\n')}\n`;
}

/** JUnit XML. `errors` is 0, because errors within checks count as failures. */
function junitReport({ checks, counts, deviations, duration_ms, started }: SmokeReport): string {
	const tag = (name: string, attributes: Readonly<Record<string, string | number>>) => {
		const words = Object.entries(attributes).map(([key, value]) => ` ${key}="${xml(String(value))}"`);
		return `<${name}${words.join('')}`;
	};
	const cases = checks.flatMap(({ id, title, group, outcome, detail, duration_ms: ms }) => {
		const message = detail ?? '';
		const named = { classname: `mailctl.smoke.${group}`, name: `${id}: ${title}`, time: seconds(ms) };
		const open = tag('testcase', named);
		const failure = `${tag('failure', { message, type: 'contract' })}>${xml(message)}</failure>`;
		const differing = deviations.filter(({ check }) => check === id);
		const inner = [
			...(outcome === 'fail' ? [failure] : []),
			...(outcome === 'skip' ? [`${tag('skipped', { message })}/>`] : []),
			...differing.map(({ text }) => `<system-out>${xml(`deviation: ${text}`)}</system-out>`),
		];
		if (inner.length === 0) return [`\t${open}/>`];
		return [`\t${open}>`, ...inner.map((one) => `\t\t${one}`), '\t</testcase>'];
	});
	const { failed: failures, skipped } = counts;
	const [time, timestamp] = [seconds(duration_ms), started.replace(/Z$/, '')];
	const sums = { name: 'mailctl smoke', tests: checks.length, failures, errors: 0, skipped, time, timestamp };
	const suite = [`${tag('testsuite', sums)}>`, ...cases, '</testsuite>', ''];
	return ['<?xml version="1.0" encoding="UTF-8"?>', ...suite].join('\n');
}

/** XML 1.0 cannot contain most controls, lone surrogates and noncharacters (production 2). */
const unwritable = /[^\t\n\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\n': '&#10;', '\t': '&#9;' };

function xml(value: string): string {
	const text = cleanLines(value).replaceAll(unwritable, '\ufffd');
	return text.replaceAll(/[&<>"\n\t]/g, (found) => entities[found as keyof typeof entities]); // matches only the keys
}

function seconds(ms: number): string {
	return (ms / 1000).toFixed(3);
}
