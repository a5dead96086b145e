/** `mailctl doctor`: runs the checks, prints the report and chooses the exit code. It changes nothing. */

import { shownDatabase } from '../../store/url.js';
import { hintText, mailctl, namedTarget } from '../frame/command-line.js';
import type { Target } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { hasColor, paint } from '../render/color.js';
import { hasUnicode } from '../render/terminal.js';
import { columns } from './columns.js';
import type { Check, CheckEnvironment, Finding, Group } from './model.js';
import { summaryOf, textReport } from './report.js';
import { chooseChecks, runChecks } from './run.js';
import { timeoutAfter } from './timeouts.js';

/** As they are given. */
export interface DoctorOptions {
	full: boolean;
	offline: boolean;
	/** Warnings count as problems. */
	strict: boolean;
	only: readonly Group[];
	skip: readonly Group[];
	/** `address` or `address:port`; undefined: those of this machine. */
	nameServer: string | undefined;
}

/** Exit 11 for problems, after the report; past the deadline its error, after a partial report. Throws `UsageError`. */
export async function doctorCommand(cx: CommandContext, options: DoctorOptions): Promise<ExitCode> {
	const named = namedTarget(cx.globals, cx.settings, cx.paths);
	const environment: CheckEnvironment = {
		line: (...command) => hintText(mailctl(...command), named),
		zone: cx.times.zone(),
		isOffline: options.offline,
		isFull: options.full,
		timeout: (ms) => timeoutAfter(cx.signal, { ms, atMostMs: cx.settings.timeoutMs.value }),
	};
	const target = cx.settings.target.target();
	const { checks, close } = await checksOf(cx, target, { ...options, environment });
	try {
		const chosen = chooseChecks(checks, options);
		const findings = await watched(cx, chosen);
		await publish(cx, target, findings);
		cx.signal.throwIfAborted();
		return isBad(findings, options) ? exits.found : exits.done;
	} finally {
		await close();
	}
}

interface Looking extends DoctorOptions {
	environment: CheckEnvironment;
}

/** The checks of each kind of target load only the modules they need. */
async function checksOf(
	cx: CommandContext,
	target: Target,
	looking: Looking,
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	if (target.kind === 'local') {
		const { localChecks } = await import('./local.js');
		return localChecks(cx, target, looking);
	}
	const { remoteChecks } = await import('./remote.js');
	return remoteChecks(cx, target, looking.environment);
}

async function watched(cx: CommandContext, checks: readonly Check[]): Promise<Finding[]> {
	const progress = cx.progress('checking', checks.length);
	let done = 0;
	try {
		return await runChecks({
			checks,
			signal: cx.signal,
			onDone: () => {
				done += 1;
				progress.update(done);
			},
		});
	} finally {
		progress.stop();
	}
}

async function publish(cx: CommandContext, target: Target, findings: readonly Finding[]): Promise<void> {
	const { format } = cx.out;
	const isForPeople = (format === 'table' || format === 'wide') && cx.globals.fields === undefined;
	if (!isForPeople) {
		await cx.out.rows(findings, columns, { all: true });
		return cx.note(summaryOf(findings));
	}
	const { stdout, env } = cx.io;
	const style = {
		width: stdout.isTTY ? stdout.columns : Number.POSITIVE_INFINITY,
		unicode: hasUnicode(env),
		paint: await paint(hasColor(stdout, cx.settings.color.value, env)),
	};
	const name = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
	await cx.out.page(textReport(name, findings, style));
}

function isBad(findings: readonly Finding[], { strict }: DoctorOptions): boolean {
	return findings.some(({ level }) => level === 'problem' || (strict && level === 'warning'));
}
