import { shownDatabase } from '../../store/url.js';
import { type Hint, hintText, mailctl, namedTarget } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isTable } from '../frame/globals.js';
import { checkLines, type Screen, screenOf } from '../render/checks.js';
import { clean } from '../render/clean.js';
import { momentText } from '../render/times.js';
import { counted, untilText } from '../render/units.js';
import type { Level, Surroundings } from './checks.js';
import { chooseChecks, columns, type Finding, runChecks, type Selection, Skip } from './checks.js';

interface Options extends Selection {
	full: boolean;
	offline: boolean;
	nameServer: string | undefined;
}

/** Returns exit code 11 for problems. After an abort, prints the findings so far and throws the signal's reason. */
export async function doctorCommand(
	cx: CommandContext,
	options: Options & { strict: boolean },
): Promise<ExitCode> {
	const findings = await findFaults(cx, options, 'checking');
	await print(cx, findings);
	cx.signal.throwIfAborted();
	const isBad = ({ level }: Finding) => level === 'problem' || (options.strict && level === 'warning');
	return findings.some(isBad) ? exits.found : exits.done;
}

export async function findFaults(
	cx: CommandContext,
	options: Options,
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
		goOnline: () => {
			if (options.offline) throw new Skip('not checked with --offline');
		},
	};
	const target = cx.settings.target.target();
	const { checks, close } =
		target.kind === 'local'
			? await (await import('./local.js')).localChecks(cx, target.url, around, options.nameServer)
			: await (await import('./remote.js')).remoteChecks(cx, target, around);
	try {
		const chosen = chooseChecks(checks, options);
		const shown = progress === null ? null : cx.progress(progress, Object.keys(chosen).length);
		let done = 0;
		return await runChecks(chosen, cx.signal, () => shown?.update(++done)).finally(() => shown?.stop());
	} finally {
		await close();
	}
}

/** Unlike `AbortSignal.timeout`, aborts with a reason that names the limit. */
function timeoutAfter(signal: AbortSignal, ms: number): AbortSignal {
	const controller = new AbortController();
	setTimeout(() => controller.abort(new Error(`no answer within ${ms / 1_000} s`)), ms).unref();
	return AbortSignal.any([signal, controller.signal]);
}

/** `--quiet` omits findings that are ok or skipped. JSON keeps them, so that its shape does not depend on options. */
async function print(cx: CommandContext, findings: readonly Finding[]): Promise<void> {
	const { isBare, format } = cx.out;
	const isBad = ({ level }: Finding) => level === 'problem' || level === 'warning';
	const shown = isBare ? findings.filter(isBad) : findings;
	if (!isTable(format) || cx.globals.fields !== undefined) {
		await cx.out.rows(shown, columns, { all: true });
		return cx.note(summaryOf(findings));
	}
	const target = cx.settings.target.target();
	const name = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
	await cx.out.page(textReport(isBare ? null : name, shown, await screenOf(cx)));
}

export function textReport(target: string | null, findings: readonly Finding[], screen: Screen): string {
	const lines = checkLines(
		findings.map(({ level, check, message, fix }) => ({
			...{ mark: level, name: check, text: message, below: fix?.split('\n') ?? [] },
		})),
		screen,
	);
	if (target === null) return lines.map((line) => `${line}\n`).join('');
	const title = `${screen.paint.strong('mailctl doctor')} ${clean(target)}`;
	return [title, ...lines, '', summaryOf(findings), ''].join('\n');
}

export function summaryOf(findings: readonly Finding[]): string {
	const count = (wanted: Level) => findings.filter(({ level }) => level === wanted).length;
	const words = (['problem', 'warning'] as const).map((level) => counted(count(level), level)).join(', ');
	const left = count('skipped');
	return `${words}; ${counted(findings.length, 'check')}${left === 0 ? '' : `, ${left} skipped`}`;
}
