import { shownDatabase } from '../../store/url.js';
import { type Hint, hintText, mailctl, namedTarget } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { clean } from '../render/clean.js';
import { hasColor, hasUnicode, type Paint, paint } from '../render/terminal.js';
import { momentText } from '../render/times.js';
import { counted, untilText } from '../render/units.js';
import { hanging, wrapWords } from '../render/width.js';
import {
	chooseChecks,
	columns,
	type Finding,
	type Level,
	runChecks,
	type Selection,
	type Surroundings,
	skipped,
} from './checks.js';

interface DoctorOptions extends Selection {
	full: boolean;
	offline: boolean;
	strict: boolean;
	nameServer: string | undefined;
}

/** Exit 11 for problems, after the report; past the deadline its error, after a partial report. Throws `UsageError`. */
export async function doctorCommand(cx: CommandContext, options: DoctorOptions): Promise<ExitCode> {
	const findings = await findFaults(cx, options, 'checking');
	await print(cx, findings);
	cx.signal.throwIfAborted();
	const bad: readonly Level[] = options.strict ? ['problem', 'warning'] : ['problem'];
	return findings.some(({ level }) => bad.includes(level)) ? exits.found : exits.done;
}

export async function findFaults(
	cx: CommandContext,
	options: Omit<DoctorOptions, 'strict'>,
	progress: string | null,
): Promise<Finding[]> {
	const named = namedTarget(cx.globals, cx.settings);
	const text = (hint: Hint) => hintText(hint, named);
	const zone = cx.times.zone();
	const around: Surroundings = {
		line: (...command) => text(mailctl(...command)),
		text,
		now: () => cx.clock.now(),
		moment: (at) => momentText(at, zone),
		until: (at) => untilText(at, { now: cx.clock.now(), zone }),
		isFull: options.full,
		timeout: (ms = 5_000) => timeoutAfter(cx.signal, Math.min(ms, cx.settings.timeoutMs.value)),
		online: (run) => (options.offline ? () => skipped('--offline asks no other machine') : run),
	};
	const target = cx.settings.target.target();
	const { checks, close } =
		target.kind === 'local'
			? await (await import('./local.js')).localChecks(cx, target.url, around, options.nameServer)
			: await (await import('./remote.js')).remoteChecks(cx, target, around);
	try {
		const chosen = chooseChecks(checks, options);
		const shown = progress === null ? null : cx.progress(progress, chosen.length);
		let done = 0;
		const onDone = () => {
			done += 1;
			shown?.update(done);
		};
		return await runChecks(chosen, { signal: cx.signal, onDone }).finally(() => shown?.stop());
	} finally {
		await close();
	}
}

/** `AbortSignal.timeout` would say "the operation was aborted". */
function timeoutAfter(signal: AbortSignal, ms: number): AbortSignal {
	const controller = new AbortController();
	setTimeout(() => controller.abort(new Error(`no answer within ${ms / 1_000} s`)), ms).unref();
	return AbortSignal.any([signal, controller.signal]);
}

async function print(cx: CommandContext, findings: readonly Finding[]): Promise<void> {
	const { format } = cx.out;
	if ((format !== 'table' && format !== 'wide') || cx.globals.fields !== undefined) {
		await cx.out.rows(findings, columns, { all: true });
		return cx.note(summaryOf(findings));
	}
	const { stdout, env } = cx.io;
	const target = cx.settings.target.target();
	const name = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
	const page = textReport(name, findings, {
		width: stdout.isTTY ? stdout.columns : Number.POSITIVE_INFINITY,
		unicode: hasUnicode(env),
		paint: await paint(hasColor(stdout, cx.settings.color.value, env)),
	});
	await cx.out.page(page);
}

interface Screen {
	width: number;
	unicode: boolean;
	paint: Paint;
}

const marks: Readonly<Record<Level, readonly [unicode: string, ascii: string]>> = {
	ok: ['✓', 'ok  '],
	warning: ['!', 'warn'],
	problem: ['✗', 'FAIL'],
	skipped: ['–', 'skip'],
};

/** A line for each check, its fix below, the totals at the end. Skipped checks are grouped by their reason. */
export function textReport(
	target: string,
	findings: readonly Finding[],
	{ width, unicode, paint: { strong, red, yellow, dim } }: Screen,
): string {
	const markOf = (level: Level) => marks[level][unicode ? 0 : 1];
	const shown = findings.filter(({ level }) => level !== 'skipped');
	const names = Math.max(0, ...shown.map(({ check }) => check.length));
	const lines = shown.flatMap(({ check, level, message, fix }) => {
		const mark = markOf(level);
		const painted = level === 'problem' ? red : level === 'warning' ? yellow : (text: string) => text;
		const [first = '', ...rest] = hanging(`${mark} ${check.padEnd(names)}  `, clean(message), width);
		const fixes = (fix?.split('\n') ?? []).flatMap((step) => fixLines(clean(step), width));
		return [first.replace(/^\S+/, (found) => painted(found)), ...rest, ...fixes];
	});
	const left = findings.filter(({ level }) => level === 'skipped');
	for (const reason of new Set(left.map(({ message }) => message))) {
		const checks = new Set(left.flatMap(({ check, message }) => (message === reason ? [check] : [])));
		const line = `${markOf('skipped')} ${clean(reason)}: ${[...checks].join(', ')}`;
		lines.push(...wrapWords(line, width - 1).map((text) => dim(text)));
	}
	return [`${strong('mailctl doctor')} ${clean(target)}`, ...lines, '', summaryOf(findings), ''].join('\n');
}

/** A command or a record stays whole, to be copied. */
function fixLines(fix: string, width: number): string[] {
	const isCopied = /^(mailctl|chmod|chown|install) /.test(fix) || / IN [A-Z]+ /.test(fix);
	return isCopied ? [`    ${fix}`] : wrapWords(`    ${fix}`, width - 1);
}

export function summaryOf(findings: readonly Finding[]): string {
	const count = (wanted: Level) => findings.filter(({ level }) => level === wanted).length;
	const left = count('skipped');
	const all = counted(findings.length, 'check');
	if (left === findings.length) return `nothing was looked at; ${all}, all of them skipped`;
	const found = (['problem', 'warning'] as const).flatMap((level) =>
		count(level) === 0 ? [] : [counted(count(level), level)],
	);
	const skips = left === 0 ? '' : `, ${left} of them skipped`;
	return `${found.length === 0 ? 'nothing wrong was found' : found.join(', ')}; ${all}${skips}`;
}
