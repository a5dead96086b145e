/** Prints the results of `doctor` and `smoke`: a line per check, with its details below. */
import type { CommandContext } from '../frame/context.js';
import { clean } from './clean.js';
import { hasColor, hasUnicode, type Paint, paint } from './terminal.js';
import { hanging, wrapWords } from './width.js';

export interface Screen {
	columns: number;
	unicode: boolean;
	paint: Paint;
}

export async function screenOf({ io, settings }: CommandContext, isFile = false): Promise<Screen> {
	const { stdout, env } = io;
	return {
		columns: !isFile && stdout.isTTY ? stdout.columns : Number.POSITIVE_INFINITY,
		unicode: hasUnicode(env),
		paint: await paint(!isFile && hasColor(stdout, settings.color.value, env)),
	};
}

const marks = {
	ok: ['✓', 'ok  '],
	warning: ['!', 'warn'],
	deviation: ['~', 'dev '],
	problem: ['✗', 'FAIL'],
	skipped: ['–', 'skip'],
} as const;

interface CheckLine {
	mark: keyof typeof marks;
	name: string;
	/** For a skipped check, this is the reason. Skipped checks with the same reason share a line at the end. */
	text: string;
	below: readonly string[];
}

export function checkLines(checks: readonly CheckLine[], screen: Screen): string[] {
	const { columns, unicode, paint } = screen;
	const painted = { problem: paint.red, warning: paint.yellow, skipped: paint.dim };
	const shown = checks.filter(({ mark }) => mark !== 'skipped');
	const width = Math.max(0, ...shown.map(({ name }) => name.length));
	const lines = shown.flatMap(({ mark, name, text, below }) => {
		const sign = marks[mark][unicode ? 0 : 1];
		const [first = '', ...rest] = hanging(`${sign} ${name.padEnd(width)}  `, clean(text), columns);
		const color = mark === 'problem' || mark === 'warning' ? painted[mark] : (plain: string) => plain;
		return [color(sign) + first.slice(sign.length), ...rest, ...indented(below, screen)];
	});
	const reasons = new Map<string, Set<string>>();
	for (const { mark, name, text } of checks)
		if (mark === 'skipped') reasons.set(text, (reasons.get(text) ?? new Set()).add(name));
	for (const [reason, names] of reasons) {
		const line = `${marks.skipped[unicode ? 0 : 1]} ${clean(reason)}: ${[...names].join(', ')}`;
		lines.push(...wrapWords(line, columns - 1).map((one) => paint.dim(one)));
	}
	return lines;
}

/** Does not wrap commands and DNS records, so that they can be copied. */
export function indented(texts: readonly string[], { columns }: Screen): string[] {
	return texts.map(clean).flatMap((text) => {
		const isCopied = /^(mailctl|chmod|chown|install) /.test(text) || / IN [A-Z]+ /.test(text);
		return isCopied ? [`    ${text}`] : wrapWords(`    ${text}`, columns - 1);
	});
}
