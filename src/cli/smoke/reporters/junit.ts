/** The report as the XML that JUnit's readers take: one testsuite, a testcase a check. */
import { cleanLines } from '../../render/clean.js';
import type { CheckResult, SmokeReport } from '../model.js';
import { summaryOf } from './text.js';

/** Pure. `errors` is always 0: every error of a check is its failure. Ends with a line break. */
export function junitReport(report: SmokeReport): string {
	const { counts, checks, started } = report;
	const attributes = attributesOf({
		name: 'mailctl smoke',
		tests: checks.length,
		failures: counts.failed,
		errors: 0,
		skipped: counts.skipped,
		time: seconds(report.duration_ms),
		timestamp: started.replace(/Z$/, ''),
	});
	return [
		'<?xml version="1.0" encoding="UTF-8"?>',
		`<testsuite ${attributes}>`,
		'\t<properties>',
		`\t\t<property ${attributesOf({ name: 'run', value: report.run })}/>`,
		`\t\t<property ${attributesOf({ name: 'target', value: report.target })}/>`,
		'\t</properties>',
		...checks.flatMap((check) => testcase(check, report)),
		`\t<system-out>${text(outOf(report))}</system-out>`,
		'</testsuite>',
		'',
	].join('\n');
}

function testcase(
	{ id, title, group, outcome, detail, duration_ms }: CheckResult,
	report: SmokeReport,
): string[] {
	const attributes = attributesOf({
		classname: `mailctl.smoke.${group}`,
		name: `${id}: ${title}`,
		time: seconds(duration_ms),
	});
	const inner = [
		...(outcome === 'fail'
			? [
					`<failure ${attributesOf({ message: detail ?? '', type: 'contract' })}>${text(detail ?? '')}</failure>`,
				]
			: []),
		...(outcome === 'skip' ? [`<skipped ${attributesOf({ message: detail ?? '' })}/>`] : []),
		...report.deviations
			.filter(({ check }) => check === id)
			.map((one) => `<system-out>${text(`deviation: ${one.text}`)}</system-out>`),
	];
	if (inner.length === 0) return [`\t<testcase ${attributes}/>`];
	return [`\t<testcase ${attributes}>`, ...inner.map((one) => `\t\t${one}`), '\t</testcase>'];
}

function outOf(report: SmokeReport): string {
	const left = report.leftovers.map(
		({ kind, id, name, why }) => `left behind: ${kind} ${id ?? '?'} ${name}: ${why}`,
	);
	return [summaryOf(report), ...left].join('\n');
}

function attributesOf(values: Readonly<Record<string, string | number>>): string {
	return Object.entries(values)
		.map(
			([name, value]) =>
				`${name}="${text(String(value)).replaceAll('\n', '&#10;').replaceAll('\t', '&#9;')}"`,
		)
		.join(' ');
}

/** XML 1.0 has no way to write most controls, lone surrogates and noncharacters (its production 2). */
const unwritable = /[^\t\n\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

function text(value: string): string {
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
