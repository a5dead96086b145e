import { randomBytes } from 'node:crypto';
import { createOutputFile, type OutputFile } from '../../tables/output-file.js';
import { type Hint, joinHints, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, DeadlinePassed, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isMachine } from '../frame/globals.js';
import { screenOf } from '../render/checks.js';
import { type Columns, column } from '../render/columns.js';
import type { CheckResult, ReporterName, SmokeReport } from './model.js';
import { Broken } from './probe.js';
import { describe, nameRun, unreadable } from './records.js';
import { reporters, summaryOf } from './report.js';
import { type Finished, Run, type Selection } from './run.js';

interface SmokeOptions extends Selection {
	sendTo: string | undefined;
	from: string | undefined;
	reporter: ReporterName | undefined;
	reportFile: string | undefined;
	cleanupOnly: boolean;
}

const columns: Columns<CheckResult> = [
	column('id', 'CHECK', { isName: true }),
	column('outcome', 'OUTCOME'),
	column('title', 'TITLE'),
	column('detail', 'DETAIL'),
	column('duration_ms', 'MS', { align: 'right' }),
];

export async function smokeCommand(cx: CommandContext, options: SmokeOptions): Promise<ExitCode> {
	const { sendTo: to, from, reporter } = options;
	const path = options.reportFile === '-' ? undefined : options.reportFile;
	if (isMachine(cx.askedFormat) && reporter !== undefined && reporter !== 'json' && path === undefined)
		throw new UsageError(`use either -o ${cx.askedFormat} or --reporter ${reporter}, not both`, {
			hint: '--report-file FILE writes the report to a file, and -o json prints it too',
		});
	const controller = new AbortController();
	const hasOwn = cx.settings.deadline.value !== null;
	const timer = hasOwn ? undefined : setTimeout(() => controller.abort(new DeadlinePassed('2m')), 120_000);
	const signal = AbortSignal.any([cx.signal, controller.signal]);
	const names = nameRun(cx.clock, randomBytes(3).toString('hex'));
	const mail = to === undefined || from === undefined ? null : { to, from };
	const run = new Run(cx, { names, mail, signal });
	try {
		// Create the file before the checks, so that the command refuses an unwritable path at once.
		const file = path === undefined ? null : await createOutputFile(path, 'replace');
		try {
			if (cx.dryRun) return await tell(cx, options, run);
			const finished = await (options.cleanupOnly ? run.cleanUp() : run.smoke(options));
			await publish(cx, options, finished.report, file);
			const { checks, leftovers } = finished.report;
			if (options.cleanupOnly && checks.length + leftovers.length === 0)
				await cx.note('earlier runs have left nothing');
			return concluded(finished, signal);
		} finally {
			await file?.discard();
		}
	} finally {
		clearTimeout(timer);
	}
}

async function tell(cx: CommandContext, options: SmokeOptions, run: Run): Promise<ExitCode> {
	const print = async (plan: Readonly<Record<string, unknown>>, lines: readonly string[], would: string) => {
		if (cx.out.format === 'json') await cx.wouldDo('', plan);
		else await cx.out.raw(lines.map((line) => `${line}\n`).join(''));
		await cx.note(`dry run: would ${would}`);
		return exits.done;
	};
	if (options.cleanupOnly) {
		const things = await run.findLeftovers().catch((error: unknown) => {
			throw error instanceof Broken ? new CliError('smoke_failed', exits.found, error.message) : error;
		});
		return print({ delete: things }, things.map(describe), `delete what older runs left (${things.length})`);
	}
	const asked = run.plan(options).filter(({ isAsked }) => isAsked);
	const check = asked.map(({ id, group, title, need }) => ({ id, group, title, changes: need !== 'read' }));
	const lines = check.map(({ id, title }) => `${id.padEnd(26)}${title}`);
	return print({ check }, lines, `run ${check.length} checks`);
}

async function publish(
	cx: CommandContext,
	{ reporter: given }: SmokeOptions,
	report: SmokeReport,
	file: OutputFile | null,
): Promise<void> {
	const asked = cx.settings.output.value;
	const reporter = given ?? (asked === 'json' ? 'json' : 'text');
	const isRows = asked !== null && asked !== 'json' && asked !== 'table' && asked !== 'wide';
	if (file === null && given === undefined && (isRows || cx.globals.fields !== undefined)) {
		if (asked === 'json') await cx.out.document(report);
		else await cx.out.rows(report.checks, columns, { all: true });
		return cx.note(summaryOf(report));
	}
	const text = reporters[reporter](report, await screenOf(cx, file !== null));
	if (file === null) await cx.out.raw(text);
	else {
		await file.write(text);
		await file.finish();
		// With a report file, `-o json` still prints the report on stdout.
		if (asked === 'json') await cx.out.document(report);
	}
	if (file !== null || reporter !== 'text') await cx.note(summaryOf(report));
}

/** Throws an error for most exit codes, so that stderr shows the reason. After an abort with leftovers, returns 11. */
function concluded({ report, halted }: Finished, signal: AbortSignal): ExitCode {
	const { checks, leftovers, target } = report;
	// Do not throw: after an abort, the frame replaces any error by the signal's reason.
	if (leftovers.length > 0 && signal.aborted) return exits.found;
	if (signal.aborted) throw signal.reason;
	if (halted?.why === 'unreachable')
		throw new CliError('network', exits.network, halted.message, { retryable: true });
	if (halted?.why === 'refused')
		throw new CliError('not_authenticated', exits.authentication, halted.message);
	const failed = checks.filter(({ outcome }) => outcome === 'fail').map(({ id }) => id);
	if (failed.length === 0 && leftovers.length === 0) return exits.done;
	const hints: Hint[] = [];
	if (halted !== null) hints.push([`is ${target} the right base URL? `, mailctl('doctor'), ' checks it']);
	if (leftovers.some(({ why }) => why !== unreadable))
		hints.push([mailctl('smoke', '--cleanup-only'), ' deletes what is left behind']);
	else if (leftovers.length > 0) hints.push('use the id to delete what is left behind');
	const message = `${failed.length} of ${checks.length} checks failed: ${failed.join(', ')}`;
	const more = hints.length > 0 ? { hint: joinHints(hints) } : {};
	throw new CliError('smoke_failed', exits.found, message, more);
}
