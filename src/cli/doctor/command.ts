import { shownDatabase } from '../../store/url.js';
import { type Hint, hintText, mailctl, namedTarget } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { clean } from '../render/clean.js';
import { hasColor, hasUnicode, type Paint, paint } from '../render/terminal.js';
import { counted } from '../render/units.js';
import { hanging, wrapWords } from '../render/width.js';
import {
	chooseChecks,
	columns,
	type Finding,
	type Level,
	runChecks,
	type Selection,
	type Surroundings,
} from './checks.js';

interface DoctorOptions extends Selection {
	full: boolean;
	offline: boolean;
	strict: boolean;
	/** `address` or `address:port`; undefined: those of this machine. */
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

/** What is wrong with the target of the call; `progress` names the work, null: none is shown. Throws `UsageError`. */
export async function findFaults(
	cx: CommandContext,
	options: Omit<DoctorOptions, 'strict'>,
	progress: string | null,
): Promise<Finding[]> {
	const named = namedTarget(cx.globals, cx.settings);
	const text = (hint: Hint) => hintText(hint, named);
	const around: Surroundings = {
		line: (...command) => text(mailctl(...command)),
		text,
		clock: cx.clock,
		zone: cx.times.zone(),
		isOffline: options.offline,
		isFull: options.full,
		timeout: (ms = 5_000) => timeoutAfter(cx.signal, Math.min(ms, cx.settings.timeoutMs.value)),
	};
	const target = cx.settings.target.target();
	const { checks, close } =
		target.kind === 'local'
			? await (await import('./local.js')).localChecks(cx, target, { around, nameServer: options.nameServer })
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

/** A line for each check, its fix below, the totals at the end. Skipped checks are grouped by their reason. */
export function textReport(target: string, findings: readonly Finding[], screen: Screen): string {
	const shown = findings.filter(({ level }) => level !== 'skipped');
	const names = Math.max(0, ...shown.map(({ check }) => check.length));
	const lines = shown.flatMap(({ check, level, message, fix }) => {
		const mark = markOf(level, screen);
		const [first = '', ...rest] = hanging(`${mark} ${check.padEnd(names)}  `, clean(message), screen.width);
		const { red, yellow } = screen.paint;
		const painter = { ok: null, skipped: null, warning: yellow, problem: red }[level];
		const painted = painter === null ? first : first.replace(/^\S+/, (mark) => painter(mark));
		return [painted, ...rest, ...(fix?.split('\n') ?? []).flatMap((step) => fixLines(clean(step), screen))];
	});
	return [
		`${screen.paint.strong('mailctl doctor')} ${clean(target)}`,
		...lines,
		...skippedLines(findings, screen),
		'',
		summaryOf(findings),
		'',
	].join('\n');
}

export function summaryOf(findings: readonly Finding[]): string {
	const count = (wanted: Level) => findings.filter(({ level }) => level === wanted).length;
	const [problems, warnings, left] = [count('problem'), count('warning'), count('skipped')];
	const all = counted(findings.length, 'check');
	if (left === findings.length) return `nothing was looked at; ${all}, all of them skipped`;
	const found = [
		...(problems === 0 ? [] : [counted(problems, 'problem')]),
		...(warnings === 0 ? [] : [counted(warnings, 'warning')]),
	];
	const skips = left === 0 ? '' : `, ${left} of them skipped`;
	return `${found.length === 0 ? 'nothing wrong was found' : found.join(', ')}; ${all}${skips}`;
}

const marks: Readonly<Record<Level, readonly [unicode: string, ascii: string]>> = {
	ok: ['✓', 'ok  '],
	warning: ['!', 'warn'],
	problem: ['✗', 'FAIL'],
	skipped: ['–', 'skip'],
};

function markOf(level: Level, { unicode }: Screen): string {
	return marks[level][unicode ? 0 : 1];
}

/** A command or a record stays whole, to be copied. */
function fixLines(fix: string, { width }: Screen): string[] {
	const isCopied = /^(mailctl|chmod|chown|install) /.test(fix) || / IN [A-Z]+ /.test(fix);
	return isCopied ? [`    ${fix}`] : wrapWords(`    ${fix}`, width - 1);
}

function skippedLines(findings: readonly Finding[], screen: Screen): string[] {
	const byReason = new Map<string, Set<string>>();
	for (const { check, level, message } of findings)
		if (level === 'skipped') byReason.set(message, (byReason.get(message) ?? new Set()).add(check));
	return [...byReason].flatMap(([reason, names]) => {
		const line = `${markOf('skipped', screen)} ${clean(reason)}: ${[...names].join(', ')}`;
		return wrapWords(line, screen.width - 1).map((text) => screen.paint.dim(text));
	});
}
