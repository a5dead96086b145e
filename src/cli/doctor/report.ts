/** The report for people: a line for each check, its fix below, the totals at the end. */
import { clean } from '../render/clean.js';
import type { Paint } from '../render/color.js';
import { hanging, wrapWords } from '../render/width.js';
import type { Finding, Level } from './model.js';

/** The terminal. */
export interface TextOptions {
	/** Cells of a line. */
	width: number;
	/** The terminal can show more than ASCII. */
	unicode: boolean;
	paint: Paint;
}

/** Ends in a line break. Skipped checks are grouped by their reason. */
export function textReport(target: string, findings: readonly Finding[], options: TextOptions): string {
	const shown = findings.filter(({ level }) => level !== 'skipped');
	const names = Math.max(0, ...shown.map(({ check }) => check.length));
	return [
		`${options.paint.strong('mailctl doctor')} ${clean(target)}`,
		...shown.flatMap((finding) => linesOf(finding, names, options)),
		...skippedLines(findings, options),
		'',
		summaryOf(findings),
		'',
	].join('\n');
}

/** `2 problems, 1 warning; 21 checks`. */
export function summaryOf(findings: readonly Finding[]): string {
	const count = (wanted: Level) => findings.filter(({ level }) => level === wanted).length;
	const [problems, warnings, left] = [count('problem'), count('warning'), count('skipped')];
	const found = [
		...(problems === 0 ? [] : [of(problems, 'problem')]),
		...(warnings === 0 ? [] : [of(warnings, 'warning')]),
	];
	if (left === findings.length) return `nothing was looked at; ${of(left, 'check')}, all of them skipped`;
	const skips = left === 0 ? '' : `, ${left} of them skipped`;
	const said = found.length === 0 ? 'nothing wrong was found' : found.join(', ');
	return `${said}; ${of(findings.length, 'check')}${skips}`;
}

type Marks = Readonly<Record<Level, string>>;
const unicodeMarks: Marks = { ok: '✓', warning: '!', problem: '✗', skipped: '–' };
const asciiMarks: Marks = { ok: 'ok  ', warning: 'warn', problem: 'FAIL', skipped: 'skip' };
const indent = '    ';

function linesOf(finding: Finding, names: number, options: TextOptions): string[] {
	const { check, level, message, fix } = finding;
	const start = `${markOf(level, options).plain} ${check.padEnd(names)}  `;
	const lines = hanging(start, clean(message), options.width);
	const [first = '', ...rest] = lines;
	const painted = first.replace(/^\S+/, markOf(level, options).painted);
	// A command or a record stays whole: it is there to be copied.
	return [painted, ...rest, ...(fix === null ? [] : fix.split('\n').map((step) => fixLine(step, options)))];
}

function fixLine(fix: string, { width }: TextOptions): string {
	const text = clean(fix);
	return isProse(text) ? wrapWords(indent + text, width - 1).join('\n') : indent + text;
}

function isProse(fix: string): boolean {
	return !/^(mailctl|chmod|chown|install) /.test(fix) && !/ IN [A-Z]+ /.test(fix);
}

function markOf(level: Level, { unicode, paint }: TextOptions): { plain: string; painted: string } {
	const plain = (unicode ? unicodeMarks : asciiMarks)[level];
	const paints = {
		ok: (text: string) => text,
		warning: paint.yellow,
		problem: paint.red,
		skipped: paint.dim,
	};
	return { plain, painted: paints[level](plain.trimEnd()) };
}

function skippedLines(findings: readonly Finding[], options: TextOptions): string[] {
	const byReason = new Map<string, string[]>();
	for (const { check, level, message } of findings) {
		if (level !== 'skipped') continue;
		const names = byReason.get(message) ?? [];
		if (!names.includes(check)) names.push(check);
		byReason.set(message, names);
	}
	return [...byReason].flatMap(([reason, names]) => {
		const which =
			names.length > mostNamed ? `${names.length} checks of ${groupsOf(names)}` : names.join(', ');
		const line = `${markOf('skipped', options).plain} ${clean(reason)}: ${which}`;
		return wrapWords(line, options.width - 1).map((text) => options.paint.dim(text));
	});
}

/** Beyond, checks without an answer would be in the way of those with one. */
const mostNamed = 8;

/** `database, smtp and dns`, in the order of the checks. */
function groupsOf(names: readonly string[]): string {
	const groups = [...new Set(names.map((name) => name.split('.')[0] ?? name))];
	const last = groups.pop() ?? '';
	return groups.length === 0 ? last : `${groups.join(', ')} and ${last}`;
}

function of(count: number, word: string): string {
	return `${count} ${word}${count === 1 ? '' : 's'}`;
}
