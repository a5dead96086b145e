/** What `mailctl doctor` does with its options: look, report, exit code. It changes nothing. */
import { commandLine } from '../command-line.js';
import type { Target } from '../connection.js';
import type { CommandContext } from '../context.js';
import { type ExitCode, exits } from '../exit.js';
import { hasColor, paint } from '../render/color.js';
import { hasUnicode } from '../render/terminal.js';
import { columns } from './columns.js';
import type { Check, Finding, Group, Surroundings } from './model.js';
import { summaryOf, textReport } from './report.js';
import { chooseChecks, runChecks } from './run.js';

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

/** 11 for problems, after the report; past the deadline its error, after a report of what is known. Throws `UsageError`. */
export async function doctorCommand(cx: CommandContext, options: DoctorOptions): Promise<ExitCode> {
	const surroundings: Surroundings = {
		line: (words) => commandLine(cx, words),
		isOffline: options.offline,
		isFull: options.full,
		signal: cx.signal,
	};
	const target = cx.settings.target.target();
	const { checks, close } = await checksOf(cx, target, { ...options, surroundings });
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
	surroundings: Surroundings;
}

/** Each kind of target has checks of its own, which load what they need. */
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
	return remoteChecks(cx, target, looking.surroundings);
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
	const name = target.kind === 'local' ? target.url : target.baseUrl;
	await cx.out.raw(textReport(name, findings, style));
}

function isBad(findings: readonly Finding[], { strict }: DoctorOptions): boolean {
	return findings.some(({ level }) => level === 'problem' || (strict && level === 'warning'));
}
